"""Fetch within limits of bytes and time."""

from __future__ import annotations

from tests.golden.batches import batch
from tests.golden.cases.asking import fetch, fetching, produce
from tests.golden.cases.registry import case
from tests.golden.talk import Talk, Topic

EDGES = (4, 18)
BATCH_BYTES = len(batch("a" * 50))


def three_batches(talk: Talk) -> Topic:
    topic = talk.new_topic()
    talk.fill(topic, batch("a" * 50), batch("b" * 50), batch("c" * 50))
    return topic


@case("Fetch", *EDGES)
def first_batch_above_the_partition_limit(talk: Talk, version: int) -> None:
    """The first batch comes whole even if it is larger than the partition may be."""
    fetch(talk, version, three_batches(talk), partition_max_bytes=10)


@case("Fetch", *EDGES)
def first_batch_above_the_request_limit(talk: Talk, version: int) -> None:
    """The first batch comes whole even if it is larger than the answer may be."""
    fetch(talk, version, three_batches(talk), request={"max_bytes": 1})


@case("Fetch", *EDGES)
def limit_in_the_middle_of_a_batch(talk: Talk, version: int) -> None:
    """The limit cuts the second batch."""
    fetch(talk, version, three_batches(talk), partition_max_bytes=BATCH_BYTES + 20)


@case("Fetch", 18)
def limit_at_the_end_of_a_batch(talk: Talk, version: int) -> None:
    """The limit is exactly two batches."""
    fetch(talk, version, three_batches(talk), partition_max_bytes=2 * BATCH_BYTES)


@case("Fetch", *EDGES)
def zero_bytes_for_a_partition(talk: Talk, version: int) -> None:
    """A partition limit of zero still gets the first batch."""
    fetch(talk, version, three_batches(talk), partition_max_bytes=0)


@case("Fetch", *EDGES)
def zero_bytes_for_the_request(talk: Talk, version: int) -> None:
    """A request limit of zero."""
    fetch(talk, version, three_batches(talk), request={"max_bytes": 0})


@case("Fetch", 18)
def negative_bytes_for_a_partition(talk: Talk, version: int) -> None:
    """A negative partition limit."""
    fetch(talk, version, three_batches(talk), partition_max_bytes=-1)


@case("Fetch", 18)
def negative_bytes_for_the_request(talk: Talk, version: int) -> None:
    """A negative request limit."""
    fetch(talk, version, three_batches(talk), request={"max_bytes": -1})


@case("Fetch", *EDGES)
def second_partition_beyond_the_request_limit(talk: Talk, version: int) -> None:
    """Only the first partition with data may go beyond the limit of the request."""
    topic = talk.new_topic(partitions=3)
    talk.fill(topic, batch("a" * 50), partition=1)
    talk.fill(topic, batch("b" * 50), partition=2)
    fields = fetching(version, topic, request={"max_bytes": 10})
    asked = fields["topics"][0]["partitions"][0]
    fields["topics"][0]["partitions"] = [{**asked, "partition": index} for index in (0, 1, 2)]
    talk.ask("Fetch", version, **fields)


@case("Fetch", 18)
def request_limit_shared_by_partitions(talk: Talk, version: int) -> None:
    """What the first partition leaves of the limit goes to the second."""
    topic = talk.new_topic(partitions=2)
    for index in (0, 1):
        talk.fill(topic, batch("a" * 50), batch("b" * 50), partition=index)
    fields = fetching(version, topic, request={"max_bytes": 3 * BATCH_BYTES})
    asked = fields["topics"][0]["partitions"][0]
    fields["topics"][0]["partitions"] = [{**asked, "partition": index} for index in (1, 0)]
    talk.ask("Fetch", version, **fields)


@case("Fetch", *EDGES)
def wait_in_vain(talk: Talk, version: int) -> None:
    """Nothing comes within the wait: an empty answer."""
    fetch(talk, version, talk.new_topic(), min_bytes=1, max_wait_ms=100)


@case("Fetch", *EDGES)
def wait_for_more_than_there_is(talk: Talk, version: int) -> None:
    """Less than the minimum is there: it comes after the wait."""
    topic = talk.new_topic()
    talk.fill(topic, batch("a"))
    fetch(talk, version, topic, min_bytes=10_000, max_wait_ms=100)


@case("Fetch", *EDGES)
def no_wait_for_an_error(talk: Talk, version: int) -> None:
    """An error is told at once, whatever the minimum."""
    fetch(talk, version, talk.new_topic(), 5, min_bytes=1, max_wait_ms=15_000)


@case("Fetch", *EDGES)
def woken_by_a_produce(talk: Talk, version: int) -> None:
    """A waiting reader hears of a new batch long before its wait is over."""
    topic = talk.new_topic()
    finish = talk.start(
        "Fetch", version, on=2, **fetching(version, topic, min_bytes=1, max_wait_ms=15_000)
    )
    produce(talk, 13, topic, batch("a"))
    finish()


@case("Fetch", 18)
def woken_when_enough_is_there(talk: Talk, version: int) -> None:
    """A waiting reader is woken only when the minimum is reached."""
    topic = talk.new_topic()
    fields = fetching(version, topic, min_bytes=2 * BATCH_BYTES, max_wait_ms=15_000)
    finish = talk.start("Fetch", version, on=2, **fields)
    produce(talk, 13, topic, batch("a" * 50))
    produce(talk, 13, topic, batch("b" * 50))
    finish()


@case("Fetch", 18)
def negative_wait(talk: Talk, version: int) -> None:
    """A negative wait is no wait."""
    fetch(talk, version, talk.new_topic(), min_bytes=1, max_wait_ms=-1)


@case("Fetch", 18)
def negative_minimum(talk: Talk, version: int) -> None:
    """A negative minimum is no minimum."""
    fetch(talk, version, talk.new_topic(), min_bytes=-1, max_wait_ms=15_000)


@case("Fetch", 18)
def waiting_fetch_delays_the_next_request(talk: Talk, version: int) -> None:
    """Answers keep the order of requests, even behind a waiting fetch."""
    topic = talk.new_topic()
    finish_first = talk.start(
        "Fetch", version, **fetching(version, topic, min_bytes=1, max_wait_ms=200)
    )
    finish_second = talk.start("Fetch", version, **fetching(version, topic))
    finish_first()
    finish_second()


@case("Fetch", 18)
def minimum_counts_all_partitions(talk: Talk, version: int) -> None:
    """The minimum is for the whole answer."""
    topic = talk.new_topic(partitions=2)
    for index in (0, 1):
        talk.fill(topic, batch("a" * 50), partition=index)
    fields = fetching(version, topic, min_bytes=2 * BATCH_BYTES, max_wait_ms=15_000)
    asked = fields["topics"][0]["partitions"][0]
    fields["topics"][0]["partitions"] = [{**asked, "partition": index} for index in (0, 1)]
    talk.ask("Fetch", version, **fields)
