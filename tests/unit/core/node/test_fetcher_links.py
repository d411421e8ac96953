"""A follower's link to its leader: trouble on it, sessions, bad records, ranges, durability."""

from __future__ import annotations

import pytest

from tests.unit.core.metadata.given import state, topic
from tests.unit.core.node.brokers import Brokers
from tidelog.core.model.errors import ErrorCode
from tidelog.core.replication.events import (
    FollowerBackedOff,
    FollowerStartedAnew,
    FollowerTruncated,
    IsrProposed,
)
from tidelog.core.wire.record_batch import batches


def pauses(cluster: Brokers, broker_id: int) -> list[int | None]:
    return [each.wait_ms for each in cluster.traces[broker_id].of(FollowerBackedOff)]


@pytest.mark.scenario("D3-T3")
def test_a_dead_leader_is_tried_again_and_again_with_at_most_a_second_in_between() -> None:
    cluster = Brokers(1, 2)
    cluster.produce(1, "one")
    before = cluster.data(2)
    cluster.kill(1)
    cluster.pass_time(5_000)

    assert pauses(cluster, 2) == [20, 40, 80, 160, 320, 640, 1_000, 1_000, 1_000, 1_000]
    assert cluster.data(2) == before

    cluster.start(1)
    cluster.pass_time(1_000)
    assert cluster.produce(1, "two").code == ErrorCode.NONE


def test_a_new_leader_is_asked_at_once_whatever_happened_before() -> None:
    cluster = Brokers(1, 2, 3)
    cluster.kill(1)
    cluster.pass_time(5_000)
    cluster.elect(2, (2, 3))
    assert cluster.produce(2, "one").code == ErrorCode.NONE
    assert cluster.nodes[3].fetcher_links.leaders() == [2]


def test_a_leader_that_restarted_has_forgotten_the_session_and_gets_another() -> None:
    cluster = Brokers(1, 2)
    cluster.produce(1, "one")
    cluster.kill(1)
    cluster.start(1)
    cluster.elect(1, (1, 2))
    cluster.pass_time(20)
    assert cluster.produce(1, "two").code == ErrorCode.NONE
    assert cluster.data(1) == cluster.data(2)


def test_a_new_partition_is_asked_for_while_the_leader_still_holds_a_fetch() -> None:
    """Otherwise its first record would wait for the end of that fetch, half a second away."""
    cluster = Brokers(1, 2)
    cluster.produce(1, "one")

    cluster.apply(*topic("payments", 8, state(1, 2)))
    cluster.run()

    partition = cluster.nodes[1].partition("payments", 0)
    assert partition is not None and partition.leadership is not None
    assert partition.leadership.followers[2].log_end_offset == 0, "it has asked, in no time at all"
    assert pauses(cluster, 2) == []
    assert cluster.produce(1, "two").code == ErrorCode.NONE
    assert cluster.data(1) == cluster.data(2)
    assert cluster.nodes[1].fetch_sessions._sessions.keys() == {
        cluster.nodes[2].fetcher_links._links[1]._session_id
    }, "still the same session"


def test_a_fetch_that_waits_while_its_leader_learns_of_the_partition_counts_with_the_next() -> None:
    """It began with "unknown" and ended with "nothing new": the follower says no more about it."""
    cluster = Brokers(1, 2, grants_proposals=False)
    cluster.produce(1, "one")
    records = topic("payments", 8, state(1, 2, isr=(1,)))
    cluster.apply(*records, to=(2,))
    cluster.run()
    for record in records:
        cluster.tell(1, record)
    cluster.pass_time(2_000)

    partition = cluster.nodes[1].partition("payments", 0)
    assert partition is not None and partition.leadership is not None
    assert partition.leadership.followers[2].log_end_offset == 0
    assert [each.isr for each in cluster.traces[1].of(IsrProposed)] == [(1, 2)]


def test_an_answer_to_an_older_question_is_not_taken_for_one_to_the_newer() -> None:
    """The leader refuses the old leader epoch while the follower asks with the new one already."""
    cluster = Brokers(1, 2)
    cluster.produce(1, "one")

    election = cluster.elect(1, (1, 2), to=())
    cluster.tell(1, election)
    cluster.tell(2, election)
    cluster.run()

    assert None not in pauses(cluster, 2), "nothing is left to wait for"
    assert cluster.produce(1, "two").code == ErrorCode.NONE


def test_a_session_that_the_leader_dropped_is_begun_anew_without_a_pause() -> None:
    cluster = Brokers(1, 2)
    cluster.produce(1, "one")
    sessions = cluster.nodes[1].fetch_sessions
    for session_id in list(sessions._sessions):
        sessions.remove(session_id)
    cluster.pass_time(500)

    assert cluster.produce(1, "two").code == ErrorCode.NONE
    assert pauses(cluster, 2) == []


def test_a_leader_that_hears_of_its_leadership_later_is_asked_again_soon() -> None:
    cluster = Brokers(1, 2, 3)
    election = cluster.elect(3, (3, 2, 1), to=(1, 2))
    cluster.pass_time(50)
    assert pauses(cluster, 2) == [20, 40]

    cluster.tell(3, election)
    cluster.pass_time(40)
    assert cluster.produce(3, "one").code == ErrorCode.NONE


