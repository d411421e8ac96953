"""DescribeQuorum, UpdateFeatures and UnregisterBroker: the cluster's own affairs."""

from __future__ import annotations

from typing import Any

from tests.golden.cases.registry import case
from tests.golden.talk import Talk

VERSIONS = (0, 1, 2)
METADATA_TOPIC = "__cluster_metadata"
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


def describe(talk: Talk, version: int, topic: str = METADATA_TOPIC, *indexes: int) -> Any:
    asked = [{"partition_index": index} for index in indexes]
    topics = [{"topic_name": topic, "partitions": asked}]
    return talk.ask("DescribeQuorum", version, topics=topics)


@case("DescribeQuorum", *VERSIONS)
def of_the_metadata(talk: Talk, version: int) -> None:
    """The leader, the voters and how far they are."""
    describe(talk, version, METADATA_TOPIC, 0)


@case("DescribeQuorum", 0, 2)
def of_another_topic(talk: Talk, version: int) -> None:
    """Topics of users have no quorum."""
    describe(talk, version, talk.new_topic().name, 0)


@case("DescribeQuorum", 0, 2)
def of_another_partition(talk: Talk, version: int) -> None:
    """The metadata has one partition."""
    describe(talk, version, METADATA_TOPIC, 1)


@case("DescribeQuorum", 2)
def of_two_partitions(talk: Talk, version: int) -> None:
    """The right partition and another one."""
    describe(talk, version, METADATA_TOPIC, 0, 1)


@case("DescribeQuorum", 2)
def of_no_partition(talk: Talk, version: int) -> None:
    """The metadata without a partition."""
    describe(talk, version, METADATA_TOPIC)


@case("DescribeQuorum", 0, 2)
def of_nothing(talk: Talk, version: int) -> None:
    """A request that names nothing."""
    talk.ask("DescribeQuorum", version, topics=[])


def update(
    talk: Talk, version: int, feature: str, level: int, kind: int = UPGRADE, **options: Any
) -> Any:
    wish: dict[str, Any] = {"feature": feature, "max_version_level": level}
    if version >= 1:
        wish["upgrade_type"] = kind
    elif kind != UPGRADE:
        wish["allow_downgrade"] = True
    fields = {"feature_updates": [wish], "timeout_ms": 10_000, **options}
    return talk.ask("UpdateFeatures", version, **fields)


@case("UpdateFeatures", *VERSIONS)
def to_a_level_that_is_too_high(talk: Talk, version: int) -> None:
    """A level that no broker can run."""
    update(talk, version, "metadata.version", 1_000)


@case("UpdateFeatures", *VERSIONS)
def of_an_unknown_feature(talk: Talk, version: int) -> None:
    """A feature that nobody has heard of."""
    update(talk, version, "tides.version", 1)


@case("UpdateFeatures", *VERSIONS)
def of_nothing_at_all(talk: Talk, version: int) -> None:
    """A request without features."""
    talk.ask("UpdateFeatures", version, feature_updates=[], timeout_ms=10_000)


@case("UpdateFeatures", *VERSIONS)
def to_a_level_below_zero(talk: Talk, version: int) -> None:
    """A negative level."""
    update(talk, version, "metadata.version", -1)


@case("UpdateFeatures", 1, 2)
def of_an_unknown_kind(talk: Talk, version: int) -> None:
    """A kind of update that nobody has heard of."""
    update(talk, version, "metadata.version", 29, 9)


@case("UpdateFeatures", *VERSIONS)
def down_without_leave(talk: Talk, version: int) -> None:
    """A lower level is refused unless a downgrade was asked for."""
    update(talk, version, "metadata.version", 20)


@case("UpdateFeatures", 1, 2)
def safely_down_below_what_is_safe(talk: Talk, version: int) -> None:
    """A downgrade that would lose metadata is refused when it must be safe."""
    update(talk, version, "metadata.version", 7, SAFE_DOWNGRADE, validate_only=True)


@case("UpdateFeatures", 0, 2)
def of_one_feature_twice(talk: Talk, version: int) -> None:
    """The same feature twice in one request."""
    wish = {"feature": "tides.version", "max_version_level": 1}
    talk.ask("UpdateFeatures", version, feature_updates=[wish, wish], timeout_ms=10_000)


@case("UnregisterBroker", 0)
def that_never_was(talk: Talk, version: int) -> None:
    """A broker id that nobody registered."""
    talk.ask("UnregisterBroker", version, broker_id=99)


@case("UnregisterBroker", 0)
def of_a_negative_id(talk: Talk, version: int) -> None:
    """No broker has a negative id."""
    talk.ask("UnregisterBroker", version, broker_id=-1)
