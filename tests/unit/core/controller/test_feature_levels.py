"""Feature levels: what everybody can run, never back with the metadata, one minimum for all."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.core.controller.cluster import cluster, state
from tests.unit.core.metadata.given import apply
from tidelog.core.controller.decision import Refusal
from tidelog.core.controller.feature_levels import Direction, FeatureUpdate, decide_features
from tidelog.core.metadata.cluster import FeatureRange
from tidelog.core.metadata.features import SUPPORTED
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.metadata.records import ConfigRecord

ELIGIBLE = "eligible.leader.replicas.version"
RANGES = tuple(FeatureRange(name, low, high) for name, (low, high) in sorted(SUPPORTED.items()))


def given_cluster() -> ClusterImage:
    image = cluster(state(1, 2, 3))
    for broker_id, broker in image.brokers.items():
        image.brokers[broker_id] = replace(broker, features=RANGES)
    return image


def updated(image: ClusterImage, name: str, level: int, direction: Direction | None) -> bool:
    request = FeatureUpdate(name=name, level=level, direction=direction)
    decided = decide_features(image, [request], min_insync_replicas=2)
    if isinstance(decided, Refusal):
        return False
    apply(image, decided)
    return True


def test_a_level_must_suit_every_broker() -> None:
    image = given_cluster()
    image.brokers[2] = replace(image.brokers[2], features=(FeatureRange("group.version", 1, 1),))

    assert not updated(image, "group.version", 0, Direction.SAFE_DOWNGRADE)
    image.brokers[2] = replace(image.brokers[2], features=RANGES)
    assert updated(image, "group.version", 0, Direction.SAFE_DOWNGRADE)
    assert updated(image, "group.version", 1, Direction.UPGRADE)


def test_the_metadata_and_the_quorum_never_go_back() -> None:
    image = given_cluster()

    for direction in (Direction.SAFE_DOWNGRADE, Direction.UNSAFE_DOWNGRADE):
        assert not updated(image, "metadata.version", 29, direction)
        assert not updated(image, "kraft.version", 0, direction)
    assert updated(image, "kraft.version", 1, Direction.UPGRADE)
    assert "kraft.version" not in image.features


def test_with_eligible_replicas_comes_one_minimum_for_all() -> None:
    image = given_cluster()
    assert updated(image, ELIGIBLE, 0, Direction.SAFE_DOWNGRADE)
    image.apply(
        ConfigRecord(resource_type=4, resource_name="2", name="min.insync.replicas", value="1")
    )

    assert updated(image, ELIGIBLE, 1, Direction.UPGRADE)

    assert image.cluster_config() == {"min.insync.replicas": "2"}
    assert image.broker_config(2) == {}
    assert image.features[ELIGIBLE] == 1
