"""Transactions of a producer in both protocols: their requests, and the order of its calls."""

from __future__ import annotations

import pytest

from tests.unit.client.producer.transaction_story import (
    ADD_OFFSETS,
    ADD_PARTITIONS,
    CALLS,
    COMMIT_OFFSETS,
    END,
    FIND,
    GROUP,
    INIT,
    PRODUCE,
    SOURCE,
    S,
    TransactionStory,
)
from tidelog.client.events import TransactionStateChanged
from tidelog.client.producer.config import TransactionProtocol
from tidelog.client.producer.outcome import SendRefused
from tidelog.client.producer.transaction_errors import (
    TRANSACTION_ABORTED,
    IllegalTransactionState,
    TransactionFatal,
)
from tidelog.client.producer.transaction_outcome import TransactionFailed, TransactionOk
from tidelog.client.producer.transaction_states import NEXT, become
from tidelog.core.model.ids import ProducerIdAndEpoch

both = pytest.mark.parametrize("protocol", ["classic", "2"])


# Without trouble


def test_classic_requests_come_in_the_order_of_the_classic_protocol() -> None:
    story = TransactionStory("classic")
    assert story.wait(story.init()) == TransactionOk(ProducerIdAndEpoch(4_000, 0))
    assert story.apis() == [FIND, INIT]
    story.cluster.seen.clear()

    story.begin()
    story.send("a")
    story.settle()
    offsets = story.send_offsets(7)
    committed = story.commit()

    assert story.wait(committed) == TransactionOk(ProducerIdAndEpoch(4_000, 0))
    assert offsets.is_ok and story.state is S.READY
    assert story.apis() == [ADD_PARTITIONS, PRODUCE, ADD_OFFSETS, FIND, COMMIT_OFFSETS, END]
    versions = {each.request.api_key: each.version for each in story.cluster.seen}
    assert (versions[ADD_PARTITIONS], versions[PRODUCE]) == (3, 11)
    assert (versions[ADD_OFFSETS], versions[COMMIT_OFFSETS], versions[END]) == (4, 4, 4)
    assert story.coordinator.committed == ["a"] and story.coordinator.offsets == {SOURCE: 7}


def test_version_2_adds_by_writing_and_changes_the_epoch_with_each_transaction() -> None:
    story = TransactionStory("2")
    story.ready()
    for value, commits in (("a", True), ("b", False), ("c", True)):
        story.begin()
        story.send(value)
        story.send_offsets(ord(value))
        ended = story.commit() if commits else story.abort()
        story.wait(ended)

    assert story.apis(ADD_PARTITIONS, ADD_OFFSETS) == []
    versions = {each.request.api_key: each.version for each in story.cluster.seen}
    assert versions[PRODUCE] == 13 and versions[COMMIT_OFFSETS] == versions[END] == 5
    assert story.coordinator.committed == ["a", "c"]
    assert story.coordinator.offsets == {SOURCE: ord("c")}
    assert story.numbers()[0] == (0, 0) and story.numbers()[-1] == (2, 0)


def test_in_the_classic_protocol_sequences_go_on() -> None:
    story = TransactionStory("classic")
    story.ready()
    for value in "abc":
        story.open(value)
        story.wait(story.commit())

    assert story.numbers() == [(0, 0), (0, 1), (0, 2)]
    assert story.coordinator.committed == ["a", "b", "c"]


@both
def test_the_member_of_the_group_is_named(protocol: str) -> None:
    story = TransactionStory(protocol)
    story.ready()
    story.begin()
    story.wait(story.send_offsets(7))

    (seen,) = story.requests(COMMIT_OFFSETS)
    named = seen.request
    assert (named.group_id, named.generation_id, named.member_id) == GROUP[:3]
    assert named.group_instance_id == GROUP.group_instance_id
    ((offset,),) = [topic.partitions for topic in named.topics]
    assert (offset.committed_offset, offset.committed_leader_epoch) == (7, 1)
    assert offset.committed_metadata == "m"


@both
def test_nothing_is_asked_about_a_transaction_without_records(protocol: str) -> None:
    story = TransactionStory(protocol)
    story.ready()
    for end in (story.commit, story.abort):
        story.begin()
        assert end().is_ok
    assert story.apis() == []


@both
def test_a_commit_waits_for_records_that_linger_or_are_blocked(protocol: str) -> None:
    story = TransactionStory(protocol, linger_ms=60_000)
    story.ready()
    story.begin()
    story.send("lingers")
    story.cluster.create("late")
    blocked = story.send("blocked", topic="late")
    assert blocked.is_blocked
    began_ms = story.clock.now_ms

    assert isinstance(story.wait(story.commit()), TransactionOk)

    assert story.clock.now_ms - began_ms < 1_000
    assert sorted(story.coordinator.committed) == ["blocked", "lingers"]


