"""Every request of the sink's protocol: whom it asks, and in which versions.

The highest versions are those of the classic transaction protocol, also on a cluster that offers
newer ones: see the package's first page.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from tidelog.client.admin.question import AnyNode, LeaderOf, TheBroker
from tidelog.core.wire.messages.api_00_produce import ProduceRequest
from tidelog.core.wire.messages.api_02_list_offsets import ListOffsetsRequest
from tidelog.core.wire.messages.api_03_metadata import MetadataRequest
from tidelog.core.wire.messages.api_09_offset_fetch import OffsetFetchRequest
from tidelog.core.wire.messages.api_10_find_coordinator import FindCoordinatorRequest
from tidelog.core.wire.messages.api_18_api_versions import ApiVersionsRequest
from tidelog.core.wire.messages.api_22_init_producer_id import InitProducerIdRequest
from tidelog.core.wire.messages.api_24_add_partitions_to_txn import AddPartitionsToTxnRequest
from tidelog.core.wire.messages.api_25_add_offsets_to_txn import AddOffsetsToTxnRequest
from tidelog.core.wire.messages.api_26_end_txn import EndTxnRequest
from tidelog.core.wire.messages.api_28_txn_offset_commit import TxnOffsetCommitRequest
from tidelog.core.wire.messages.api_32_describe_configs import DescribeConfigsRequest
from tidelog.core.wire.messages.api_61_describe_producers import DescribeProducersRequest
from tidelog.core.wire.messages.api_65_describe_transactions import DescribeTransactionsRequest
from tidelog.core.wire.schema import Message


class Kind(Enum):
    """What a coordinator coordinates, by the protocol's numbers."""

    GROUP = 0
    TRANSACTIONS = 1


class CoordinatorOf(NamedTuple):
    """The sink's own coordinator of this kind, wherever it is now."""

    kind: Kind


TRANSACTIONS = CoordinatorOf(Kind.TRANSACTIONS)
GROUP = CoordinatorOf(Kind.GROUP)

Whom = AnyNode | LeaderOf | TheBroker | CoordinatorOf


class Step(Enum):
    """A place in the protocol; one API may stand at several."""

    VERSIONS = "ask what the cluster speaks"
    CONFIGS = "read the brokers' settings"
    TOPICS = "look at the topics"
    FIND = "find a coordinator"
    IDENTIFY = "take the sink over"
    READ_MARKER = "read the marker"
    NEXT_EPOCH = "get a new producer epoch"
    END_OFFSETS = "read the end offsets"
    ADD_PARTITIONS = "add partitions to the transaction"
    PRODUCE = "write records"
    TRANSACTION = "look at the transaction"
    PRODUCERS = "look at the producers of a partition"
    ADD_OFFSETS = "add the marker to the transaction"
    MARK = "write the marker"
    COMMIT = "commit"
    ABORT = "abort"


class Spoken(NamedTuple):
    """The request of a step and the versions that it may have."""

    request: type[Message]
    version_min: int
    version_max: int


SPOKEN: dict[Step, Spoken] = {
    Step.VERSIONS: Spoken(ApiVersionsRequest, 0, 4),
    Step.CONFIGS: Spoken(DescribeConfigsRequest, 1, 4),
    Step.TOPICS: Spoken(MetadataRequest, 4, 12),
    Step.FIND: Spoken(FindCoordinatorRequest, 4, 5),
    Step.IDENTIFY: Spoken(InitProducerIdRequest, 3, 5),
    Step.READ_MARKER: Spoken(OffsetFetchRequest, 8, 9),
    Step.NEXT_EPOCH: Spoken(InitProducerIdRequest, 3, 5),
    Step.END_OFFSETS: Spoken(ListOffsetsRequest, 2, 9),
    Step.ADD_PARTITIONS: Spoken(AddPartitionsToTxnRequest, 0, 3),
    Step.PRODUCE: Spoken(ProduceRequest, 7, 11),
    Step.TRANSACTION: Spoken(DescribeTransactionsRequest, 0, 0),
    Step.PRODUCERS: Spoken(DescribeProducersRequest, 0, 0),
    Step.ADD_OFFSETS: Spoken(AddOffsetsToTxnRequest, 0, 4),
    Step.MARK: Spoken(TxnOffsetCommitRequest, 3, 4),
    Step.COMMIT: Spoken(EndTxnRequest, 0, 4),
    Step.ABORT: Spoken(EndTxnRequest, 0, 4),
}
assert set(SPOKEN) == set(Step)
