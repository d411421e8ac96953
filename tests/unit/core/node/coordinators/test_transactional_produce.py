"""The first batch of a transaction waits for its verification, and keeps its place in the order."""

from __future__ import annotations

import pytest

from tests.unit.core.node.coordinators.transaction_broker import TOPIC, TransactionBroker
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.coordinators.transaction_verifier import Then
from tidelog.core.storage.verification import Verification
from tidelog.core.wire.messages.api_00_produce import ProduceRequest


@pytest.mark.parametrize(
    ("version", "code"),
    [(10, ErrorCode.INVALID_TXN_STATE), (11, ErrorCode.TRANSACTION_ABORTABLE)],
)
def test_a_partition_that_was_not_added_is_not_written(version: int, code: ErrorCode) -> None:
    broker = TransactionBroker()

    assert broker.produce(broker.producer(), version=version) == code
    assert broker.last_stable_offset() == 0


def test_without_verification_it_is() -> None:
    broker = TransactionBroker({"transaction.partition.verification.enable": "false"})

    assert broker.produce(broker.producer(), version=11) == ErrorCode.NONE


def test_what_is_sent_behind_a_batch_under_verification_is_written_behind_it() -> None:
    broker = TransactionBroker()
    producer = broker.producer()
    broker.add(producer, 0)

    requests = [
        broker.produce_request(producer, 0, sequence, b"%d" % sequence, version=11)
        for sequence in range(4)
    ]
    for request in requests:
        broker.send(request, 11)
    answers = [broker.receive(request, 11) for request in requests]

    results = [each.responses[0].partition_responses[0] for each in answers]
    assert [(each.error_code, each.base_offset) for each in results] == [
        (ErrorCode.NONE, offset) for offset in range(4)
    ]


def test_a_zombie_writes_nothing_more() -> None:
    broker = TransactionBroker()
    zombie = broker.producer()
    broker.add(zombie, 0)
    assert broker.produce(zombie) == ErrorCode.NONE
    broker.producer()

    assert broker.produce(zombie, sequence=1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert broker.produce(zombie, 1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert broker.last_stable_offset() == 2, "its transaction is aborted"


@pytest.mark.scenario("X-20")
def test_a_batch_that_is_late_opens_no_transaction() -> None:
    """It was verified, and then the transaction ended: its log remembers."""
    broker = TransactionBroker()
    producer = broker.producer()
    broker.add(producer, 0)
    partition = broker.node.partition(TOPIC, 0)
    assert partition is not None
    producers = partition.log.producers
    verification = producers.begin_verification(*producer, 0, adds_partition=False, wall_ms=0)
    broker.end(producer, commit=False)

    request = broker.produce_request(producer, 0, 0, b"late", version=11)
    data = request.topic_data[0].partition_data[0].records
    assert data is not None
    appended = partition.log.append_as_leader(
        memoryview(bytearray(data)),
        leader_epoch=partition.leader_epoch,
        wall_ms=0,
        verification=verification,
    )

    assert appended.error == ErrorCode.INVALID_TXN_STATE
    assert producers.verifications == {}


def test_batches_of_two_producers_in_one_request_are_refused() -> None:
    broker = TransactionBroker()
    producer = broker.producer()
    request = broker.produce_request(producer, 0, 0, b"x", version=11)
    other = broker.produce_request(producer._replace(producer_id=4711), 1, 0, b"y", version=11)
    request.topic_data[0].partition_data += other.topic_data[0].partition_data

    answer = broker.ask(request, 11)

    assert isinstance(request, ProduceRequest)
    codes = [each.error_code for each in answer.responses[0].partition_responses]
    assert codes == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2


@pytest.mark.parametrize("is_next", [True, False])
def test_a_marker_ends_the_verification_of_its_own_transaction_only(is_next: bool) -> None:
    """The next transaction, with an epoch of its own, is verified while the marker of the one
    before is on its way."""
    broker = TransactionBroker()
    producer = broker.producer()
    assert broker.produce(producer, version=12) == ErrorCode.NONE
    following = producer._replace(producer_epoch=producer.producer_epoch + 1)
    partition = broker.node.partition(TOPIC, 0)
    assert partition is not None
    producers = partition.log.producers
    verified = following if is_next else producer._replace(producer_epoch=0)
    verification = Verification(verified.producer_epoch, 0, adds_partition=True, start_wall_ms=0)
    producers.verifications[producer.producer_id] = verification

    broker.end(producer, version=5)

    assert broker.last_stable_offset() == 2
    assert (producers.verifications.get(producer.producer_id) is verification) == is_next


def test_a_broker_that_stood_still_while_it_asked_writes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The answer comes after a pause in which others may have been elected."""
    broker = TransactionBroker()
    producer = broker.producer()
    broker.add(producer, 0)

    def verify(*_: object, then: Then, now_ms: int, **__: object) -> None:
        broker.node.session_watch.is_confirmed = False
        then({(TOPIC, 0): ErrorCode.NONE}, now_ms)

    monkeypatch.setattr(broker.node.transaction_verifier, "verify", verify)

    assert broker.produce(producer, version=11) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert broker.last_stable_offset() == 0
