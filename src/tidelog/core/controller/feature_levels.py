"""Changing the agreed level of a feature: only to what every broker and this controller can run.

All changes of a request stand or fall together. A metadata version is never lowered: older
software would not understand what is written already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from tidelog.core.controller.configs import MIN_INSYNC_REPLICAS
from tidelog.core.controller.decision import Refusal
from tidelog.core.metadata.cluster import ResourceType
from tidelog.core.metadata.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    KRAFT_VERSION,
    KRAFT_VERSION_LEVEL,
    METADATA_VERSION,
    SUPPORTED,
)
from tidelog.core.metadata.image import CLUSTER_DEFAULTS, ClusterImage
from tidelog.core.metadata.records import ConfigRecord, FeatureLevelRecord, MetadataRecord
from tidelog.core.model.errors import ErrorCode


class Direction(IntEnum):
    """What an update may do, by Kafka's numbers."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureUpdate:
    """A request; without a direction it names one that does not exist."""

    name: str
    level: int
    direction: Direction | None


def decide_features(
    image: ClusterImage, updates: Sequence[FeatureUpdate], *, min_insync_replicas: int
) -> list[MetadataRecord] | Refusal:
    """Of a feature that comes twice the last request counts."""
    records: list[MetadataRecord] = []
    for update in {update.name: update for update in updates}.values():
        reason = _refuse(image, update)
        if reason is not None:
            return Refusal(ErrorCode.INVALID_UPDATE_VERSION, f"{update.name}: {reason}")
        if update.name == ELIGIBLE_LEADER_REPLICAS_VERSION and update.level > 0:
            records += _one_minimum_for_all(image, min_insync_replicas)
        if update.name != KRAFT_VERSION:
            records.append(FeatureLevelRecord(name=update.name, feature_level=update.level))
    return records


def _refuse(image: ClusterImage, update: FeatureUpdate) -> str | None:
    if update.direction is None:
        return "an update of an unknown kind"
    if not _can_run(image, update):
        return f"level {update.level} is not supported everywhere"
    current = image.features.get(update.name, 0)
    if update.name == KRAFT_VERSION:
        current = KRAFT_VERSION_LEVEL
    if update.level > current and update.direction is not Direction.UPGRADE:
        return "a downgrade cannot lead upwards"
    if update.level < current and update.direction is Direction.UPGRADE:
        return "an upgrade cannot lead downwards"
    if update.level < current and update.name in (METADATA_VERSION, KRAFT_VERSION):
        return "a downgrade would lose metadata"
    return None


def _can_run(image: ClusterImage, update: FeatureUpdate) -> bool:
    low, high = SUPPORTED.get(update.name, (0, 0))
    if not low <= update.level <= high:
        return False
    for broker in image.brokers.values():
        ranges = {feature.name: (feature.low, feature.high) for feature in broker.features}
        low, high = ranges.get(update.name, (0, 0))
        if not low <= update.level <= high:
            return False
    return True


def _one_minimum_for_all(image: ClusterImage, min_insync_replicas: int) -> list[MetadataRecord]:
    """Eligibility is judged by one minimum in-sync set: the cluster has one, no broker its own."""
    records: list[MetadataRecord] = []
    if MIN_INSYNC_REPLICAS not in image.cluster_config():
        records.append(
            ConfigRecord(
                resource_type=CLUSTER_DEFAULTS.type,
                resource_name=CLUSTER_DEFAULTS.name,
                name=MIN_INSYNC_REPLICAS,
                value=str(min_insync_replicas),
            )
        )
    records += [
        ConfigRecord(
            resource_type=resource.type, resource_name=resource.name, name=MIN_INSYNC_REPLICAS
        )
        for resource, settings in sorted(image.configs.items())
        if resource.type == ResourceType.BROKER
        and resource != CLUSTER_DEFAULTS
        and MIN_INSYNC_REPLICAS in settings
    ]
    return records
