"""The first batch of every attempt has another number of records, so that no two look the same.

Kafka takes a batch for a repetition when its first and its last sequence are those of one that it
has, whatever its bytes are:

  1. Attempt 1 of a task writes its first batch, sequences 0 to 99, and dies.
  2. Attempt 2 reads its input in another order and writes its own first batch.
  3. With sequences 0 to 99 it would be acknowledged, and never be written: the partition would have
     100 records of attempt 1 and the others of attempt 2. With 0 to 41 it is refused: error 45.
"""

from __future__ import annotations

RECORDS_MAX = 251
"""A prime, so that salts that count in steps differ for long."""


def first_batch_records_max(salt: int, *, available: int | None = None) -> int:
    """How many records an attempt's first batch may have; at least one.

    `available` records are at hand: a first batch that takes all of them would hide the salt.
    """
    choices = RECORDS_MAX if available is None else max(1, min(RECORDS_MAX, available - 1))
    return 1 + salt % choices
