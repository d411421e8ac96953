"""The rules of a follower: whatever two logs have been through, they become the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidelog.core.model.errors import ErrorCode
from tidelog.core.replication.follower import (
    EpochEnd,
    NewStart,
    Reaction,
    back_off_ms,
    new_start,
    reaction_to,
    truncation_end,
)
from tidelog.core.storage.epochs import LeaderEpochs

Record = tuple[int, str]
"""The leader epoch in which it was written, and what it says."""


class Replica:
    """A log of single records with its leader epochs, and the protocol between two of them."""

    def __init__(self, *records: Record) -> None:
        self.records: list[Record] = []
        self.epochs = LeaderEpochs()
        for record in records:
            self.append(record)

    @property
    def log_end_offset(self) -> int:
        return len(self.records)

    def leader_epoch_end(self, leader_epoch: int) -> tuple[int, int] | None:
        return self.epochs.end_of(leader_epoch, log_end_offset=self.log_end_offset)

    def append(self, record: Record) -> None:
        self.epochs.assign(record[0], self.log_end_offset)
        self.records.append(record)

    def lead(self, leader_epoch: int) -> None:
        self.epochs.assign(leader_epoch, self.log_end_offset)

    def cut(self, end_offset: int) -> None:
        del self.records[end_offset:]
        self.epochs.cut_end(self.log_end_offset)

    def diverging(self, last_fetched: int | None, fetch_offset: int) -> EpochEnd | None:
        """As a leader: how far the asker's log is like this one."""
        if last_fetched is None:
            return None
        end = self.leader_epoch_end(last_fetched)
        assert end is not None, "a leader knows where its own leader epoch begins"
        if end[0] < last_fetched or end[1] < fetch_offset:
            return EpochEnd(*end)
        return None

    def fetch_from(self, leader: Replica, records_max: int) -> bool:
        """One round as a follower. False: there was nothing to do."""
        found = leader.diverging(self.epochs.latest, self.log_end_offset)
        if found is not None:
            before = self.log_end_offset, self.epochs.entries
            self.cut(truncation_end(self, diverging=found))
            assert (self.log_end_offset, self.epochs.entries) != before, "each cut is progress"
            return True
        start = self.log_end_offset
        for record in leader.records[start : start + records_max]:
            self.append(record)
        return self.log_end_offset > start

    def catch_up(self, leader: Replica) -> None:
        for _ in range(200):
            if not self.fetch_from(leader, 2):
                return
        raise AssertionError("never comes to an end")


def records(*written: str) -> list[Record]:
    """Like "0a": leader epoch 0, record a."""
    return [(int(each[0]), each[1:]) for each in written]


@pytest.mark.scenario("X-1")
def test_nothing_is_cut_before_the_leader_was_asked() -> None:
    """KIP-101: the follower's high watermark would have told it to drop m2."""
    leader = Replica(*records("0m1", "0m2"))
    leader.lead(1)
    follower = Replica(*records("0m1", "0m2"))
    follower.catch_up(leader)
    assert follower.records == records("0m1", "0m2")


@pytest.mark.scenario("X-2")
def test_two_records_at_one_offset_become_one() -> None:
    """KIP-101: A kept m2, B lost it and wrote m3 in its place."""
    leader = Replica(*records("0m1"))
    leader.lead(1)
    leader.append((1, "m3"))
    follower = Replica(*records("0m1", "0m2"))
    follower.catch_up(leader)
    assert follower.records == leader.records == records("0m1", "1m3")
    assert follower.epochs.entries == leader.epochs.entries


@pytest.mark.scenario("X-3")
def test_a_leader_epoch_that_the_leader_never_heard_of() -> None:
    """KIP-279: B led in 1 and wrote more than A had; A leads in 2."""
    leader = Replica(*records("0a", "0b"))
    leader.lead(2)
    leader.append((2, "x"))
    follower = Replica(*records("0a", "1c", "1d", "1e"))
    follower.catch_up(leader)
    assert follower.records == leader.records
    assert follower.epochs.entries == leader.epochs.entries == [(0, 0), (2, 2)]


