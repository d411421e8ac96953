"""The task: joins, writes in order with several batches on the wire, and finds second writers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.fake_cluster import Close, DropAnswer, once
from tests.unit.client.sink.stage import P0, P1, Run, Stage, encoded
from tidelog.client.sink.errors import BatchLost, Fenced, GuardFailed, SinkRefused
from tidelog.client.sink.values import BatchTicket
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages.api_00_produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from tidelog.core.wire.messages.api_24_add_partitions_to_txn import AddPartitionsToTxnRequest
from tidelog.core.wire.record_batch import read_header

MANY = [str(number) for number in range(40)]
ONES = [1] * len(MANY)


class Given:
    """A batch that has begun."""

    def __init__(self) -> None:
        self.stage = Stage()
        self.run: Run = self.stage.run().take_over()
        ticket = self.run.begin(0)
        assert isinstance(ticket, BatchTicket)
        self.ticket = ticket

    def sequences(self, place: TopicPartition = P0) -> list[int]:
        """Of the batches as they stand in the log."""
        headers = [read_header(each) for each in self.stage.cluster.partitions[place].log]
        return [each.base_sequence for each in headers if not each.is_control]


def refusal(code: ErrorCode) -> Any:
    def rule(_: int, request: Any) -> Any:
        if not isinstance(request, ProduceRequest):
            return None
        return ProduceResponse(
            responses=[
                TopicProduceResponse(
                    name=topic.name,
                    partition_responses=[
                        PartitionProduceResponse(index=each.index, error_code=code, base_offset=-1)
                        for each in topic.partition_data
                    ],
                )
                for topic in request.topic_data
            ]
        )

    return rule


def lose(verdict: Any) -> Any:
    return once(lambda _, request: verdict if isinstance(request, ProduceRequest) else None)


def test_receipts_tell_what_was_written_where() -> None:
    given = Given()

    first, second = given.stage.write(given.ticket, {1: ["x"], 0: MANY[:7]})

    assert (first.topic_partition, second.topic_partition) == (P0, P1)
    assert (first.first_sequence, first.next_sequence, first.records) == (0, 7, 7)
    assert (first.base_offset, first.next_offset) == (0, 7)
    assert (first.producer_id, first.producer_epoch) == given.ticket.identity
    assert second.records == 1


def test_partitions_join_the_transaction_when_they_are_written_and_together() -> None:
    given = Given()
    before = given.stage.asked(AddPartitionsToTxnRequest)
    host, task = given.stage.task(given.ticket)
    for place in (P0, P1):
        batch = encoded(given.ticket.identity, ["x"])
        task.append(place, batch, now_ms=host.now_ms)
    host.do(lambda now_ms: None)

    given.stage.cluster.clock.run_until(lambda: task.is_settled)

    assert len(task.receipts()) == 2
    assert given.stage.asked(AddPartitionsToTxnRequest) == before + 1


def test_a_task_that_writes_nothing_has_no_receipts_and_asks_for_nothing() -> None:
    given = Given()
    before = len(given.stage.cluster.seen)

    assert given.stage.write(given.ticket, {}) == []

    assert len(given.stage.cluster.seen) == before


def test_several_batches_are_on_the_wire_and_keep_their_order() -> None:
    given = Given()

    given.stage.write(given.ticket, {0: MANY}, sizes=ONES)

    assert given.stage.cluster["out-0"].values() == MANY
    assert given.sequences() == list(range(40))


@pytest.mark.parametrize("verdict", [DropAnswer(), Close()], ids=["written", "not received"])
@pytest.mark.parametrize("nth", [1, 2, 3, 7])
def test_lost_answers_cost_nothing_and_double_nothing(verdict: Any, nth: int) -> None:
    given = Given()
    seen: list[int] = []

    def rule(_: int, request: Any) -> Any:
        if isinstance(request, ProduceRequest):
            seen.append(1)
            return verdict if len(seen) == nth else None
        return None

    given.stage.cluster.rules.insert(0, rule)

    receipts = given.stage.write(given.ticket, {0: MANY}, sizes=ONES)

    assert given.stage.cluster["out-0"].values() == MANY
    given.run.commit(receipts)
    assert given.stage.committed() == sorted(MANY)


@pytest.mark.parametrize("code", [6, 74, 75, 3, 7, 19, 20, 51, 2, 56])
def test_what_can_be_cured_is_sent_again_with_the_same_sequences(code: int) -> None:
    given = Given()
    given.stage.cluster.rules.insert(0, once(refusal(ErrorCode(code))))

    given.stage.write(given.ticket, {0: MANY}, sizes=ONES)

    assert given.stage.cluster["out-0"].values() == MANY


def test_a_leader_that_moves_is_followed() -> None:
    given = Given()
    partition = given.stage.cluster["out-0"]
    moved: list[bool] = []

    def rule(_: int, request: Any) -> Any:
        if isinstance(request, ProduceRequest) and len(partition.log) == 10 and not moved:
            moved.append(True)
            partition.elect(1)
        return None

    given.stage.cluster.rules.insert(0, rule)

    receipts = given.stage.write(given.ticket, {0: MANY}, sizes=ONES)

    assert moved and partition.values() == MANY
    given.run.commit(receipts)


def test_a_leader_that_dies_is_followed() -> None:
    given = Given()
    cluster = given.stage.cluster
    partition = cluster["out-0"]
    moved: list[bool] = []

    def rule(_: int, request: Any) -> Any:
        if isinstance(request, ProduceRequest) and len(partition.log) == 10 and not moved:
            moved.append(True)
            cluster.kill(3)
            for each in cluster.partitions.values():
                each.elect(2)
            return Close()
        return None

    cluster.rules.insert(0, rule)

    given.run.commit(given.stage.write(given.ticket, {0: MANY}, sizes=ONES))

    assert given.stage.committed() == sorted(MANY)


# Second writers


def test_another_attempt_with_another_first_batch_is_refused() -> None:
    """The guard of the salted first batch: error 45."""
    given = Given()
    given.stage.write(given.ticket, {0: MANY[:10]}, sizes=[4])

    with pytest.raises(GuardFailed, match=r"out-0.*OUT_OF_ORDER.*another attempt"):
        given.stage.write(given.ticket, {0: MANY[:10]}, sizes=[7])


def test_another_attempt_with_the_same_first_batch_is_found_by_its_offset() -> None:
    """Kafka answers it as a repetition; the offset is from before the attempt."""
    given = Given()
    given.stage.write(given.ticket, {0: MANY[:10]}, sizes=[4])
    partition = given.stage.cluster["out-0"]

    with pytest.raises(GuardFailed, match="out-0: a batch was acknowledged at offset 0, before 10"):
        given.stage.write(given.ticket, {0: ["other"] * 10}, sizes=[4])

    assert partition.values() == MANY[:10]


def test_out_of_order_behind_a_batch_that_has_to_be_sent_again_is_nobodys_fault() -> None:
    given = Given()
    given.stage.cluster.rules.insert(0, once(refusal(ErrorCode.NOT_ENOUGH_REPLICAS)))

    given.stage.write(given.ticket, {0: MANY[:5]}, sizes=ONES)

    assert given.stage.cluster["out-0"].values() == MANY[:5]


# Ends


@pytest.mark.parametrize(
    ("code", "error", "sentence"),
    [
        (ErrorCode.INVALID_PRODUCER_EPOCH, Fenced, "took the sink over"),
        (ErrorCode.PRODUCER_FENCED, Fenced, "took the sink over"),
        (ErrorCode.INVALID_TXN_STATE, BatchLost, "INVALID_TXN_STATE"),
        (ErrorCode.MESSAGE_TOO_LARGE, SinkRefused, "make batches smaller"),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, SinkRefused, "TOPIC_AUTHORIZATION_FAILED"),
    ],
)
def test_what_cannot_be_cured_ends_the_task(code: ErrorCode, error: type, sentence: str) -> None:
    given = Given()
    given.stage.cluster.rules.insert(0, once(refusal(code)))

    with pytest.raises(error, match=sentence):
        given.stage.write(given.ticket, {0: MANY}, sizes=ONES)


def test_a_leader_that_never_answers_ends_the_task() -> None:
    given = Given()
    given.stage.cluster.rules.insert(0, refusal(ErrorCode.NOT_ENOUGH_REPLICAS))

    with pytest.raises(BatchLost, match="no acknowledgement within 12"):
        given.stage.write(given.ticket, {0: MANY})


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        (TopicPartition("out", 2), "the topic has 2 partitions"),
        (TopicPartition("elsewhere", 0), "topic elsewhere was not given to this sink"),
    ],
)
def test_only_the_sinks_own_partitions_are_written(place: TopicPartition, sentence: str) -> None:
    given = Given()
    host, task = given.stage.task(given.ticket)

    with pytest.raises(SinkRefused, match=sentence):
        task.append(place, encoded(given.ticket.identity, ["x"]), now_ms=host.now_ms)


def test_a_batch_with_the_wrong_sequence_is_not_even_sent() -> None:
    given = Given()
    host, task = given.stage.task(given.ticket)
    task.append(P0, encoded(given.ticket.identity, ["x", "y"]), now_ms=host.now_ms)

    with pytest.raises(GuardFailed, match="begins at sequence 1, and 2 is next"):
        task.append(P0, encoded(given.ticket.identity, ["z"], base_sequence=1), now_ms=host.now_ms)


@pytest.mark.parametrize("verdict", [DropAnswer(), Close()])
def test_a_lost_answer_to_the_first_batch_is_no_second_writer(verdict: Any) -> None:
    given = Given()
    given.stage.cluster.rules.insert(0, lose(verdict))

    (receipt,) = given.stage.write(given.ticket, {0: MANY}, sizes=[7])

    assert (receipt.base_offset, receipt.next_sequence) == (0, 40)