def test_a_follower_that_hears_of_a_new_leader_epoch_later_waits_for_that() -> None:
    cluster = Brokers(1, 2)
    election = cluster.elect(1, (1, 2), to=(1,))
    cluster.run()
    assert pauses(cluster, 2) == [None]

    cluster.tell(2, election)
    assert cluster.produce(1, "one").code == ErrorCode.NONE


@pytest.mark.scenario("X-33")
def test_a_damaged_batch_is_not_copied() -> None:
    cluster = Brokers(1, 2)
    cluster.produce(1, "one")
    cluster.kill(2)
    cluster.produce(1, "two", acks=1)
    segment = cluster.partition(1).log.files.segments[-1].file
    cluster.disks[1].files[segment.path][-1] ^= 1
    cluster.start(2)
    cluster.run()

    assert cluster.end(2) == 1
    assert pauses(cluster, 2) == [20]
    assert cluster.high_watermark(1) == 1


@pytest.mark.scenario("X-33")
@pytest.mark.parametrize("finds", ["by memory", "by headers"])
@pytest.mark.parametrize(
    ("field", "byte", "bit"),
    [
        ("base offset, backwards", 7, 0),
        ("base offset, forwards", 6, 3),
        ("base offset, negative", 0, 7),
        ("batch length, as if it were cut", 9, 2),
        ("batch length, too short", 8, 7),
        ("leader epoch, as if of a later leader", 13, 5),
        ("leader epoch, negative", 12, 7),
        ("magic", 16, 1),
        ("checksum", 18, 0),
        ("last offset delta", 26, 2),
        ("producer id", 43, 0),
        ("count of records", 60, 1),
    ],
)
def test_a_damaged_header_is_neither_copied_nor_asked_for_hotly(
    field: str, byte: int, bit: int, finds: str
) -> None:
    """The follower comes back later and later, and goes on by itself once it is repaired.

    A leader that finds its batches by memory sends the bytes, one that goes by headers refuses.
    """
    cluster = Brokers(1, 2)
    cluster.produce(1, "one")
    cluster.kill(2)
    cluster.produce(1, "two", acks=1)
    cluster.produce(1, "three", acks=1)
    segment = cluster.partition(1).log.files.segments[-1]
    if finds == "by headers":
        segment.tail = None
    data = cluster.disks[1].files[segment.file.path]
    position = [at for at, _ in batches(bytes(data))][1]
    data[position + byte] ^= 1 << bit
    cluster.start(2)
    cluster.pass_time(3_000)

    assert cluster.end(2) == 1, field
    assert pauses(cluster, 2) == [20, 40, 80, 160, 320, 640, 1_000, 1_000]
    assert cluster.high_watermark(1) == 1

    data[position + byte] ^= 1 << bit
    cluster.pass_time(1_000)
    assert cluster.end(2) == cluster.high_watermark(1) == 3
    assert cluster.data(1) == cluster.data(2)


@pytest.mark.scenario("X-33")
def test_an_empty_follower_does_not_begin_where_a_damaged_base_offset_says() -> None:
    """Its leader's first batch may begin earlier, but then it holds what was asked for."""
    cluster = Brokers(1, 2)
    cluster.kill(2)
    cluster.wipe(2)
    cluster.fence(2)
    cluster.set_isr(1)
    for number in range(5):
        cluster.produce(1, f"{number}")
    assert cluster.client(1).delete_before(4).code == ErrorCode.NONE
    segment = cluster.partition(1).log.files.segments[-1].file
    data = cluster.disks[1].files[segment.path]
    position = [at for at, _ in batches(bytes(data))][4]
    data[position + 7] ^= 4
    cluster.register(2, broker_epoch=70)
    cluster.start(2, broker_epoch=70)
    cluster.pass_time(1_000)

    assert cluster.batches(2) == []
    data[position + 7] ^= 4
    cluster.pass_time(1_000)
    assert cluster.batches(2) == [(4, 0)]


@pytest.mark.scenario("X-37")
def test_a_follower_whose_end_the_leader_no_longer_has_begins_anew_where_the_leader_does() -> None:
    cluster = Brokers(1, 2)
    cluster.produce(1, "one")
    cluster.kill(2)
    cluster.fence(2)
    cluster.set_isr(1)
    for number in range(5):
        cluster.produce(1, f"{number}")
    deleted = cluster.client(1).delete_before(4)
    assert deleted.code == ErrorCode.NONE
    cluster.register(2, broker_epoch=70)
    cluster.start(2, broker_epoch=70)
    cluster.run()

    (anew,) = cluster.traces[2].of(FollowerStartedAnew)
    assert (anew.from_end_offset, anew.at_offset) == (1, 4)
    assert cluster.partition(2).log_start_offset == 4
    assert cluster.batches(2) == [(4, 0), (5, 0)]
    assert cluster.partition(1).isr == (1, 2)
    assert cluster.epochs(2) == [(0, 4)]


