"""UpdateFeatures (api key 57): raise or lower the levels on which the cluster has agreed.

Version 1 brings kinds of downgrades and a rehearsal, 2 answers for all features at once.
"""

from __future__ import annotations

from tidelog.core.wire.schema import Message, Struct, array, boolean, int8, int16, int32, string


class FeatureUpdateKey(Struct):
    """The requested level; upgrade type 1 only raises, 2 lowers safely, 3 lowers with losses."""

    feature: str = string()
    max_version_level: int = int16()
    allow_downgrade: bool = boolean("0")
    upgrade_type: int = int8("1+", default=1)


class UpdateFeaturesRequest(Message, api_key=57, versions="0-2", flexible_from=0):
    """The features to be changed."""

    timeout_ms: int = int32(default=60_000)
    feature_updates: list[FeatureUpdateKey] = array(FeatureUpdateKey)
    validate_only: bool = boolean("1+")


class UpdatableFeatureResult(Struct):
    """The outcome for one feature."""

    feature: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class UpdateFeaturesResponse(Message, api_key=57, versions="0-2", flexible_from=0):
    """What became of the updates."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    results: list[UpdatableFeatureResult] = array(UpdatableFeatureResult, "0-1", ignorable=True)
