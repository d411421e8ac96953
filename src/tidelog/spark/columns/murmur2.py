"""Java's default partitioner for a column of keys.

Keys are hashed side by side, four bytes of each per step; keys that are much longer than the others
are hashed one by one. Whether a record without a key stays with a partition or goes around is the
caller's choice.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidelog.client.producer.partitioner import murmur2
from tidelog.spark.columns.binary_columns import sized_bytes
from tidelog.spark.columns.varints import Numbers, Octets

_SEED = np.uint32(0x9747B28C)
_FACTOR = np.uint32(0x5BD1E995)
_POSITIVE = np.uint32(0x7FFFFFFF)
_PARALLEL_MIN = 8
"""With fewer keys in parallel the plain hash is faster."""


def partitions_of(
    keys: pa.Array, count: int, *, without_key: int | NDArray[np.integer] | None = None
) -> NDArray[np.int32]:
    """The partition of each key, out of `count`; nulls get theirs from `without_key`."""
    if count < 1:
        raise ValueError(f"a topic with {count} partitions")
    hashed = (murmur2_of(keys) & _POSITIVE) % np.uint32(count)
    partitions = hashed.astype(np.int32)
    if keys.null_count:
        if without_key is None:
            raise ValueError(f"{keys.null_count} of {len(keys)} keys are null: no partition given")
        is_null = keys.is_null().to_numpy(zero_copy_only=False)
        partitions[is_null] = np.broadcast_to(without_key, len(keys))[is_null]
    return partitions


def murmur2_of(keys: pa.Array) -> NDArray[np.uint32]:
    """Kafka's hash of each key; a null is hashed like an empty key."""
    column = sized_bytes(keys)
    sizes = np.maximum(column.sizes, 0)
    order = np.argsort(-sizes, kind="stable")
    starts, sizes = column.starts[order], sizes[order]
    mixed = sizes.astype(np.uint32) ^ _SEED
    step = 0
    while (under_way := int(np.searchsorted(-sizes, -4 * step - 3))) >= _PARALLEL_MIN:
        mixed[:under_way] *= _FACTOR
        mixed[:under_way] ^= _stirred(_words(column.data, starts[:under_way] + 4 * step))
        step += 1
    mixed = _with_tail(mixed, column.data, starts, sizes)
    mixed ^= mixed >> 13
    mixed *= _FACTOR
    mixed ^= mixed >> 15
    for row in range(under_way):
        key = column.data[starts[row] : starts[row] + sizes[row]]
        mixed[row] = murmur2(key.tobytes())
    hashes = np.empty_like(mixed)
    hashes[order] = mixed
    return hashes


def _words(data: Octets, positions: Numbers) -> NDArray[np.uint32]:
    """The four bytes at each position, as a number. They are known to be there."""
    windows = np.ndarray((len(data) - 3,), dtype="<u4", buffer=data, strides=(1,))
    return windows[positions].astype(np.uint32, copy=False)


def _stirred(words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    words = words * _FACTOR
    words ^= words >> 24
    words *= _FACTOR
    return words


def _with_tail(
    mixed: NDArray[np.uint32], data: Octets, starts: Numbers, sizes: Numbers
) -> NDArray[np.uint32]:
    """The one to three bytes after the last whole word."""
    rests = sizes & 3
    if not rests.any():
        return mixed
    tails = np.zeros(len(sizes), dtype=np.uint32)
    for index in range(3):
        octets = data.take(starts + (sizes - rests) + index, mode="clip")
        octets[rests <= index] = 0
        tails |= octets.astype(np.uint32) << (8 * index)
    return np.where(rests > 0, (mixed ^ tails) * _FACTOR, mixed)