def test_a_follower_that_shares_nothing_the_leader_still_has_keeps_nothing() -> None:
    """All that would be left of it lies before the leader's start, and may be another history.

    1. Broker 1 writes 0 to 3 and hears nothing of broker 2, which leads from 0 on.
    2. Broker 2 writes 0 to 3 as well, and deletes what is before 2: it knows no older leader epoch.
    3. Broker 1 is told that its own leader epoch ends at 2. Were it cut there, 0 and 1 would be
       records that nobody else ever had, and come back with the power if the new start is lost.
    """
    cluster = Brokers(1, 2)
    cluster.held = {(1, 2), (2, 1)}
    for number in range(4):
        cluster.produce(1, f"lost-{number}", acks=1)
    cluster.elect(2, (2,))
    for number in range(4):
        cluster.produce(2, f"{number}", acks=1)
    cluster.fence(1)
    assert cluster.client(2).delete_before(2).code == ErrorCode.NONE
    cluster.unfence(1)

    cluster.held.clear()
    cluster.run()

    (anew,) = cluster.traces[1].of(FollowerStartedAnew)
    assert (anew.from_end_offset, anew.at_offset) == (4, 2)
    assert cluster.batches(1) == [(2, 1), (3, 1)]
    assert cluster.epochs(1) == cluster.epochs(2) == [(1, 2)]


def test_a_leader_that_begins_in_the_middle_of_a_batch_sends_the_whole_batch() -> None:
    cluster = Brokers(1, 2)
    cluster.kill(2)
    cluster.fence(2)
    cluster.set_isr(1)
    cluster.client(1).produce("a", "b", "c", "d")
    deleted = cluster.client(1).delete_before(2)
    assert deleted.code == ErrorCode.NONE
    cluster.register(2, broker_epoch=70)
    cluster.start(2, broker_epoch=70)
    cluster.run()

    assert (cluster.partition(2).log_start_offset, cluster.end(2)) == (2, 4)
    assert cluster.batches(2) == [(0, 0)]


def test_a_follower_that_is_longer_than_its_leader_is_cut_to_it() -> None:
    """An unclean election, and a leader whose leader epochs say nothing of ours."""
    cluster = Brokers(1, 2)
    cluster.held = {(1, 2)}
    for number in range(3):
        cluster.produce(1, f"{number}", acks=1)
    cluster.held.clear()
    cluster.elect(2, (2,))
    cluster.run()

    assert cluster.end(1) == 0
    assert cluster.traces[1].of(FollowerTruncated)[0].to_end_offset == 0


def test_a_partition_that_is_deleted_is_no_longer_copied() -> None:
    from tests.unit.core.metadata.given import topic_id
    from tests.unit.core.node.brokers import NUMBER
    from tidelog.core.metadata.records import RemoveTopicRecord

    cluster = Brokers(1, 2)
    cluster.produce(1, "one")
    cluster.apply(RemoveTopicRecord(topic_id=topic_id(NUMBER)))
    cluster.pass_time(1_000)
    assert cluster.nodes[2].fetcher_links.leaders() == []


@pytest.mark.parametrize("fsync", ["group", "always"])
def test_a_follower_acknowledges_what_is_on_its_disk_and_nothing_else(fsync: str) -> None:
    cluster = Brokers(1, 2, settings={"tidelog.fsync": fsync})
    assert cluster.produce(1, "one").code == ErrorCode.NONE
    cluster.syncs[2] = False
    asked = cluster.produce(1, "two")

    assert cluster.end(2) == 2
    assert cluster.partition(2).log.synced_end_offset == 1
    assert cluster.high_watermark(1) == 1
    assert not asked.is_answered

    cluster.syncs[2] = True
    cluster.run()
    assert asked.code == ErrorCode.NONE


def test_a_leader_counts_its_own_share_when_it_is_on_its_disk() -> None:
    cluster = Brokers(1, 2, settings={"tidelog.fsync": "group"})
    cluster.syncs[1] = False
    asked = cluster.produce(1, "one")
    assert cluster.partition(2).log.synced_end_offset == 1
    assert cluster.high_watermark(1) == 0
    assert not asked.is_answered

    cluster.syncs[1] = True
    cluster.run()
    assert asked.code == ErrorCode.NONE


def test_without_syncs_a_follower_does_not_wait_for_its_disk() -> None:
    cluster = Brokers(1, 2)
    cluster.syncs = {1: False, 2: False}
    assert cluster.produce(1, "one").code == ErrorCode.NONE


def test_a_follower_that_comes_back_on_a_new_link_leaves_no_second_session_behind() -> None:
    cluster = Brokers(1, 2)
    cluster.produce(1, "one")
    for _ in range(3):
        link = cluster.nodes[2].fetcher_links._links[1].link
        assert link is not None
        link.end("reset", cluster.now_ms)
        cluster.nodes[2].end_of_tick(cluster.now_ms)
        cluster.pass_time(1_000)
    assert len(cluster.nodes[1].fetch_sessions) == 1
    assert cluster.produce(1, "two").code == ErrorCode.NONE
