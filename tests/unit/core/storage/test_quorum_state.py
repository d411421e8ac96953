"""The file of a voter's promises: durable, with its name, before `write` returns."""

from __future__ import annotations

import pytest

from tests.unit.core.node.metadata.test_node_identity import a_disk
from tidelog.core.storage import quorum_state
from tidelog.core.storage.quorum_state import CorruptQuorumState, RememberedElection

DIRECTORY = "data/__cluster_metadata-0"


def test_nothing_is_remembered_before_the_first_election() -> None:
    assert quorum_state.read(a_disk("data"), DIRECTORY) is None


@pytest.mark.parametrize(
    "election",
    [RememberedElection(3, None, 2), RememberedElection(3, 1, None), RememberedElection(0, 1, 1)],
)
def test_what_was_written_survives_a_power_loss(election: RememberedElection) -> None:
    disk = a_disk("data")
    quorum_state.write(disk, DIRECTORY, RememberedElection(2, 1, 1))
    quorum_state.write(disk, DIRECTORY, election)

    disk.store.lose_power()

    assert quorum_state.read(disk, DIRECTORY) == election


def test_a_vote_is_never_half_written() -> None:
    disk = a_disk("data")
    quorum_state.write(disk, DIRECTORY, RememberedElection(2, None, 1))
    temporary = disk.open(f"{DIRECTORY}/quorum-state.tmp")
    temporary.append(b'{"leaderId":3,"leaderEp')

    disk.store.lose_power()

    assert quorum_state.read(disk, DIRECTORY) == RememberedElection(2, None, 1)
    quorum_state.write(disk, DIRECTORY, RememberedElection(3, None, 2))
    assert quorum_state.read(disk, DIRECTORY) == RememberedElection(3, None, 2)


def test_kafkas_older_file_is_read_too() -> None:
    disk = a_disk(DIRECTORY)
    file = disk.open(f"{DIRECTORY}/quorum-state")
    file.append(
        b'{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}'
    )

    assert quorum_state.read(disk, DIRECTORY) == RememberedElection(2, 1, None)


@pytest.mark.parametrize("content", [b"", b"\0\0\0", b"[]", b'{"leaderId":1}', b"\xff{"])
def test_garbage_is_not_taken_for_a_vote(content: bytes) -> None:
    disk = a_disk(DIRECTORY)
    disk.open(f"{DIRECTORY}/quorum-state").append(content)

    with pytest.raises(CorruptQuorumState):
        quorum_state.read(disk, DIRECTORY)
