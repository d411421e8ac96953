"""A program speaks first over links, and hears trouble in the four words of the contract."""

from __future__ import annotations

from struct import pack

import pytest

from tests.unit.worlds.simulator.echo import EchoNode
from tidelog.worlds.simulator.client_host import ClientHost
from tidelog.worlds.simulator.link import CONNECT_TIMEOUT_MS
from tidelog.worlds.simulator.network import Conditions, Network
from tidelog.worlds.simulator.process import SimProcess
from tidelog.worlds.simulator.world import SimWorld

LINK = 7


class Caller:
    """A machine that writes down what it is told."""

    def __init__(self) -> None:
        self.heard: list[str | bytes] = []
        self.links: list[int] = []
        self.rang_ms: list[int] = []
        self.ticks = 0

    def on_link_opened(self, link: int, now_ms: int) -> None:
        self._note(link, "opened")

    def on_link_closed(self, link: int, reason: str, now_ms: int) -> None:
        self._note(link, reason)

    def on_answer(self, link: int, frame: memoryview, now_ms: int) -> None:
        self._note(link, bytes(frame))

    def on_timer(self, now_ms: int) -> None:
        self.rang_ms.append(now_ms)

    def end_of_tick(self, now_ms: int) -> None:
        self.ticks += 1

    def _note(self, link: int, what: str | bytes) -> None:
        self.links.append(link)
        self.heard.append(what)


class Stage:
    """An echo process that a client's host calls."""

    def __init__(self, *, seed: int = 1, reset_chance: float = 0.0) -> None:
        self.world = SimWorld(seed=seed)
        self.network = Network(self.world, conditions=Conditions(reset_chance=reset_chance))
        self.echo = SimProcess(
            world=self.world, network=self.network, name="echo", make_node=EchoNode
        )
        self.echo.start()
        self.host = ClientHost(world=self.world, network=self.network, name="caller")
        self.caller = Caller()
        self.host.run(self.caller)

    def open(self) -> Caller:
        self.host.connect(LINK, "echo", 9092, "probe")
        self.world.run_for(5)
        assert self.caller.heard == ["opened"]
        self.caller.heard.clear()
        return self.caller

    def say(self, *texts: bytes) -> None:
        def act(now_ms: int) -> None:
            for text in texts:
                self.host.send(LINK, (pack(">i", len(text)), text))

        ticks = self.caller.ticks
        self.host.do(act)
        self.world.run_until(lambda: self.caller.ticks > ticks, within_ms=1)


@pytest.mark.parametrize("seed", range(10))
def test_answers_arrive_whole_and_in_order(seed: int) -> None:
    stage = Stage(seed=seed)
    caller = stage.open()
    stage.say(*(b"echo %d" % number for number in range(30)))
    stage.world.run_for(50)
    assert caller.heard == [b"%d" % number for number in range(30)]
    assert set(caller.links) == {LINK}
    assert caller.ticks > 0


def test_an_answer_longer_than_any_buffer_arrives_whole() -> None:
    stage = Stage()
    caller = stage.open()
    stage.say(b"echo " + bytes(3_000_000))
    stage.world.run_for(50)
    assert caller.heard == [bytes(3_000_000)]


def test_a_node_opens_links_too() -> None:
    stage = Stage()
    other = SimProcess(world=stage.world, network=stage.network, name="other", make_node=EchoNode)
    other.start()
    node = other.node
    assert isinstance(node, EchoNode)
    node.ports.outbox.connect(3, "echo", 9092, "quorum")
    stage.world.run_for(5)
    assert node.link_events == [(3, "opened")]

    stage.echo.kill()
    stage.world.run_for(5)
    assert node.link_events == [(3, "opened"), (3, "closed")]


@pytest.mark.parametrize(("reset_chance", "word"), [(0.0, "closed"), (1.0, "reset")])
def test_a_killed_process_ends_its_links(reset_chance: float, word: str) -> None:
    stage = Stage(reset_chance=reset_chance)
    caller = stage.open()
    stage.echo.kill()
    stage.world.run_for(5)
    assert caller.heard == [word]

    stage.host.connect(8, "echo", 9092, "probe")
    stage.world.run_for(5)
    assert caller.heard == [word, "refused"]


def test_a_silent_host_is_unreachable_after_the_connect_timeout() -> None:
    stage = Stage()
    stage.echo.lose_power()
    stage.host.connect(LINK, "echo", 9092, "probe")

    stage.world.run_for(CONNECT_TIMEOUT_MS - 1)
    assert stage.caller.heard == []
    stage.world.run_for(2)
    assert stage.caller.heard == ["unreachable"]

    stage.echo.start()
    stage.world.run_for(CONNECT_TIMEOUT_MS)
    assert stage.caller.heard == ["unreachable"], "a link that was given up says nothing more"


def test_an_open_link_to_a_silent_host_stays_open_until_the_host_is_back() -> None:
    stage = Stage()
    caller = stage.open()
    stage.echo.lose_power()
    stage.say(b"echo anyone?")
    stage.world.run_for(60_000)
    assert caller.heard == []

    stage.echo.start()
    stage.world.run_for(1_000)
    assert caller.heard == ["reset"]


def test_nothing_is_heard_of_a_dropped_link_and_the_other_side_hears_its_end() -> None:
    stage = Stage()
    caller = stage.open()
    node = stage.echo.node
    assert isinstance(node, EchoNode)
    stage.say(b"echo too late")
    stage.host.disconnect(LINK)
    stage.world.run_for(50)
    assert caller.heard == []
    assert node.closed == 1


def test_what_is_sent_on_a_link_that_has_just_ended_goes_nowhere() -> None:
    stage = Stage()
    caller = stage.open()
    stage.echo.kill()
    stage.world.run_for(5)
    stage.say(b"echo hello?")
    stage.world.run_for(5)
    assert caller.heard == ["closed"]


def test_a_paused_program_hears_everything_in_order_after_it_wakes() -> None:
    stage = Stage()
    caller = stage.open()
    stage.say(b"echo a", b"echo b")
    stage.host.pause()
    stage.host.do(lambda now_ms: caller.heard.append("acted"))
    stage.world.run_for(100)
    stage.echo.kill()
    stage.world.run_for(100)
    assert caller.heard == []

    stage.host.wake()
    stage.world.run_for(10)
    assert caller.heard == ["acted", b"a", b"b", "closed"]


def test_an_answer_of_an_impossible_size_ends_the_link() -> None:
    stage = Stage()
    caller = stage.open()
    node = stage.echo.node
    assert isinstance(node, EchoNode)
    node.ports.outbox.reply(1, (b"\xff\xff\xff\xff",))
    stage.say(b"echo a")
    stage.world.run_for(10)
    assert caller.heard == ["reset"]


def test_the_earlier_deadline_counts() -> None:
    stage = Stage()
    stage.host.arm(100)
    stage.host.arm(20)
    stage.host.arm(50)
    stage.world.run_for(200)
    assert stage.caller.rang_ms == [20]


def test_a_killed_client_closes_its_links() -> None:
    stage = Stage()
    caller = stage.open()
    stage.say(b"wait 10")
    stage.world.run_for(1)
    stage.host.kill()
    stage.world.run_for(100)
    node = stage.echo.node
    assert isinstance(node, EchoNode)
    assert node.closed == 1
    assert caller.heard == []
