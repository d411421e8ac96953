"""ListOffsets: both ends, times, the largest timestamp, and what older versions lack."""

from __future__ import annotations

from tests.golden.batches import GZIP, NewRecord, batch, built
from tests.golden.cases.asking import list_offsets
from tests.golden.cases.registry import case
from tests.golden.talk import Talk, Topic

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -4, -5, -6
VERSIONS = (1, 2, 4, 6, 7, 11)
EDGES = (1, 11)
BASE_MS = 1_600_000_000_000


def at_times(talk: Talk, *times_ms: int, **options: int) -> Topic:
    """A topic with one batch per time."""
    topic = talk.new_topic()
    talk.fill(topic, *(batch("v", timestamp_ms=time_ms, **options) for time_ms in times_ms))
    return topic


@case("ListOffsets", *VERSIONS)
def latest(talk: Talk, version: int) -> None:
    """The latest offset is the end of what can be read."""
    list_offsets(talk, version, at_times(talk, BASE_MS, BASE_MS + 1).name, LATEST)


@case("ListOffsets", *VERSIONS)
def earliest(talk: Talk, version: int) -> None:
    """The earliest offset is the log's start."""
    list_offsets(talk, version, at_times(talk, BASE_MS).name, EARLIEST)


@case("ListOffsets", *EDGES)
def earliest_after_deletion(talk: Talk, version: int) -> None:
    """Deleted records move the earliest offset."""
    topic = at_times(talk, BASE_MS, BASE_MS + 1, BASE_MS + 2)
    gone = {"partition_index": 0, "offset": 2}
    fields = {"topics": [{"name": topic.name, "partitions": [gone]}], "timeout_ms": 5000}
    talk.quietly("DeleteRecords", 2, **fields)
    list_offsets(talk, version, topic.name, EARLIEST)
    list_offsets(talk, version, topic.name, 0)


@case("ListOffsets", *EDGES)
def of_an_empty_partition(talk: Talk, version: int) -> None:
    """An empty partition has both ends at 0 and no time at all."""
    topic = talk.new_topic()
    for timestamp in (LATEST, EARLIEST, BASE_MS):
        list_offsets(talk, version, topic.name, timestamp)


@case("ListOffsets", 7, 11)
def largest_timestamp(talk: Talk, version: int) -> None:
    """The record with the largest timestamp, wherever it is."""
    topic = at_times(talk, BASE_MS, BASE_MS + 500, BASE_MS + 100)
    list_offsets(talk, version, topic.name, MAX_TIMESTAMP)


@case("ListOffsets", 7, 11)
def largest_timestamp_inside_a_batch(talk: Talk, version: int) -> None:
    """The very record inside its batch, and the first one of several."""
    topic = talk.new_topic()
    times = (BASE_MS, BASE_MS + 9, BASE_MS + 9, BASE_MS + 3)
    talk.fill(topic, built([NewRecord(value=b"v", timestamp_ms=time_ms) for time_ms in times]))
    list_offsets(talk, version, topic.name, MAX_TIMESTAMP)


@case("ListOffsets", 7, 11)
def largest_timestamp_inside_a_compressed_batch(talk: Talk, version: int) -> None:
    """The same where the batch is compressed."""
    topic = talk.new_topic()
    times = (BASE_MS, BASE_MS + 9, BASE_MS + 9, BASE_MS + 3)
    records = [NewRecord(value=b"v", timestamp_ms=time_ms) for time_ms in times]
    talk.fill(topic, built(records, compression=GZIP))
    list_offsets(talk, version, topic.name, MAX_TIMESTAMP)


@case("ListOffsets", 7, 11)
def largest_timestamp_of_an_empty_partition(talk: Talk, version: int) -> None:
    """An empty partition has none."""
    list_offsets(talk, version, talk.new_topic().name, MAX_TIMESTAMP)


@case("ListOffsets", 1, 6)
def largest_timestamp_too_early(talk: Talk, version: int) -> None:
    """Versions before 7 do not know the largest timestamp."""
    list_offsets(talk, version, at_times(talk, BASE_MS).name, MAX_TIMESTAMP)


@case("ListOffsets", 7, 8, 11)
def earliest_local(talk: Talk, version: int) -> None:
    """The earliest local offset, from version 8 on."""
    list_offsets(talk, version, at_times(talk, BASE_MS).name, EARLIEST_LOCAL)


@case("ListOffsets", 8, 9, 11)
def latest_tiered(talk: Talk, version: int) -> None:
    """The latest tiered offset, from version 9 on; nothing is tiered here."""
    list_offsets(talk, version, at_times(talk, BASE_MS).name, LATEST_TIERED)


@case("ListOffsets", 10, 11)
def earliest_pending_upload(talk: Talk, version: int) -> None:
    """The earliest offset still to be uploaded, from version 11 on."""
    list_offsets(talk, version, at_times(talk, BASE_MS).name, EARLIEST_PENDING_UPLOAD)


@case("ListOffsets", *EDGES)
def unknown_special_timestamp(talk: Talk, version: int) -> None:
    """A negative timestamp that means nothing."""
    list_offsets(talk, version, at_times(talk, BASE_MS).name, -7)


