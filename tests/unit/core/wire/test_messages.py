"""The table of messages: every API of the broker, its module and its versions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tidelog.core.wire import messages
from tidelog.core.wire.headers import FLEXIBLE_FROM
from tidelog.core.wire.messages import MESSAGES
from tidelog.core.wire.schema import Array, Nested, Struct

# What Kafka 4.3 has; of InitProducerId all but the version for two-phase commit.
VERSIONS = {
    0: ("Produce", 3, 13),
    1: ("Fetch", 4, 18),
    2: ("ListOffsets", 1, 11),
    3: ("Metadata", 0, 13),
    9: ("OffsetFetch", 1, 10),
    10: ("FindCoordinator", 0, 6),
    18: ("ApiVersions", 0, 4),
    19: ("CreateTopics", 2, 7),
    20: ("DeleteTopics", 1, 6),
    21: ("DeleteRecords", 0, 2),
    22: ("InitProducerId", 0, 5),
    23: ("OffsetForLeaderEpoch", 2, 4),
    24: ("AddPartitionsToTxn", 0, 5),
    25: ("AddOffsetsToTxn", 0, 4),
    26: ("EndTxn", 0, 5),
    28: ("TxnOffsetCommit", 0, 5),
    32: ("DescribeConfigs", 1, 4),
    37: ("CreatePartitions", 0, 3),
    43: ("ElectLeaders", 0, 2),
    44: ("IncrementalAlterConfigs", 0, 1),
    46: ("ListPartitionReassignments", 0, 0),
    52: ("Vote", 0, 2),
    53: ("BeginQuorumEpoch", 0, 1),
    54: ("EndQuorumEpoch", 0, 1),
    55: ("DescribeQuorum", 0, 2),
    56: ("AlterPartition", 2, 3),
    57: ("UpdateFeatures", 0, 2),
    58: ("Envelope", 0, 0),
    59: ("FetchSnapshot", 0, 1),
    60: ("DescribeCluster", 0, 2),
    61: ("DescribeProducers", 0, 0),
    62: ("BrokerRegistration", 0, 4),
    63: ("BrokerHeartbeat", 0, 2),
    64: ("UnregisterBroker", 0, 0),
    65: ("DescribeTransactions", 0, 0),
    67: ("AllocateProducerIds", 0, 0),
    73: ("AssignReplicasToDirs", 0, 0),
    75: ("DescribeTopicPartitions", 0, 0),
}


@pytest.mark.parametrize("api_key", VERSIONS)
def test_an_api_has_a_request_and_an_answer_in_kafkas_versions(api_key: int) -> None:
    name, lowest, highest = VERSIONS[api_key]
    request, response = MESSAGES[api_key]

    assert (request.__name__, response.__name__) == (f"{name}Request", f"{name}Response")
    for message in (request, response):
        assert message.api_key == api_key
        assert message.versions == range(lowest, highest + 1)
        assert message.flexible_from == FLEXIBLE_FROM[api_key]


def test_the_table_has_these_apis_and_no_others() -> None:
    assert list(MESSAGES) == list(VERSIONS)
    with pytest.raises(KeyError):
        MESSAGES[4]


def test_every_message_module_belongs_to_the_table() -> None:
    folder = Path(messages.__file__).parent
    files = {path.stem for path in folder.glob("api_*.py")}

    assert files == {request.__module__.rpartition(".")[2] for request, _ in MESSAGES.values()}


def structs_below(struct: type[Struct]) -> list[type[Struct]]:
    found = [struct]
    for field in struct.schema:
        kind = field.kind.item if isinstance(field.kind, Array) else field.kind
        if isinstance(kind, Nested):
            found += structs_below(kind.struct)
    return found


@pytest.mark.parametrize("api_key", VERSIONS)
def test_every_field_exists_in_some_version_and_tags_count_from_zero(api_key: int) -> None:
    for message in MESSAGES[api_key]:
        for struct in structs_below(message):
            for field in struct.schema:
                assert any(field.exists_in(v) for v in message.versions), (struct, field.name)
            tags = sorted(field.tag for field in struct.schema if field.tag is not None)
            assert tags == list(range(len(tags))), struct


def test_asking_for_one_api_imports_no_other() -> None:
    program = (
        "import sys; from tidelog.core.wire.messages import MESSAGES; MESSAGES[18];"
        "print(*sorted(m for m in sys.modules if '.api_' in m))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert run.stdout.split() == ["tidelog.core.wire.messages.api_18_api_versions"], run.stderr
