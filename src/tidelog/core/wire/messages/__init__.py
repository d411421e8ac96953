"""The messages of the protocol: one module per API, named by its key.

`MESSAGES[key]` gives the request and answer class of an API that Tidelog knows; a module is
imported when its key is first asked for, so that starting a broker does not pay for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final

from tidelog.core.wire.schema import Message

_NAMES: Final = {
    0: "Produce",
    1: "Fetch",
    2: "ListOffsets",
    3: "Metadata",
    9: "OffsetFetch",
    10: "FindCoordinator",
    18: "ApiVersions",
    19: "CreateTopics",
    20: "DeleteTopics",
    21: "DeleteRecords",
    22: "InitProducerId",
    23: "OffsetForLeaderEpoch",
    24: "AddPartitionsToTxn",
    25: "AddOffsetsToTxn",
    26: "EndTxn",
    28: "TxnOffsetCommit",
    32: "DescribeConfigs",
    37: "CreatePartitions",
    43: "ElectLeaders",
    44: "IncrementalAlterConfigs",
    46: "ListPartitionReassignments",
    52: "Vote",
    53: "BeginQuorumEpoch",
    54: "EndQuorumEpoch",
    55: "DescribeQuorum",
    56: "AlterPartition",
    57: "UpdateFeatures",
    58: "Envelope",
    59: "FetchSnapshot",
    60: "DescribeCluster",
    61: "DescribeProducers",
    62: "BrokerRegistration",
    63: "BrokerHeartbeat",
    64: "UnregisterBroker",
    65: "DescribeTransactions",
    67: "AllocateProducerIds",
    73: "AssignReplicasToDirs",
    75: "DescribeTopicPartitions",
}

Pair = tuple[type[Message], type[Message]]


class _Messages(Mapping[int, Pair]):
    """API key to (request, answer), filled as it is asked."""

    def __init__(self) -> None:
        self._known: dict[int, Pair] = {}

    def __getitem__(self, api_key: int) -> Pair:
        pair = self._known.get(api_key)
        if pair is None:
            pair = self._known[api_key] = _load(api_key, _NAMES[api_key])
        return pair

    def __iter__(self) -> Iterator[int]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)


MESSAGES: Final[Mapping[int, Pair]] = _Messages()


def _load(api_key: int, name: str) -> Pair:
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    module = import_module(f"{__name__}.api_{api_key:02}{snake}")
    return getattr(module, f"{name}Request"), getattr(module, f"{name}Response")