@pytest.mark.scenario("D2-C3")
@pytest.mark.parametrize(
    ("follower", "diverging", "end_offset"),
    [
        pytest.param(["0a", "0b", "0c"], (0, 2), 2, id="the leader has less of the epoch"),
        pytest.param(["0a", "1b", "1c"], (0, 3), 1, id="we have less of the epoch"),
        pytest.param(["0a", "3b"], (2, 5), 1, id="an epoch that we never heard of"),
        pytest.param(["4a", "4b"], (2, 1), 0, id="older than all that we have"),
        pytest.param([], (2, 1), 0, id="nothing at all"),
    ],
)
def test_the_table_of_cuts(
    follower: list[str], diverging: tuple[int, int], end_offset: int
) -> None:
    replica = Replica(*records(*follower))
    assert truncation_end(replica, diverging=EpochEnd(*diverging)) == end_offset


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["elect", "append", "append", "fetch", "fetch", "fetch"]),
        st.integers(0, 2),
        st.integers(1, 3),
    ),
    max_size=60,
)


@pytest.mark.scenario("D2-G2")
@settings(max_examples=400)
@given(STEPS)
def test_whoever_leads_and_however_often_that_changes_the_logs_become_the_same(
    steps: list[tuple[str, int, int]],
) -> None:
    """Any of three may be elected at any time, also one that lacks records: unclean elections."""
    replicas = [Replica(), Replica(), Replica()]
    leader, leader_epoch, written = 0, 0, 0
    replicas[0].lead(0)
    for step, who, count in steps:
        if step == "elect":
            leader, leader_epoch = who, leader_epoch + 1
            before = list(replicas[who].records)
            replicas[who].lead(leader_epoch)
            assert replicas[who].records == before, "a new leader changes nothing"
        elif step == "append":
            for _ in range(count):
                written += 1
                replicas[leader].append((leader_epoch, str(written)))
        elif who != leader:
            replicas[who].fetch_from(replicas[leader], count)
    replicas[leader].append((leader_epoch, "at last"))
    for replica in replicas:
        if replica is not replicas[leader]:
            replica.catch_up(replicas[leader])
            assert replica.records == replicas[leader].records
            assert replica.epochs.entries == replicas[leader].epochs.entries


@pytest.mark.parametrize(
    ("end", "leader_start", "leader_end", "expected"),
    [
        pytest.param(10, 20, 30, NewStart(20, starts_anew=True), id="deleted behind our back"),
        pytest.param(10, 0, 5, NewStart(5, starts_anew=False), id="longer than the leader"),
        pytest.param(10, 0, 30, NewStart(10, starts_anew=False), id="in range again"),
        pytest.param(10, 10, 10, NewStart(10, starts_anew=False), id="at both ends"),
        pytest.param(10, 5, 5, NewStart(5, starts_anew=False), id="an empty leader before us"),
    ],
)
@pytest.mark.scenario("X-37")
def test_an_offset_out_of_range(
    end: int, leader_start: int, leader_end: int, expected: NewStart
) -> None:
    found = new_start(
        log_end_offset=end, leader_start_offset=leader_start, leader_end_offset=leader_end
    )
    assert found == expected


@pytest.mark.scenario("D3-T3")
def test_pauses_double_up_to_the_configured_one() -> None:
    pauses = [back_off_ms(failures, at_most_ms=1_000) for failures in (1, 2, 3, 6, 7, 500)]
    assert pauses == [20, 40, 80, 640, 1_000, 1_000]
    assert back_off_ms(1, at_most_ms=0) == 0


def test_what_a_follower_does_about_errors() -> None:
    assert reaction_to(ErrorCode.FENCED_LEADER_EPOCH) is Reaction.AWAIT_METADATA
    assert reaction_to(ErrorCode.OFFSET_OUT_OF_RANGE) is Reaction.FIND_RANGE
    for code in (ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER, 9_999):
        assert reaction_to(code) is Reaction.BACK_OFF
