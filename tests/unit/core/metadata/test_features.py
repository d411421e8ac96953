"""Features: what clients are told that the cluster agreed on."""

from __future__ import annotations

from tidelog.core.metadata.features import BOOTSTRAP, SUPPORTED, finalized


def test_a_new_cluster_agrees_on_the_levels_of_kafka_4_3() -> None:
    assert finalized(BOOTSTRAP) == {
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "kraft.version": 1,
        "metadata.version": 30,
        "transaction.version": 2,
    }


def test_a_feature_that_is_off_is_not_named() -> None:
    assert finalized({"group.version": 0}) == {"kraft.version": 1}


def test_every_agreed_level_is_supported() -> None:
    for name, level in finalized(BOOTSTRAP).items():
        low, high = SUPPORTED[name]
        assert low <= level <= high
