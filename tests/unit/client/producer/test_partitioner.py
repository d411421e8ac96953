"""Which partition: Kafka's own hash of keys, and a partition to stay with for the others."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from tests.unit.client.fake_answers import metadata
from tests.unit.client.fake_cluster import FakeCluster
from tests.unit.client.producer.given import Story
from tidelog.client.cluster_metadata import ClusterMetadata
from tidelog.client.producer.partitioner import murmur2, partition_for_key
from tidelog.core.wire.messages.api_03_metadata import MetadataRequest, MetadataRequestTopic


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
        (b"", 275646681),
    ],
)
def test_keys_are_hashed_as_the_java_client_hashes_them(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected % 2**32


def test_a_negative_hash_still_names_a_partition() -> None:
    assert all(0 <= partition_for_key(bytes([each]), 7) < 7 for each in range(256))


def test_records_without_a_key_stay_together_for_a_batch_and_then_move_on() -> None:
    story = Story(partitions=4, batch_size=1_000, linger_ms=5)
    tickets = [story.send("x" * 100, partition=None) for _ in range(200)]
    story.settle()

    partitions = [ticket.partition for ticket in tickets]
    runs = sum(1 for one, next_ in pairwise(partitions) if one != next_)
    assert 5 <= runs <= 25, "200 records of about 110 bytes, some ten to a batch"
    assert len(Counter(partitions)) == 4


def test_records_without_a_key_avoid_partitions_without_a_leader() -> None:
    story = Story(partitions=4, batch_size=200)
    story.log.elect(None)
    tickets = [story.send("x" * 100, partition=None) for _ in range(50)]
    story.clock.run_for(5_000)

    assert 0 not in {ticket.partition.index for ticket in tickets if ticket.partition}
    assert all(ticket.is_done for ticket in tickets)


def test_a_key_decides_the_partition_even_without_a_leader() -> None:
    cluster = FakeCluster()
    cluster.create("t", partitions=3)
    known = ClusterMetadata(())
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    known.apply(metadata(cluster, cluster.brokers[1], request))  # type: ignore[arg-type]

    assert known.partition_count("t") == 3
    assert partition_for_key(b"abc", 3) == 479470107 % 3
