"""WriteTxnMarkers (api key 27): the end of transactions, written to the partitions of a broker.

Transaction coordinators send it, and admin clients that abort a hanging transaction. Version 2
tells the version of the transaction protocol.
"""

from __future__ import annotations

from tidelog.core.wire.schema import (
    Message,
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    string,
)


class WritableTxnMarkerTopic(Struct):
    """The partitions of one topic."""

    name: str = string()
    partition_indexes: list[int] = array(int32)


class WritableTxnMarker(Struct):
    """One producer's transaction, its result, and the partitions that get the marker."""

    producer_id: int = int64()
    producer_epoch: int = int16()
    transaction_result: bool = boolean()  # true: commit
    topics: list[WritableTxnMarkerTopic] = array(WritableTxnMarkerTopic)
    coordinator_epoch: int = int32()
    transaction_version: int = int8("2+", ignorable=True)


class WriteTxnMarkersRequest(Message, api_key=27, versions="1-2", flexible_from=1):
    """Markers to be written."""

    markers: list[WritableTxnMarker] = array(WritableTxnMarker)


class WritableTxnMarkerPartitionResult(Struct):
    """Whether one partition has the marker."""

    partition_index: int = int32()
    error_code: int = int16()


class WritableTxnMarkerTopicResult(Struct):
    """The outcome for one topic."""

    name: str = string()
    partitions: list[WritableTxnMarkerPartitionResult] = array(WritableTxnMarkerPartitionResult)


class WritableTxnMarkerResult(Struct):
    """The outcome for one producer's transaction."""

    producer_id: int = int64()
    topics: list[WritableTxnMarkerTopicResult] = array(WritableTxnMarkerTopicResult)


class WriteTxnMarkersResponse(Message, api_key=27, versions="1-2", flexible_from=1):
    """Which markers are written."""

    markers: list[WritableTxnMarkerResult] = array(WritableTxnMarkerResult)