@both
def test_an_abort_gives_up_what_has_not_left(protocol: str) -> None:
    story = TransactionStory(protocol, linger_ms=60_000)
    story.ready()
    story.begin()
    lingering, blocked = story.send("lingers"), story.send("blocked", topic="unknown")

    story.wait(story.abort())

    for each in (lingering, blocked):
        assert isinstance(each.outcome, SendRefused), each.outcome
        assert each.outcome.error == TRANSACTION_ABORTED
    assert PRODUCE not in story.apis() and story.state is S.READY


# Which protocol


@pytest.mark.parametrize(
    ("level", "versions", "expected"),
    [
        (2, {}, TransactionProtocol.VERSION_2),
        (3, {}, TransactionProtocol.VERSION_2),
        (1, {}, TransactionProtocol.CLASSIC),
        (None, {}, TransactionProtocol.CLASSIC),
        (2, {END: (0, 4)}, TransactionProtocol.CLASSIC),
        (2, {PRODUCE: (3, 11)}, TransactionProtocol.CLASSIC),
    ],
)
def test_the_protocol_is_what_the_cluster_has_finalized(
    level: int | None, versions: dict[int, tuple[int, int]], expected: TransactionProtocol
) -> None:
    story = TransactionStory(level=level)
    story.cluster.api_versions.update(versions)
    story.ready()
    assert story.manager.protocol is expected


def test_a_cluster_that_is_upgraded_is_noticed_between_two_transactions() -> None:
    """The producer takes the next epoch, since in version 2 each transaction has its own."""
    story = TransactionStory(level=1)
    story.ready()
    story.open("old")
    story.coordinator.level, story.coordinator.features_epoch = 2, 2
    story.cluster.create("elsewhere", leader=3)
    story.send("b", topic="elsewhere")  # a new connection brings the news
    assert isinstance(story.wait(story.commit()), TransactionOk)
    assert story.manager.protocol is TransactionProtocol.VERSION_2
    bump = story.requests(INIT)[-1].request
    assert (bump.producer_id, bump.producer_epoch) == (4_000, 0)

    story.open("new")
    story.wait(story.commit())
    assert story.numbers()[-1] == (1, 0)
    assert story.requests(PRODUCE)[-1].version >= 12


# The order of calls


@pytest.mark.parametrize("name", [each for each in CALLS if each != "init_transactions"])
def test_nothing_goes_before_init_transactions(name: str) -> None:
    story = TransactionStory()
    with pytest.raises(IllegalTransactionState, match="call init_transactions first"):
        CALLS[name](story)


@pytest.mark.parametrize("name", [each for each in CALLS if each != "begin_transaction"])
def test_outside_of_a_transaction_only_begin_is_allowed(name: str) -> None:
    story = TransactionStory()
    story.ready()
    with pytest.raises(IllegalTransactionState):
        CALLS[name](story)
    story.begin()
    with pytest.raises(IllegalTransactionState, match="commit or abort the open transaction"):
        story.begin()


@pytest.mark.parametrize("name", [each for each in CALLS if each != "commit_transaction"])
def test_a_commit_under_way_must_end_first(name: str) -> None:
    story = TransactionStory()
    story.ready()
    story.open("a")
    committing = story.commit()
    with pytest.raises(IllegalTransactionState, match="commit_transaction is not over"):
        CALLS[name](story)

    assert story.commit() is committing, "the same call waits for the same end"
    assert isinstance(story.wait(committing), TransactionOk)


def test_every_state_follows_only_where_the_table_says_so() -> None:
    for old in S:
        for new in S:
            if new in NEXT[old]:
                assert become(old, new) is new
            else:
                with pytest.raises(AssertionError):
                    become(old, new)


# What others see


def test_state_changes_are_traced() -> None:
    story = TransactionStory()
    story.ready()
    story.open("a")
    story.wait(story.commit())
    events = [each for each in story.host.trace.events if isinstance(each, TransactionStateChanged)]
    assert [(each.state, each.producer_epoch) for each in events] == [
        ("INITIALIZING", None),
        ("READY", 0),
        ("IN_TRANSACTION", 0),
        ("COMMITTING", 0),
        ("READY", 1),
    ]


def test_a_closed_producer_fails_every_call() -> None:
    story = TransactionStory()
    initializing = story.init()
    story.host.do(story.producer.abort)
    assert isinstance(initializing.outcome, TransactionFailed)
    with pytest.raises(TransactionFatal, match="PRODUCER_CLOSED"):
        story.begin()
