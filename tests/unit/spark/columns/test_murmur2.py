"""Keys go where Java's producer sends them, whatever they are beside."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as kafka_python_murmur2

from tidelog.client.producer.partitioner import murmur2, partition_for_key
from tidelog.spark.columns.murmur2 import murmur2_of, partitions_of

KNOWN = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
    b"": 275646681,
}


def column(keys: Sequence[bytes | None]) -> pa.Array:
    return pa.array(keys, pa.binary())


@pytest.mark.parametrize("copies", [1, 30], ids=["one by one", "side by side"])
def test_hashes_are_those_of_the_java_client(copies: int) -> None:
    hashes = murmur2_of(column(list(KNOWN) * copies))

    assert hashes.view(np.int32).tolist() == list(KNOWN.values()) * copies


@given(st.lists(st.binary(max_size=60), max_size=60), st.integers(min_value=1, max_value=1_000))
def test_partitions_are_those_of_other_producers(keys: list[bytes], count: int) -> None:
    hashes = murmur2_of(column(keys)).tolist()

    assert hashes == [murmur2(key) for key in keys]
    assert hashes == [kafka_python_murmur2(key) % 2**32 for key in keys]
    assert partitions_of(column(keys), count).tolist() == [
        partition_for_key(key, count) for key in keys
    ]


@pytest.mark.parametrize("size", range(10))
def test_keys_of_one_size(size: int) -> None:
    keys = [bytes([index] * size) for index in range(50)]

    assert murmur2_of(column(keys)).tolist() == [murmur2(key) for key in keys]


def test_a_few_long_keys_among_many() -> None:
    keys = [bytes(range(256)) * 40, *[b"short%d" % index for index in range(100)], b"y" * 9_999]

    assert murmur2_of(column(keys)).tolist() == [murmur2(key) for key in keys]


def test_a_slice_and_text_are_hashed_as_their_bytes() -> None:
    texts = [f"kü{index}" for index in range(40)]
    keys = pa.array(texts).slice(7, 20)

    assert murmur2_of(keys).tolist() == [murmur2(text.encode()) for text in texts[7:27]]


def test_records_without_a_key_go_where_the_caller_says() -> None:
    keys = column([b"a", None, b"", None])
    own = [partition_for_key(b"a", 8), partition_for_key(b"", 8)]

    assert partitions_of(keys, 8, without_key=5).tolist() == [own[0], 5, own[1], 5]
    one_each = np.array([0, 1, 2, 3])
    assert partitions_of(keys, 8, without_key=one_each).tolist() == [own[0], 1, own[1], 3]
    with pytest.raises(ValueError, match="2 of 4 keys are null"):
        partitions_of(keys, 8)


def test_a_topic_has_partitions() -> None:
    with pytest.raises(ValueError, match="0 partitions"):
        partitions_of(column([b"a"]), 0)
