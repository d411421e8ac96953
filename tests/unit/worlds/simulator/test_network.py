"""The network keeps order, and shows trouble as TCP does: silence, an end or a reset."""

from __future__ import annotations

import pytest

from tidelog.worlds.simulator.network import Conditions, End, Network
from tidelog.worlds.simulator.world import SimWorld


class Listening:
    """Remembers what an end of a connection heard."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.chunks = 0
        self.connected = False
        self.closed: str | None = None

    def on_connected(self) -> None:
        self.connected = True

    def on_bytes(self, data: bytes) -> None:
        self.data += data
        self.chunks += 1

    def on_closed(self, reason: str) -> None:
        self.closed = reason


class Scene:
    """Two hosts, a server that listens, and one connection between them."""

    def __init__(
        self,
        *,
        seed: int = 1,
        chop_chance: float = 0.0,
        stall_chance: float = 0.0,
    ) -> None:
        self.world = SimWorld(seed=seed)
        self.network = Network(
            self.world,
            conditions=Conditions(chop_chance=chop_chance, stall_chance=stall_chance),
        )
        self.client = Listening()
        self.server = Listening()
        self.server_end: End | None = None
        self.network.listen("server", self._accept)
        self.end = self.network.connect("client", "server", self.client)

    def settle(self, duration_ms: int = 5_000) -> None:
        self.world.run_for(duration_ms)

    def _accept(self, end: End) -> Listening:
        self.server_end = end
        return self.server


@pytest.mark.parametrize("seed", range(20))
def test_bytes_arrive_whole_and_in_order_however_they_are_chopped_and_stalled(seed: int) -> None:
    scene = Scene(seed=seed, chop_chance=0.8, stall_chance=0.2)
    scene.settle(10)
    pieces = [bytes([number]) * (number + 1) for number in range(50)]
    for piece in pieces:
        scene.end.send(piece)

    scene.settle(60_000)

    assert bytes(scene.server.data) == b"".join(pieces)
    assert scene.server.chunks > len(pieces)


def test_a_cut_is_one_way_and_what_waited_flows_on_after_healing() -> None:
    scene = Scene()
    scene.settle(10)
    assert scene.server_end is not None

    scene.network.cut("client", "server")
    scene.end.send(b"question")
    scene.server_end.send(b"news")
    scene.settle()
    assert bytes(scene.server.data) == b""
    assert bytes(scene.client.data) == b"news"

    scene.network.heal("client", "server")
    scene.settle()
    assert bytes(scene.server.data) == b"question"
    assert scene.client.closed is None


def test_a_partition_separates_groups_and_leaves_the_inside_alone() -> None:
    world = SimWorld(seed=1)
    network = Network(world)
    heard = {name: Listening() for name in ("a", "b", "c")}
    for name in heard:
        network.listen(name, lambda end: Listening())

    network.partition([["a", "b"], ["c"]])
    network.connect("a", "b", heard["b"])
    network.connect("a", "c", heard["c"])
    world.run_for(5_000)
    assert heard["b"].connected
    assert not heard["c"].connected
    assert heard["c"].closed is None

    network.heal_all()
    world.run_for(5_000)
    assert heard["c"].connected


def test_nobody_listens_means_refused() -> None:
    world = SimWorld(seed=1)
    client = Listening()
    Network(world).connect("client", "server", client)

    world.run_for(100)

    assert client.closed == "refused"


def test_a_close_comes_after_what_was_sent_before() -> None:
    scene = Scene(chop_chance=1.0)
    scene.settle(10)
    scene.end.send(b"last words")
    scene.end.close()

    scene.settle()

    assert bytes(scene.server.data) == b"last words"
    assert scene.server.closed == "closed"


def test_a_dead_process_closes_its_connections_and_refuses_new_ones() -> None:
    scene = Scene()
    scene.settle(10)

    scene.network.process_died("server")
    scene.settle()
    assert scene.client.closed in ("closed", "reset")

    late = Listening()
    scene.network.connect("client", "server", late)
    scene.settle()
    assert late.closed == "refused"


def test_a_host_without_power_is_silent_and_resets_old_connections_when_back() -> None:
    scene = Scene()
    scene.settle(10)

    scene.network.power_lost("server")
    scene.end.send(b"anyone there?")
    late = Listening()
    scene.network.connect("client", "server", late)
    scene.settle()
    assert (scene.client.closed, late.closed) == (None, None)

    scene.network.power_back("server")
    scene.settle()
    assert scene.client.closed == "reset"
    assert late.closed == "refused"


def test_a_break_resets_both_sides() -> None:
    scene = Scene()
    scene.settle(10)
    scene.network.conditions = Conditions(break_chance=0.5)
    for _ in range(20):
        if scene.end.is_open:
            scene.end.send(b"x")
        scene.settle(10)

    assert scene.client.closed == "reset"
    assert scene.server.closed == "reset"


def test_a_slow_link_delays_what_it_carries() -> None:
    scene = Scene()
    scene.settle(10)
    scene.network.slow_down("client", "server", delay_us_min=300_000, delay_us_max=300_000)
    scene.end.send(b"slow")

    scene.settle(299)
    assert bytes(scene.server.data) == b""
    scene.settle(2)
    assert bytes(scene.server.data) == b"slow"


def held_scene() -> Scene:
    scene = Scene()
    scene.settle(10)
    scene.network.hold("server", "client", "client")
    return scene


def test_a_hold_keeps_back_the_bytes_of_one_way_and_purpose_only() -> None:
    scene = held_scene()
    other = Listening()
    probe = scene.network.connect("client", "server", other, purpose="probe")
    scene.settle(10)
    assert scene.server_end is not None and scene.server_end.purpose == "probe"

    scene.server_end.send(b"probed")
    scene.end.send(b"question")
    scene.settle()

    assert probe.is_open
    assert (bytes(other.data), bytes(scene.server.data)) == (b"probed", b"question")


def test_what_was_held_flows_on_in_order_after_the_release() -> None:
    scene = held_scene()
    assert scene.server_end is not None
    scene.server_end.send(b"first ")
    scene.server_end.send(b"second")
    scene.settle()
    assert bytes(scene.client.data) == b""

    scene.network.release("server", "client", "client")
    scene.settle()

    assert bytes(scene.client.data) == b"first second"


def test_held_bytes_die_with_the_process_that_sent_them() -> None:
    scene = held_scene()
    assert scene.server_end is not None
    scene.server_end.send(b"never heard")
    scene.settle()

    scene.network.process_died("server")
    scene.settle()
    assert scene.client.closed == "reset"

    scene.network.release("server", "client", "client")
    scene.settle()
    assert bytes(scene.client.data) == b""


def test_a_process_that_read_everything_ends_its_connections_without_a_reset() -> None:
    for seed in range(20):
        scene = Scene(seed=seed)
        scene.settle(10)
        scene.network.process_died("server", has_read_all=True)
        scene.settle()
        assert scene.client.closed == "closed"


def test_a_reset_on_the_way_is_heard_by_both_sides_and_takes_what_was_under_way() -> None:
    scene = Scene()
    scene.settle(10)
    assert scene.server_end is not None

    scene.end.send(b"question")
    scene.server_end.send(b"news")
    scene.network.reset_connections("server")
    scene.settle()

    assert (scene.client.closed, scene.server.closed) == ("reset", "reset")
    assert (bytes(scene.client.data), bytes(scene.server.data)) == (b"", b"")


def test_a_host_that_refuses_keeps_its_connections_and_lets_nobody_else_in() -> None:
    scene = Scene()
    scene.settle(10)

    scene.network.refuse("server")
    late = Listening()
    scene.network.connect("client", "server", late)
    scene.end.send(b"question")
    scene.settle()
    assert late.closed == "refused"
    assert bytes(scene.server.data) == b"question"

    scene.network.accept("server")
    later = Listening()
    scene.network.connect("client", "server", later)
    scene.settle()
    assert later.connected
