"""The wire client knows what was answered, what never happened, and what nobody knows."""

from __future__ import annotations

from struct import pack

import pytest

from tidelog.core.storage.disk import File
from tidelog.core.wire.codec import encode
from tidelog.core.wire.headers import read_request_header, response_header
from tidelog.core.wire.messages.api_22_init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from tidelog.worlds.simulator.client import CallFailed, Outcome, UnexpectedReply, WireClient
from tidelog.worlds.simulator.network import Network
from tidelog.worlds.simulator.node_process import Ports
from tidelog.worlds.simulator.process import SimProcess
from tidelog.worlds.simulator.world import SimWorld


class CountingNode:
    """Answers every InitProducerId with the next number."""

    lie = 0
    is_ready_to_stop = True

    def __init__(self, ports: Ports) -> None:
        self.ports = ports
        self.count = 0

    def on_frame(self, connection: int, frame: memoryview, now_ms: int) -> None:
        header = read_request_header(frame)
        self.count += 1
        answer = encode(InitProducerIdResponse(producer_id=self.count), header.api_version)
        head = response_header(
            header.api_key, header.api_version, header.correlation_id + type(self).lie
        )
        size = pack(">i", len(head) + len(answer))
        self.ports.outbox.reply(connection, (size, head, answer))

    def start(self, now_ms: int) -> None: ...
    def on_connection_opened(self, connection: int, peer: str, now_ms: int) -> None: ...
    def on_connection_closed(self, connection: int, now_ms: int) -> None: ...
    def on_synced(self, file: File, size_bytes: int, now_ms: int) -> None: ...
    def on_sync_failed(self, file: File, reason: str, now_ms: int) -> None: ...
    def on_link_opened(self, link: int, now_ms: int) -> None: ...
    def on_link_closed(self, link: int, reason: str, now_ms: int) -> None: ...
    def on_answer(self, link: int, frame: memoryview, now_ms: int) -> None: ...
    def on_timer(self, now_ms: int) -> None: ...
    def end_of_tick(self, now_ms: int) -> None: ...
    def begin_stop(self, now_ms: int) -> None: ...
    def stop(self, now_ms: int) -> None: ...
    def check(self) -> None: ...


class LyingNode(CountingNode):
    lie = 1


class Scene:
    def __init__(self, node: type[CountingNode] = CountingNode) -> None:
        self.world = SimWorld(seed=1)
        self.network = Network(self.world)
        self.process = SimProcess(
            world=self.world, network=self.network, name="server", make_node=node
        )
        self.client = WireClient(
            world=self.world, network=self.network, name="client", server="server"
        )
        self.outcomes: list[Outcome] = []

    def ask(self, times: int = 1) -> None:
        for _ in range(times):
            request = InitProducerIdRequest(transactional_id=None)
            self.client.call(request, 4, self.outcomes.append, timeout_ms=100)

    def ids(self) -> list[int]:
        return [
            each.producer_id for each in self.outcomes if isinstance(each, InitProducerIdResponse)
        ]


def test_pipelined_calls_are_answered_in_order() -> None:
    scene = Scene()
    scene.process.start()
    scene.ask(5)
    assert scene.client.in_flight == 5

    scene.world.run_for(50)

    assert scene.ids() == [1, 2, 3, 4, 5]
    assert scene.client.in_flight == 0


def test_a_refused_connection_means_that_nothing_happened() -> None:
    scene = Scene()
    scene.ask()
    scene.world.run_for(50)
    assert scene.outcomes == [CallFailed(reason="refused", was_sent=False)]


def test_a_lost_answer_leaves_the_fate_unknown_and_the_next_call_connects_anew() -> None:
    scene = Scene()
    scene.process.start()
    scene.network.cut("server", "client")
    scene.ask()
    scene.world.run_for(150)
    assert scene.outcomes == [CallFailed(reason="timed out", was_sent=False)], "not even connected"

    scene.network.heal_all()
    scene.ask()
    scene.world.run_for(50)
    scene.network.cut("server", "client")
    scene.ask()
    scene.world.run_for(150)
    assert scene.outcomes[2] == CallFailed(reason="timed out", was_sent=True)

    scene.network.heal_all()
    scene.ask()
    scene.world.run_for(90)
    assert scene.ids() == [1, 3]


def test_a_killed_server_leaves_the_fate_unknown() -> None:
    scene = Scene()
    scene.process.start()
    scene.ask()
    scene.world.run_for(50)
    scene.network.cut("client", "server")
    scene.ask()
    scene.process.kill()
    scene.world.run_for(50)
    trouble = scene.outcomes[1]
    assert isinstance(trouble, CallFailed)
    assert trouble.was_sent and trouble.reason in ("closed", "reset")


def test_an_answer_out_of_turn_is_caught() -> None:
    scene = Scene(LyingNode)
    scene.process.start()
    scene.ask()
    with pytest.raises(UnexpectedReply):
        scene.world.run_for(50)
