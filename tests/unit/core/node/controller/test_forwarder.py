"""What the controller must decide reaches it from any node, and its answer reaches the client."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.unit.core.metadata.given import state, topic
from tests.unit.core.node.lone_links import LoneLinks
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node import api as apis
from tidelog.core.node.connections.request import Request
from tidelog.core.node.controller.controller_channel import RETRY_MS, ControllerChannel
from tidelog.core.node.controller.forwarder import GIVE_UP_MS, IMAGE_WAIT_MS_MAX, Forwarder
from tidelog.core.wire.codec import decode, encode
from tidelog.core.wire.headers import request_header, response_header
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.messages.api_19_create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tidelog.core.wire.messages.api_58_envelope import EnvelopeRequest, EnvelopeResponse
from tidelog.core.wire.schema import Message

CREATE_TOPICS, VERSION = 19, 7
ADDRESS = ("controller", 9092)
_HEADER = request_header(CREATE_TOPICS, VERSION, correlation_id=9, client_id="me")


class FakeNode(LoneLinks):
    """A node with forwarding; whether it is the controller is the test's choice."""

    def __init__(self, *, is_active: bool) -> None:
        super().__init__()
        self.image = ClusterImage()
        self.is_active = is_active
        self.address: tuple[str, int] | None = ADDRESS
        self.controller_channel = ControllerChannel(
            controller=self,
            alarms=self.alarms,
            links=self.links,
            clock=self,
            handle=self._handle,
        )
        self.forwarder = Forwarder(
            controller=self,
            channel=self.controller_channel,
            image=self.image,
            alarms=self.alarms,
            clock=self,
            handle=self._handle,
        )
        self.closed: list[str] = []
        self.answers: list[bytes] = []
        self.connection = SimpleNamespace(
            id=1, is_failed=False, fail=self.closed.append, on_answered=lambda: None
        )

    def leader_address(self) -> tuple[str, int] | None:
        return self.address

    def _handle(self, request: Request, now_ms: int) -> None:
        apis.HANDLERS[request.api_key].handle(cast("Any", self), request, now_ms)

    def client_asks(self, name: str = "orders") -> Request:
        frame = _frame(name)
        body = frame[len(_HEADER) :]
        request = Request(cast("Any", self.connection), CREATE_TOPICS, VERSION, 9, "me", body)
        self.forwarder.forward(request, frame, self.now_ms)
        return request

    def controller_answers(self, answer: Message, version: int = 0) -> None:
        """The other node answers the question that was sent last."""
        link, sent = self.wires.sent[-1]
        correlation_id = int.from_bytes(sent[8:12])
        header = response_header(answer.api_key, version, correlation_id)
        frame = memoryview(header + encode(answer, version))
        self.links.on_answer(link, frame, self.now_ms)

    def open_link(self) -> None:
        self.links.on_link_opened(self.wires.connected[-1][0], self.now_ms)


def _frame(name: str) -> memoryview:
    asked = CreateTopicsRequest(topics=[CreatableTopic(name=name)], timeout_ms=1_000)
    return memoryview(bytearray(_HEADER + encode(asked, VERSION)))


def _answer_of(request: Request) -> CreateTopicsResponse:
    assert request.parts is not None
    whole = b"".join(cast("list[bytes]", request.parts))
    assert int.from_bytes(whole[:4]) == len(whole) - 4
    header = response_header(CREATE_TOPICS, VERSION, 9)
    assert whole[4 : 4 + len(header)] == header, "the client's own correlation id"
    return decode(CreateTopicsResponse, memoryview(whole), VERSION, 4 + len(header))


@pytest.fixture
def deciding(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """The requests that the controller's own code was asked to decide."""
    asked: list[Request] = []

    def handle(node: object, request: Request, now_ms: int) -> None:
        request.decode(CreateTopicsRequest)
        asked.append(request)

    fake = apis.HANDLERS[CREATE_TOPICS]._replace(handle=handle)
    monkeypatch.setitem(apis.HANDLERS, CREATE_TOPICS, fake)
    return asked


def made(name: str, code: ErrorCode = ErrorCode.NONE) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[CreatableTopicResult(name=name, error_code=code)])


