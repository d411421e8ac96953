"""InitProducerId: ids that nobody had before, and the epochs of transactional ids."""

from __future__ import annotations

import pytest

from tests.unit.core.node.coordinators.lone_broker import LoneBroker
from tests.unit.core.node.coordinators.transaction_broker import TransactionBroker
from tests.unit.core.node.given import Broker
from tidelog.core.metadata.records import ProducerIdsRecord
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_22_init_producer_id as api
from tidelog.core.node.broker.producer_ids import WAIT_MS
from tidelog.core.wire.codec import decode
from tidelog.core.wire.messages.api_22_init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)


def request(
    transactional_id: str | None = None,
    *,
    timeout_ms: int = 60_000,
    producer_id: int = -1,
    producer_epoch: int = -1,
) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )


@pytest.mark.scenario("D4-I3")
@pytest.mark.parametrize("version", api.VERSIONS)
def test_every_session_gets_an_id_of_its_own_with_producer_epoch_0(version: int) -> None:
    node = Broker()

    answers = [node.ask(api, request(), InitProducerIdResponse, version) for _ in range(3)]

    assert [answer.producer_id for answer in answers] == [0, 1, 2]
    assert {answer.producer_epoch for answer in answers} == {0}
    assert {answer.error_code for answer in answers} == {ErrorCode.NONE}


def test_an_id_is_given_only_after_its_block_is_committed() -> None:
    node = Broker()

    for _ in range(3):
        node.send(api, request(), 5)
    assert node.answers == []
    blocks = [r for r in node.metadata.records if isinstance(r, ProducerIdsRecord)]
    assert [block.next_producer_id for block in blocks] == [1_000]

    node.metadata.commit()
    given = [
        decode(InitProducerIdResponse, memoryview(body), version).producer_id
        for version, body in node.answers
    ]
    assert given == [0, 1, 2]


def test_without_a_controller_nobody_is_kept_waiting() -> None:
    """Answers leave in order: a client that cannot have an id must still hear its metadata."""
    node = Broker()
    node.send(api, request(), 5)

    node.alarms.run(node.now_ms + WAIT_MS - 1)
    assert node.answers == []
    node.alarms.run(node.now_ms + WAIT_MS)
    [(version, body)] = node.answers
    told = decode(InitProducerIdResponse, memoryview(body), version)
    assert told.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    node.answers.clear()
    node.metadata.commit()
    assert node.ask(api, request(), InitProducerIdResponse, 5).producer_id == 0


def test_no_id_is_given_twice_when_blocks_run_out() -> None:
    node = Broker()

    for _ in range(2_500):
        node.send(api, request(), 5)
    node.metadata.commit()

    given = [
        decode(InitProducerIdResponse, memoryview(body), version).producer_id
        for version, body in node.answers
    ]
    assert given == list(range(2_500))
    assert node.image.next_producer_id == 3_000
    node.producer_ids.check()


@pytest.mark.parametrize(
    ("call", "version", "error"),
    [
        (request(producer_id=5, producer_epoch=1), 3, ErrorCode.NONE),
        (request(producer_id=5), 3, ErrorCode.INVALID_REQUEST),
        (request(producer_epoch=5), 5, ErrorCode.INVALID_REQUEST),
        (request(""), 0, ErrorCode.INVALID_REQUEST),
        (request("tx", timeout_ms=0), 0, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        (request("tx", timeout_ms=-1), 5, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        (request("tx", timeout_ms=900_001), 5, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
    ],
)
def test_the_first_reason_to_refuse(
    call: InitProducerIdRequest, version: int, error: ErrorCode
) -> None:
    answer = Broker().ask(api, call, InitProducerIdResponse, version)

    assert answer.error_code == error
    identity = (answer.producer_id, answer.producer_epoch)
    assert identity == ((0, 0) if error == ErrorCode.NONE else (-1, -1))


@pytest.mark.scenario("D1-S2")
def test_a_transactional_id_keeps_its_number_and_gets_the_next_epoch() -> None:
    broker = TransactionBroker()

    answers = [broker.init(timeout_ms=900_000, version=version) for version in api.VERSIONS]

    assert {answer.error_code for answer in answers} == {ErrorCode.NONE}
    assert len({answer.producer_id for answer in answers}) == 1
    assert [answer.producer_epoch for answer in answers] == list(range(len(answers)))


@pytest.mark.parametrize(
    ("version", "code"),
    [(3, ErrorCode.INVALID_PRODUCER_EPOCH), (4, ErrorCode.PRODUCER_FENCED)],
)
def test_whoever_was_fenced_gets_no_epoch(version: int, code: ErrorCode) -> None:
    broker = TransactionBroker()
    zombie = broker.producer()
    broker.producer()

    answer = broker.init(expected=zombie, version=version)

    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (code, -1, -1)


def test_another_broker_coordinates_the_id() -> None:
    answer = LoneBroker().ask(request("tx"), 5)

    assert answer.error_code == ErrorCode.NOT_COORDINATOR


def test_a_fenced_producer_does_not_end_the_transaction_of_its_successor() -> None:
    """Kafka refuses it, too, but aborts that transaction first."""
    broker = TransactionBroker()
    zombie = broker.producer()
    successor = broker.producer()
    broker.add(successor, 0)
    assert broker.produce(successor) == ErrorCode.NONE

    assert broker.init(expected=zombie).error_code == ErrorCode.PRODUCER_FENCED

    assert broker.produce(successor, sequence=1) == ErrorCode.NONE
    assert broker.end(successor).error_code == ErrorCode.NONE
    assert broker.last_stable_offset() == 3
