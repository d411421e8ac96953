"""Envelope: the controller decides what another node forwarded; every node refuses nonsense."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_58_envelope as api
from tidelog.core.node.connections.forwarded_requests import LocalRequest
from tidelog.core.wire.codec import encode
from tidelog.core.wire.headers import request_header
from tidelog.core.wire.messages.api_19_create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.core.wire.messages.api_58_envelope import EnvelopeRequest, EnvelopeResponse
from tidelog.core.wire.schema import Message

CREATE_TOPICS, VERSION = 19, 7
CALL = CreateTopicsRequest(topics=[CreatableTopic(name="orders")], timeout_ms=1_000)
FRAME = request_header(CREATE_TOPICS, VERSION, correlation_id=9, client_id="me") + encode(
    CALL, VERSION
)


class Controller:
    """A node that may be the controller; what it is asked to decide is noted."""

    def __init__(self, *, is_active: bool = True) -> None:
        self.metadata = SimpleNamespace(is_active=is_active)
        self.forwarder = SimpleNamespace(decide=self._decide)
        self.deciding: list[tuple[bytes, Callable[[bytes | None, int], None]]] = []
        self.answers: list[Message] = []

    def _decide(
        self, frame: memoryview, decided: Callable[[bytes | None, int], None], now_ms: int
    ) -> None:
        self.deciding.append((bytes(frame), decided))

    def send(self, data: bytes) -> None:
        envelope = EnvelopeRequest(request_data=data, request_principal=None)
        api.handle(cast("Any", self), LocalRequest(envelope, 0, self.answers.append), 0)


def test_the_controller_answers_with_the_bytes_of_its_decision() -> None:
    controller = Controller()
    controller.send(FRAME)
    ((frame, decided),) = controller.deciding
    assert frame == FRAME
    assert controller.answers == []

    decided(b"topics", 5)

    assert controller.answers == [EnvelopeResponse(response_data=b"topics")]


def test_a_controller_that_resigns_before_its_decision_says_so() -> None:
    controller = Controller()
    controller.send(FRAME)

    controller.deciding[0][1](None, 5)

    assert controller.answers == [EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)]


def test_any_other_node_opens_no_envelope() -> None:
    node = Controller(is_active=False)
    node.send(FRAME)

    assert node.answers == [EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)]
    assert node.deciding == []


@pytest.mark.parametrize("is_active", [True, False])
@pytest.mark.parametrize(
    ("data", "error"),
    [
        pytest.param(b"", ErrorCode.UNSUPPORTED_VERSION, id="nothing"),
        pytest.param(FRAME[:9], ErrorCode.UNSUPPORTED_VERSION, id="half a header"),
        pytest.param(FRAME[:-2], ErrorCode.UNSUPPORTED_VERSION, id="half a body"),
        pytest.param(b"\x03\xe7" + FRAME[2:], ErrorCode.UNSUPPORTED_VERSION, id="no such API"),
        pytest.param(b"\0\4\0\0" + FRAME[4:], ErrorCode.UNSUPPORTED_VERSION, id="a former API"),
        pytest.param(
            FRAME[:2] + b"\0\x63" + FRAME[4:], ErrorCode.UNSUPPORTED_VERSION, id="no such version"
        ),
        pytest.param(b"\0\0\0\3" + FRAME[4:], ErrorCode.INVALID_REQUEST, id="not forwarded"),
    ],
)
def test_what_nobody_could_read_or_would_forward_is_refused_by_every_node(
    data: bytes, error: ErrorCode, is_active: bool
) -> None:
    node = Controller(is_active=is_active)
    node.send(data)

    assert node.answers == [EnvelopeResponse(error_code=error)]
    assert node.deciding == []
