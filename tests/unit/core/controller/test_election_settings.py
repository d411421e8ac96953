"""The settings of elections: a topic's own, the cluster's, the file's, Kafka's default."""

from __future__ import annotations

from tests.unit.core.controller.cluster import cluster, state
from tidelog.core.controller.configs import decide_clearing
from tidelog.core.controller.election_settings import ElectionSettings
from tidelog.core.metadata.records import ClearElrRecord, ConfigRecord, FeatureLevelRecord

MINIMUM, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"


def config(kind: int, resource: str, name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)


def test_the_nearest_value_counts_and_a_brokers_own_counts_nowhere() -> None:
    image = cluster(state(1, 2, 3))
    file = {MINIMUM: "3"}

    assert ElectionSettings(image, {}).min_insync_replicas("t") == 1
    assert ElectionSettings(image, file).min_insync_replicas("t") == 3
    image.apply(config(4, "", MINIMUM, "2"))
    image.apply(config(4, "1", MINIMUM, "1"))
    assert ElectionSettings(image, file).min_insync_replicas("t") == 2
    image.apply(config(2, "t", MINIMUM, "1"))
    assert ElectionSettings(image, file).min_insync_replicas("t") == 1


def test_a_minimum_above_the_number_of_replicas_means_all_of_them() -> None:
    image = cluster(state(1, 2))

    assert ElectionSettings(image, {MINIMUM: "3"}).min_insync_replicas("t") == 2


def test_unclean_elections_are_off_until_somebody_allows_them() -> None:
    image = cluster(state(1, 2, 3))

    assert not ElectionSettings(image, {}).allows_unclean("t")
    image.apply(config(4, "", UNCLEAN, "true"))
    assert ElectionSettings(image, {}).allows_unclean("t")
    image.apply(config(2, "t", UNCLEAN, "false"))
    assert not ElectionSettings(image, {}).allows_unclean("t")


def test_a_value_that_cannot_be_read_is_passed_over() -> None:
    image = cluster(state(1, 2, 3))
    image.apply(config(2, "t", MINIMUM, "many"))
    image.apply(config(4, "", MINIMUM, "more"))

    assert ElectionSettings(image, {MINIMUM: "2"}).min_insync_replicas("t") == 2


def test_a_new_minimum_ends_eligibility_where_it_holds() -> None:
    image = cluster(state(1, 2, 3))
    changes = [
        config(2, "t", MINIMUM, "2"),
        config(4, "", MINIMUM, "2"),
        config(2, "t", "retention.ms", "1"),
    ]

    assert decide_clearing(image, changes) == [
        ClearElrRecord(topic_name="t"),
        ClearElrRecord(topic_name=""),
    ]
    image.apply(FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=0))
    assert decide_clearing(image, changes) == []
    assert not ElectionSettings(image, {}).keeps_eligible
