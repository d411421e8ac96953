"""The way to the controller: whoever waits for a former one hears so, and can ask the new one."""

from __future__ import annotations

from tests.unit.core.node.lone_links import LoneLinks
from tidelog.core.node.controller.controller_channel import ControllerChannel
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.messages.api_63_broker_heartbeat import BrokerHeartbeatRequest
from tidelog.core.wire.schema import Message


class Asker(LoneLinks):
    """A node that is no controller; the test says who is."""

    def __init__(self) -> None:
        super().__init__()
        self.is_active = False
        self.leader: tuple[str, int] | None = ("one", 9092)
        self.channel = ControllerChannel(
            controller=self,
            alarms=self.alarms,
            links=self.links,
            clock=self,
            handle=lambda request, now_ms: None,
        )
        self.heard: list[Message | NoAnswer] = []

    def leader_address(self) -> tuple[str, int] | None:
        return self.leader

    def ask(self) -> None:
        self.channel.ask(
            BrokerHeartbeatRequest(),
            1,
            lambda answer, now_ms: self.heard.append(answer),
            now_ms=self.now_ms,
            timeout_ms=9_000,
        )


def test_a_silent_controller_is_left_when_another_one_is_found() -> None:
    given = Asker()
    given.ask()
    assert given.heard == []

    given.leader = ("two", 9092)
    given.channel.on_leader_found(10)
    given.pass_to(10)

    (heard,) = given.heard
    assert isinstance(heard, NoAnswer)
    given.ask()
    assert [host for _, host, _, _ in given.wires.connected] == ["one", "two"]


def test_the_same_controller_found_again_is_not_left() -> None:
    given = Asker()
    given.ask()

    given.channel.on_leader_found(10)
    given.pass_to(10)

    assert given.heard == []
    given.ask()
    assert [host for _, host, _, _ in given.wires.connected] == ["one"]
