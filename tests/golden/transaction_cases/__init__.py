"""All cases of a broker that coordinates transactions: importing this package declares them."""

from tests.golden.cases.registry import TRANSACTION_CASES
from tests.golden.transaction_cases import (  # noqa: F401
    added_offsets,
    added_partitions,
    coordinators,
    descriptions,
    ends,
    lives,
    markers,
    produced,
    producer_ids,
    reads,
    txn_offsets,
    verified_partitions,
)

__all__ = ["TRANSACTION_CASES"]
