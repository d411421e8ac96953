"""Where answers keep their error codes: one line per message."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tidelog.core.wire.messages.api_02_list_offsets import ListOffsetsResponse
from tidelog.core.wire.messages.api_03_metadata import MetadataResponse
from tidelog.core.wire.messages.api_09_offset_fetch import OffsetFetchResponse
from tidelog.core.wire.messages.api_10_find_coordinator import FindCoordinatorResponse
from tidelog.core.wire.messages.api_18_api_versions import ApiVersionsResponse
from tidelog.core.wire.messages.api_22_init_producer_id import InitProducerIdResponse
from tidelog.core.wire.messages.api_24_add_partitions_to_txn import AddPartitionsToTxnResponse
from tidelog.core.wire.messages.api_25_add_offsets_to_txn import AddOffsetsToTxnResponse
from tidelog.core.wire.messages.api_26_end_txn import EndTxnResponse
from tidelog.core.wire.messages.api_28_txn_offset_commit import TxnOffsetCommitResponse
from tidelog.core.wire.messages.api_32_describe_configs import DescribeConfigsResponse
from tidelog.core.wire.messages.api_61_describe_producers import DescribeProducersResponse
from tidelog.core.wire.messages.api_65_describe_transactions import DescribeTransactionsResponse
from tidelog.core.wire.schema import Message


def codes_in(answer: Message) -> Iterable[int]:
    """Every error code of an answer; none if it has none."""
    return _WHERE[type(answer)](answer)


def _alone(answer: Any) -> Iterable[int]:
    return (answer.error_code,)


def _by_partition(answer: Any) -> Iterable[int]:
    return (each.error_code for topic in answer.topics for each in topic.partitions)


def _offsets(answer: Any) -> Iterable[int]:
    for group in answer.groups:
        yield group.error_code
        for topic in group.topics:
            yield from (each.error_code for each in topic.partitions)


def _added(answer: Any) -> Iterable[int]:
    for topic in answer.results_by_topic_v3_and_below:
        yield from (each.partition_error_code for each in topic.results_by_partition)


_WHERE: dict[type[Message], Callable[[Any], Iterable[int]]] = {
    ListOffsetsResponse: _by_partition,
    MetadataResponse: lambda answer: (each.error_code for each in answer.topics),
    OffsetFetchResponse: _offsets,
    FindCoordinatorResponse: lambda answer: (each.error_code for each in answer.coordinators),
    ApiVersionsResponse: _alone,
    InitProducerIdResponse: _alone,
    AddPartitionsToTxnResponse: _added,
    AddOffsetsToTxnResponse: _alone,
    EndTxnResponse: _alone,
    TxnOffsetCommitResponse: _by_partition,
    DescribeConfigsResponse: lambda answer: (each.error_code for each in answer.results),
    DescribeProducersResponse: _by_partition,
    DescribeTransactionsResponse: lambda answer: (
        each.error_code for each in answer.transaction_states
    ),
}
