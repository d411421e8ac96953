"""DescribeTopicPartitions: partitions page by page."""

from __future__ import annotations

from typing import Any

from tests.golden.cases.registry import case
from tests.golden.talk import Talk


def describe(talk: Talk, *names: str, **options: Any) -> Any:
    topics = [{"name": name} for name in names]
    return talk.ask("DescribeTopicPartitions", 0, topics=topics, **options)


@case("DescribeTopicPartitions")
def of_one_topic(talk: Talk) -> None:
    """A topic with two partitions."""
    describe(talk, talk.new_topic(partitions=2).name)


@case("DescribeTopicPartitions")
def of_an_unknown_topic(talk: Talk) -> None:
    """A topic that does not exist is not made by asking."""
    describe(talk, talk.name("missing"))


@case("DescribeTopicPartitions")
def of_topics_known_and_unknown(talk: Talk) -> None:
    """Topics are answered in the order of their names."""
    first, second = talk.new_topic("b"), talk.new_topic("a")
    describe(talk, first.name, talk.name("missing"), second.name)


@case("DescribeTopicPartitions")
def of_an_invalid_name(talk: Talk) -> None:
    """A name that no topic can have."""
    describe(talk, "no spaces")


@case("DescribeTopicPartitions")
def of_one_topic_twice(talk: Talk) -> None:
    """The same name twice is answered once."""
    topic = talk.new_topic()
    describe(talk, topic.name, topic.name)


@case("DescribeTopicPartitions")
def page_by_page(talk: Talk) -> None:
    """A limit gives a cursor, and the cursor the next page."""
    topic, other = talk.new_topic("a", partitions=3), talk.new_topic("b", partitions=2)
    names = (topic.name, other.name)
    describe(talk, *names, response_partition_limit=2)
    cursor = {"topic_name": topic.name, "partition_index": 2}
    describe(talk, *names, response_partition_limit=2, cursor=cursor)
    cursor = {"topic_name": other.name, "partition_index": 1}
    describe(talk, *names, response_partition_limit=2, cursor=cursor)


@case("DescribeTopicPartitions")
def with_a_limit_of_zero(talk: Talk) -> None:
    """A limit of zero."""
    describe(talk, talk.new_topic().name, response_partition_limit=0)


@case("DescribeTopicPartitions")
def with_a_negative_limit(talk: Talk) -> None:
    """A negative limit."""
    describe(talk, talk.new_topic().name, response_partition_limit=-1)


@case("DescribeTopicPartitions")
def with_a_cursor_at_a_negative_partition(talk: Talk) -> None:
    """A cursor cannot stand before the first partition."""
    topic = talk.new_topic()
    describe(talk, topic.name, cursor={"topic_name": topic.name, "partition_index": -1})


@case("DescribeTopicPartitions")
def with_a_cursor_beyond_the_partitions(talk: Talk) -> None:
    """A cursor behind the last partition."""
    topic = talk.new_topic()
    describe(talk, topic.name, cursor={"topic_name": topic.name, "partition_index": 5})


@case("DescribeTopicPartitions")
def with_a_cursor_at_an_unknown_topic(talk: Talk) -> None:
    """A cursor's topic may be gone: what comes after it is answered."""
    topic = talk.new_topic("z")
    describe(talk, topic.name, cursor={"topic_name": talk.name("m"), "partition_index": 0})


@case("DescribeTopicPartitions")
def with_an_unknown_topic_and_a_small_limit(talk: Talk) -> None:
    """An unknown topic takes its place in the limit, or not."""
    topic = talk.new_topic("z", partitions=2)
    describe(talk, talk.name("a-missing"), topic.name, response_partition_limit=1)
