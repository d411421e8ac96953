"""UpdateFeatures: levels change together or not at all."""

from __future__ import annotations

import pytest

from tests.unit.core.node.api.controller_rules import CONTROLLER_RULES, Rule
from tests.unit.core.node.controller_bench import ControllerBench
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_57_update_features as api
from tidelog.core.wire.messages.api_57_update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)


@pytest.mark.parametrize("rule", CONTROLLER_RULES)
def test_it_is_an_api_of_the_controller(rule: Rule) -> None:
    rule(api, UpdateFeaturesRequest(), UpdateFeaturesResponse)


@pytest.mark.parametrize("version", api.VERSIONS)
def test_features_change_together_or_not_at_all(version: int) -> None:
    given = ControllerBench()
    features = given.metadata.decided_image.features

    def update(*levels: tuple[str, int], kind: int = 1) -> int:
        keys = [FeatureUpdateKey(feature=name, max_version_level=level) for name, level in levels]
        for key in keys if version > 0 else ():
            key.upgrade_type = kind
        answer = given.ask(
            api,
            UpdateFeaturesRequest(feature_updates=keys),
            UpdateFeaturesResponse,
            version,
        )
        has_results = answer.error_code == 0 and version <= 1
        assert [each.feature for each in answer.results] == [n for n, _ in levels if has_results]
        return answer.error_code

    assert update(("group.version", 0)) == 95, "downwards needs a word"
    assert update(("metadata.version", 31)) == 95
    assert update(("metadata.version", 30), ("tides.version", 1)) == 95
    assert update(("metadata.version", 30)) == 0
    if version > 0:
        assert update(("group.version", 0), kind=2) == 0
        assert "group.version" not in features
        assert update(("group.version", 1), kind=2) == 95
        assert update(("metadata.version", 29), kind=2) == 95
        assert update(("group.version", 1), kind=9) == 95
        assert update(("group.version", 1)) == 0
    assert features["group.version"] == 1


def test_validation_alone_changes_nothing() -> None:
    given = ControllerBench()
    update = FeatureUpdateKey(feature="metadata.version", max_version_level=30, upgrade_type=1)
    before = dict(given.metadata.decided_image.features)

    answer = given.ask(
        api,
        UpdateFeaturesRequest(feature_updates=[update], validate_only=True),
        UpdateFeaturesResponse,
    )

    assert answer.error_code == ErrorCode.NONE
    assert given.metadata.decided_image.features == before
    assert given.metadata.records == []