@case("ListOffsets", *VERSIONS)
def by_time(talk: Talk, version: int) -> None:
    """The first record at or after a time."""
    topic = at_times(talk, BASE_MS, BASE_MS + 100, BASE_MS + 200)
    for timestamp in (BASE_MS - 1, BASE_MS + 100, BASE_MS + 101, BASE_MS + 201):
        list_offsets(talk, version, topic.name, timestamp)


@case("ListOffsets", *EDGES)
def by_time_zero(talk: Talk, version: int) -> None:
    """Time 0 finds the first record."""
    list_offsets(talk, version, at_times(talk, BASE_MS).name, 0)


@case("ListOffsets", 11)
def by_time_inside_a_batch(talk: Talk, version: int) -> None:
    """The very record inside a batch is found."""
    topic = talk.new_topic()
    times = (BASE_MS, BASE_MS + 10, BASE_MS + 20)
    records = [NewRecord(value=b"v", timestamp_ms=time_ms) for time_ms in times]
    talk.fill(topic, built(records), built(records, compression=GZIP))
    list_offsets(talk, version, topic.name, BASE_MS + 10)
    list_offsets(talk, version, topic.name, BASE_MS + 15)


@case("ListOffsets", 11)
def by_time_with_times_out_of_order(talk: Talk, version: int) -> None:
    """The first record by offset whose time is late enough, not the nearest in time."""
    topic = at_times(talk, BASE_MS + 300, BASE_MS + 100, BASE_MS + 200)
    list_offsets(talk, version, topic.name, BASE_MS + 150)


@case("ListOffsets", 11)
def by_time_without_timestamps(talk: Talk, version: int) -> None:
    """Records without timestamps are found by no time."""
    topic = at_times(talk, -1)
    list_offsets(talk, version, topic.name, 0)
    list_offsets(talk, version, topic.name, MAX_TIMESTAMP)


@case("ListOffsets", *EDGES)
def of_an_unknown_topic(talk: Talk, version: int) -> None:
    """A topic that does not exist."""
    list_offsets(talk, version, talk.name("missing"), LATEST)


@case("ListOffsets", *EDGES)
def of_a_missing_partition(talk: Talk, version: int) -> None:
    """A partition index that the topic does not have."""
    list_offsets(talk, version, talk.new_topic().name, LATEST, partition=4)


@case("ListOffsets", 4, 11)
def with_the_current_leader_epoch(talk: Talk, version: int) -> None:
    """Naming the right leader epoch is fine."""
    list_offsets(talk, version, at_times(talk, BASE_MS).name, LATEST, current_leader_epoch=0)


@case("ListOffsets", 4, 11)
def with_a_future_leader_epoch(talk: Talk, version: int) -> None:
    """A leader epoch that the broker does not know yet."""
    list_offsets(talk, version, at_times(talk, BASE_MS).name, LATEST, current_leader_epoch=3)


@case("ListOffsets", 2, 11)
def read_committed(talk: Talk, version: int) -> None:
    """For readers of committed records the end is the last stable offset."""
    topic = at_times(talk, BASE_MS)
    list_offsets(talk, version, topic.name, LATEST, request={"isolation_level": 1})


@case("ListOffsets", 2)
def with_an_unknown_isolation_level(talk: Talk, version: int) -> None:
    """An isolation level that nobody has heard of."""
    topic = at_times(talk, BASE_MS)
    list_offsets(talk, version, topic.name, LATEST, request={"isolation_level": 9})


@case("ListOffsets", *EDGES)
def by_the_debugging_replica(talk: Talk, version: int) -> None:
    """Replica id -2 is the debugging consumer."""
    topic = at_times(talk, BASE_MS)
    list_offsets(talk, version, topic.name, LATEST, request={"replica_id": -2})


@case("ListOffsets", *EDGES)
def by_a_replica(talk: Talk, version: int) -> None:
    """A replica asks for the end of the log."""
    topic = at_times(talk, BASE_MS)
    list_offsets(talk, version, topic.name, LATEST, request={"replica_id": 77})


@case("ListOffsets", *EDGES)
def one_partition_twice(talk: Talk, version: int) -> None:
    """The same partition twice in one request."""
    topic = at_times(talk, BASE_MS)
    asked = [{"partition_index": 0, "timestamp": LATEST}] * 2
    topics = [{"name": topic.name, "partitions": asked}]
    talk.ask("ListOffsets", version, replica_id=-1, topics=topics)


@case("ListOffsets", *EDGES)
def without_topics(talk: Talk, version: int) -> None:
    """A request that names nothing."""
    talk.ask("ListOffsets", version, replica_id=-1, topics=[])


@case("ListOffsets", *EDGES)
def several_topics(talk: Talk, version: int) -> None:
    """Topics that exist and one that does not."""
    first, second = talk.new_topic("first"), talk.new_topic("second", partitions=2)
    talk.fill(second, batch("v"), partition=1)
    asked = [{"partition_index": index, "timestamp": LATEST} for index in (0, 1)]
    topics = [
        {"name": name, "partitions": asked}
        for name in (first.name, second.name, talk.name("missing"))
    ]
    talk.ask("ListOffsets", version, replica_id=-1, topics=topics)