def test_the_controller_decides_a_request_of_its_own_client(deciding: list[Request]) -> None:
    node = FakeNode(is_active=True)
    request = node.client_asks()

    deciding[0].answer(made("orders", ErrorCode.TOPIC_ALREADY_EXISTS))

    assert _answer_of(request).topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_another_node_sends_the_client_s_bytes_in_an_envelope() -> None:
    node = FakeNode(is_active=False)
    request = node.client_asks()
    assert node.wires.connected == [(1, *ADDRESS, "controller")]
    node.open_link()
    sent = memoryview(node.wires.sent[-1][1])
    position = 4 + len(request_header(58, 0, correlation_id=1, client_id="node-1"))
    envelope = decode(EnvelopeRequest, sent, 0, position)
    assert bytes(envelope.request_data) == bytes(_frame("orders"))

    answer = made("orders", ErrorCode.INVALID_PARTITIONS)
    data = response_header(CREATE_TOPICS, VERSION, 9) + encode(answer, VERSION)
    node.controller_answers(EnvelopeResponse(response_data=data))

    assert _answer_of(request).topics[0].error_code == ErrorCode.INVALID_PARTITIONS


@pytest.mark.parametrize("how", ["not controller", "lost"])
def test_while_the_controller_changes_the_node_tries_again(how: str) -> None:
    node = FakeNode(is_active=False)
    request = node.client_asks()
    node.open_link()
    if how == "lost":
        node.links.on_link_closed(node.wires.connected[-1][0], "closed", 0)
    else:
        node.controller_answers(EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER))
    assert request.parts is None

    node.pass_to(RETRY_MS)
    if how == "lost":
        node.open_link()

    assert len(node.wires.sent) == 2
    assert not node.closed


def test_a_client_without_any_controller_is_let_go_in_the_end() -> None:
    node = FakeNode(is_active=False)
    node.address = None
    node.client_asks()

    for now_ms in range(0, GIVE_UP_MS, RETRY_MS):
        node.pass_to(now_ms)
    assert node.closed == []
    node.pass_to(GIVE_UP_MS + RETRY_MS)

    assert node.closed == ["there is no controller to decide this request"]


@pytest.mark.scenario("X-14")
def test_a_controller_that_steps_down_tries_again_elsewhere(deciding: list[Request]) -> None:
    """1. It decides and appends. 2. It loses its office before the commit. 3. Nobody may be told
    that answer: the next controller decides anew."""
    node = FakeNode(is_active=True)
    request = node.client_asks()

    node.is_active = False
    node.forwarder.on_resigned(0)
    deciding[0].answer(made("orders"))

    assert request.parts is None
    node.pass_to(RETRY_MS)
    assert node.wires.connected[-1][1:3] == ADDRESS


def test_a_created_topic_is_answered_when_this_node_can_show_it(deciding: list[Request]) -> None:
    node = FakeNode(is_active=True)
    request = node.client_asks()
    deciding[0].answer(made("orders"))
    node.forwarder.end_of_tick()
    assert request.parts is None, "our own image does not have it yet"

    for record in topic("orders", 1, state(1)):
        node.image.apply(record)
    node.forwarder.end_of_tick()

    assert _answer_of(request).topics[0].error_code == ErrorCode.NONE


def test_a_created_topic_is_answered_in_the_end_even_without_it(deciding: list[Request]) -> None:
    node = FakeNode(is_active=True)
    request = node.client_asks()
    deciding[0].answer(made("orders"))

    node.pass_to(IMAGE_WAIT_MS_MAX)

    assert _answer_of(request).topics[0].error_code == ErrorCode.NONE


def test_the_channel_answers_everybody_when_it_turns_to_another_controller() -> None:
    node = FakeNode(is_active=False)
    heard: list[object] = []
    node.controller_channel.ask(
        EnvelopeRequest(request_principal=None), 0, lambda a, _: heard.append(a), now_ms=0
    )
    node.address = ("other", 9092)
    node.controller_channel.ask(
        EnvelopeRequest(request_principal=None), 0, lambda a, _: heard.append(a), now_ms=0
    )

    assert heard == [NoAnswer("another controller")]
    assert node.wires.connected[-1][1:3] == ("other", 9092)
