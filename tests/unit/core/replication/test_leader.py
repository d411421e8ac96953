"""The rules of a leader: where the high watermark may go, who may join, who must leave."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.core.replication.in_sync import Proposal
from tidelog.core.replication.leader import Leadership
from tidelog.core.replication.progress import FollowerSession

LAG_MS = 1_000


@dataclass
class Cluster:
    """Brokers by id; each has its id as its broker epoch."""

    barred: set[int] = field(default_factory=set)

    def may_join(self, broker_id: int, broker_epoch: int | None) -> bool:
        return broker_id not in self.barred and broker_epoch == broker_id

    def is_alive(self, broker_id: int) -> bool:
        return broker_id not in self.barred


def leadership(
    *isr: int, replicas: int = 3, start_offset: int = 0, cluster: Cluster | None = None
) -> Leadership:
    return Leadership(
        node_id=1,
        leader_epoch=5,
        partition_epoch=0,
        start_offset=start_offset,
        replicas=tuple(range(1, replicas + 1)),
        isr=isr,
        lag_ms_max=LAG_MS,
        cluster=cluster or Cluster(),
        now_ms=0,
    )


def fetch(
    leader: Leadership,
    broker_id: int,
    offset: int,
    *,
    leader_end: int,
    now_ms: int = 0,
    broker_epoch: int | None = None,
    session: FollowerSession | None = None,
) -> None:
    leader.followers[broker_id].on_fetch(
        fetch_offset=offset,
        log_start_offset=0,
        broker_epoch=broker_id if broker_epoch is None else broker_epoch,
        leader_end_offset=leader_end,
        session=session,
        now_ms=now_ms,
    )


def covered(leader: Leadership, end: int, *, isr_min: int = 1, now_ms: int = 0) -> int | None:
    return leader.high_watermark_candidate(
        own_end_offset=end, leader_end_offset=end, isr_min=isr_min, now_ms=now_ms
    )


@pytest.mark.scenario("D3-O3")
def test_the_high_watermark_is_the_least_end_in_the_set() -> None:
    leader = leadership(1, 2, 3)
    fetch(leader, 2, 1000, leader_end=1005)
    fetch(leader, 3, 1000, leader_end=1005)
    assert covered(leader, 1005) == 1000


def test_nothing_moves_before_everyone_in_the_set_was_heard_of() -> None:
    leader = leadership(1, 2, 3)
    fetch(leader, 2, 10, leader_end=10)
    assert covered(leader, 10) is None


@pytest.mark.scenario("X-13")
def test_below_the_minimum_nothing_moves() -> None:
    leader = leadership(1)
    assert covered(leader, 10, isr_min=2) is None
    assert covered(leader, 10, isr_min=1) == 10


def test_a_proposed_member_does_not_help_to_reach_the_minimum() -> None:
    leader = leadership(1)
    fetch(leader, 2, 10, leader_end=10)
    assert leader.propose_member(2, high_watermark=0) is not None
    assert covered(leader, 10, isr_min=2) is None


@pytest.mark.scenario("D3-O3")
def test_who_is_caught_up_and_may_join_is_waited_for() -> None:
    cluster = Cluster()
    leader = leadership(1, cluster=cluster)
    fetch(leader, 2, 7, leader_end=7, now_ms=0)
    assert covered(leader, 10, now_ms=LAG_MS) == 7
    assert covered(leader, 10, now_ms=LAG_MS + 1) == 10

    cluster.barred = {2}
    assert covered(leader, 10, now_ms=LAG_MS) == 10


def test_who_never_fetched_and_is_not_in_the_set_is_not_waited_for() -> None:
    assert covered(leadership(1), 10) == 10


@pytest.mark.parametrize(
    ("offset", "high_watermark", "start_offset", "joins"),
    [
        (10, 10, 5, True),
        (9, 10, 5, False),
        (12, 10, 12, True),
        (11, 10, 12, False),
    ],
)
@pytest.mark.scenario("D3-R5")
def test_a_follower_joins_with_all_that_may_be_committed(
    offset: int, high_watermark: int, start_offset: int, joins: bool
) -> None:
    leader = leadership(1, start_offset=start_offset)
    fetch(leader, 2, offset, leader_end=20)
    proposal = leader.propose_member(2, high_watermark=high_watermark)
    assert (proposal is not None) is joins
    if joins:
        assert proposal == Proposal((1, 2), leader_epoch=5, partition_epoch=0)


@pytest.mark.scenario("X-9")
@pytest.mark.scenario("X-10")
def test_who_is_fenced_or_is_its_former_self_does_not_join() -> None:
    cluster = Cluster(barred={2})
    leader = leadership(1, cluster=cluster)
    fetch(leader, 2, 10, leader_end=10)
    assert leader.propose_member(2, high_watermark=10) is None

    cluster.barred = set()
    fetch(leader, 2, 10, leader_end=10, broker_epoch=99)
    assert leader.propose_member(2, high_watermark=10) is None

    fetch(leader, 2, 10, leader_end=10)
    assert leader.propose_member(2, high_watermark=10) is not None


def test_while_a_proposal_is_pending_nobody_else_is_proposed() -> None:
    leader = leadership(1)
    for broker_id in (2, 3):
        fetch(leader, broker_id, 10, leader_end=10)
    assert leader.propose_member(2, high_watermark=10) is not None
    assert leader.propose_member(3, high_watermark=10) is None
    assert leader.propose_without_slow(leader_end_offset=99, now_ms=99_999) is None

    leader.on_metadata(replicas=(1, 2, 3), isr=(1, 2), partition_epoch=1)
    assert leader.propose_member(3, high_watermark=10) == Proposal((1, 2, 3), 5, 1)


@pytest.mark.scenario("X-11")
def test_metadata_that_tells_what_an_answer_told_before_does_not_void_the_next_proposal() -> None:
    leader = leadership(1)
    for broker_id in (2, 3):
        fetch(leader, broker_id, 10, leader_end=10)
    leader.propose_member(2, high_watermark=10)
    leader.in_sync.commit((1, 2), partition_epoch=1)
    proposal = leader.propose_member(3, high_watermark=10)

    assert not leader.on_metadata(replicas=(1, 2, 3), isr=(1, 2), partition_epoch=1)
    assert leader.in_sync.pending is proposal
    assert leader.in_sync.maximal == {1, 2, 3}


def test_who_could_not_join_when_it_fetched_may_do_so_later_while_it_fetches() -> None:
    cluster = Cluster(barred={2})
    leader = leadership(1, cluster=cluster)
    session = cast("FollowerSession", SimpleNamespace(used_at_ms=0))
    fetch(leader, 2, 10, leader_end=10, session=session)
    cluster.barred = set()

    def proposed(*, end: int, now_ms: int) -> Proposal | None:
        return leader.propose_any(high_watermark=10, leader_end_offset=end, now_ms=now_ms)

    assert proposed(end=11, now_ms=0) is None
    assert proposed(end=10, now_ms=LAG_MS + 1) is None
    session.used_at_ms = 500
    assert proposed(end=10, now_ms=LAG_MS + 1) == Proposal((1, 2), 5, 0)


@pytest.mark.scenario("X-39")
def test_whoever_was_not_caught_up_for_too_long_leaves() -> None:
    leader = leadership(1, 2, 3)
    fetch(leader, 2, 10, leader_end=10, now_ms=500)
    fetch(leader, 3, 10, leader_end=10, now_ms=900)

    def proposed(now_ms: int, end: int = 11) -> Proposal | None:
        return leader.propose_without_slow(leader_end_offset=end, now_ms=now_ms)

    assert proposed(LAG_MS + 500) is None
    assert proposed(99_999, end=10) is None
    assert proposed(LAG_MS + 501) == Proposal((1, 3), 5, 0)


def test_a_member_without_a_replica_leaves() -> None:
    leader = leadership(1, 2, 7, replicas=2)
    assert leader.propose_without_slow(leader_end_offset=0, now_ms=0) == Proposal((1, 2), 5, 0)


def test_replicas_that_the_metadata_adds_and_takes_away() -> None:
    leader = leadership(1, 2, replicas=2)
    fetch(leader, 2, 10, leader_end=10)
    assert leader.on_metadata(replicas=(1, 3), isr=(1,), partition_epoch=1)
    assert list(leader.followers) == [3]
    assert not leader.on_metadata(replicas=(1, 2), isr=(1, 2), partition_epoch=0)
    assert list(leader.followers) == [3]


def test_the_low_watermark_is_the_least_log_start_of_the_living() -> None:
    cluster = Cluster()
    leader = leadership(1, 2, 3, cluster=cluster)
    assert leader.low_watermark(5) is None
    for broker_id in (2, 3):
        fetch(leader, broker_id, 10, leader_end=10)
    assert leader.low_watermark(5) == 0
    cluster.barred = {2, 3}
    assert leader.low_watermark(5) == 5


def test_a_proposal_names_the_processes_that_fetched() -> None:
    leader = leadership(1, 2, 3)
    fetch(leader, 3, 10, leader_end=10, broker_epoch=33)
    assert leader.broker_epochs((1, 2, 3)) == [(1, None), (2, None), (3, 33)]


OFFSETS = st.integers(0, 20)
FOLLOWER = st.tuples(
    st.none() | OFFSETS,  # where it fetched, if it did
    st.booleans(),  # in the committed set
    st.booleans(),  # in the proposal
    st.booleans(),  # may join
    st.sampled_from([0, LAG_MS, LAG_MS + 1]),  # how long ago it was caught up
)


@pytest.mark.scenario("D3-O3")
@given(followers=st.lists(FOLLOWER, max_size=4), own=OFFSETS, isr_min=st.integers(1, 4))
def test_the_rule_of_the_high_watermark_for_any_cluster(
    followers: list[tuple[int | None, bool, bool, bool, int]], own: int, isr_min: int
) -> None:
    cluster = Cluster()
    committed, proposed = [1], [1]
    for broker_id, (_, in_set, in_proposal, may_join, _) in enumerate(followers, start=2):
        committed += [broker_id] if in_set else []
        proposed += [broker_id] if in_proposal else []
        if not may_join:
            cluster.barred.add(broker_id)
    leader = leadership(*committed, replicas=len(followers) + 1, cluster=cluster)
    if set(proposed) != set(committed):
        leader.in_sync.propose(tuple(proposed))
    ends: list[int | None] = [own]
    now_ms = 5_000
    for broker_id, (offset, in_set, in_proposal, may_join, ago_ms) in enumerate(followers, start=2):
        if offset is not None:
            fetch(leader, broker_id, offset, leader_end=offset, now_ms=now_ms - ago_ms)
        is_joining = offset is not None and (ago_ms <= LAG_MS or offset == own) and may_join
        if in_set or in_proposal or is_joining:
            ends.append(offset)
    expected: int | None = None
    if len(committed) >= isr_min and None not in ends:
        expected = min(end for end in ends if end is not None)

    found = covered(leader, own, isr_min=isr_min, now_ms=now_ms)
    if expected is None and len(committed) >= isr_min and found is not None:
        # Somebody unknown counts only as long as it could hold the high watermark back.
        raise AssertionError((found, ends))
    assert found == expected


def test_a_proposal_names_the_processes_that_had_fetched_when_it_was_made() -> None:
    """A restarted follower that fetches before the controller hears of it changes nothing."""
    leader = leadership(1, 2)
    for broker_id in (2, 3):
        fetch(leader, broker_id, 10, leader_end=10, broker_epoch=broker_id)
    assert leader.propose_member(3, high_watermark=10) is not None

    fetch(leader, 3, 0, leader_end=10, broker_epoch=33)

    assert leader.proposed_by == [(1, None), (2, 2), (3, 3)]
