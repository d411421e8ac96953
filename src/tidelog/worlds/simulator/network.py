"""The simulated network: ordered byte streams between named hosts, as TCP shows trouble.

A connection has two ends and a pipe in each direction. What is sent is cut into chunks, each chunk
arrives after a delay, in order. A packet is never lost alone: the stream stalls until it is sent
again, or the connection is reset. A cut is directed (`cut("a", "b")` stops what a sends to b) and
stalls, never refuses: bytes wait in the pipe and flow on after `heal`. A hold is finer: it keeps
back only the bytes on connections of one purpose. A killed process leaves a kernel behind that
closes its connections and refuses new ones; a host without power is silent, and answers
old connections with a reset once it is back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Protocol

from tidelog.worlds.simulator.network_events import (
    BytesHeld,
    BytesReleased,
    Chunk,
    LinkCut,
    LinkHealed,
    Signal,
    Stalled,
)
from tidelog.worlds.simulator.world import SimWorld


class EndHandler(Protocol):
    """Events for the holder of an end of a connection, each as one step of the world."""

    def on_connected(self) -> None: ...

    def on_bytes(self, data: bytes) -> None: ...

    def on_closed(self, reason: str) -> None:
        """The other side is gone: "refused", "closed" or "reset". Nothing comes after it."""


Accept = Callable[["End"], EndHandler]
ENDS_BEFORE_SWEEP = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """How good the network is. Chances are per chunk."""

    delay_us_min: int = 50
    delay_us_max: int = 500
    chop_chance: float = 0.1
    stall_chance: float = 0.0
    break_chance: float = 0.0
    resend_us: int = 200_000
    reset_chance: float = 0.25
    """That a killed process had not read all it was sent: then its kernel says reset, not end."""


class ControlPacket(Enum):
    """What travels in a pipe besides bytes."""

    CONNECT = "connect"
    CONNECTED = "connected"
    REFUSED = "refused"
    END = "closed"
    RESET = "reset"


class End:
    """One end of a connection, held by the process on host `local`."""

    def __init__(
        self, network: Network, local: str, remote: str, number: int, purpose: str
    ) -> None:
        self.local = local
        self.remote = remote
        self.name = f"{local}>{remote}#{number}"
        self.purpose = purpose
        self.way = (local, remote)
        self.held_way = (local, remote, purpose)
        self.handler: EndHandler | None = None
        self.is_open = True
        self.outgoing = Pipe(network, self)
        self.peer: End | None = None

    def send(self, data: bytes) -> None:
        assert self.is_open, "sending on a closed end"
        if data:
            self.outgoing.put_bytes(data)

    def close(self) -> None:
        """What was sent before still arrives, then the other side is closed."""
        if self.is_open:
            self.is_open = False
            self.outgoing.put(ControlPacket.END)

    def reset(self) -> None:
        """What has not arrived is lost; the other side is reset."""
        if self.is_open:
            self.is_open = False
            self.outgoing.clear()
            self.outgoing.put(ControlPacket.RESET)

    def vanish(self) -> None:
        """The host lost its power: nothing more is sent, what was under way is lost."""
        self.is_open = False
        self.outgoing.clear()


class Pipe:
    """One direction of a connection: items leave in order, the head waits for its time."""

    def __init__(self, network: Network, source: End) -> None:
        self._network = network
        self._source = source
        self._items: deque[tuple[int, bytes | ControlPacket]] = deque()
        self._tail_us = 0
        self._waiting = False

    @property
    def is_empty(self) -> bool:
        return not self._items

    @property
    def is_held(self) -> bool:
        """Bytes are kept back; whatever else comes first may pass."""
        is_wanted = bool(self._items) and isinstance(self._items[0][1], bytes)
        return is_wanted and self._network.is_held(self._source)

    def put_bytes(self, data: bytes) -> None:
        for chunk in self._network.chop(data):
            self.put(chunk)

    def put(self, item: bytes | ControlPacket) -> None:
        ready_us = self._network.world.now_us + self._network.delay_us(self._source)
        self._tail_us = max(ready_us, self._tail_us)
        self._items.append((self._tail_us, item))
        self._await_head()

    def clear(self) -> None:
        self._items.clear()

    def wake(self, delay_us: int = 0) -> None:
        """A cut healed or a host came back: what waited is sent again."""
        if self._items and not self._waiting:
            self._waiting = True
            self._network.world.after(delay_us, self._arrive)

    def _await_head(self) -> None:
        if self._items and not self._waiting:
            self._waiting = True
            world = self._network.world
            world.at(max(self._items[0][0], world.now_us), self._arrive)

    def _arrive(self) -> None:
        self._waiting = False
        network = self._network
        if not self._items or not network.is_reachable(self._source):
            return
        if self.is_held:
            return
        if network.is_lost(self._source):
            self.wake(network.conditions.resend_us)
            return
        if not self._items:
            return  # the connection broke just now, and nobody is left to be told
        _, item = self._items.popleft()
        network.deliver(self._source, item)
        self._await_head()


class Network:
    """Hosts by name, their listeners, the links between them and all connections."""

    def __init__(self, world: SimWorld, *, conditions: Conditions | None = None) -> None:
        self.world = world
        self.conditions = conditions or Conditions()
        self._random = world.random_for("network")
        self._listeners: dict[str, Accept] = {}
        self._without_power: set[str] = set()
        self._cuts: set[tuple[str, str]] = set()
        self._held: set[tuple[str, str, str]] = set()
        self._slow: dict[tuple[str, str], tuple[int, int]] = {}
        self._refusing: set[str] = set()
        self._ends: list[End] = []
        self._ends_to_sweep = ENDS_BEFORE_SWEEP
        self._count = 0

    def listen(self, host: str, accept: Accept) -> None:
        self._listeners[host] = accept

    def connect(
        self, local: str, remote: str, handler: EndHandler, *, purpose: str = "client"
    ) -> End:
        """Open a connection; the handler gets on_connected or on_closed, or nothing at all."""
        self._count += 1
        end = End(self, local, remote, self._count, purpose)
        peer = End(self, remote, local, self._count, purpose)
        end.handler = handler
        end.peer, peer.peer = peer, end
        peer.is_open = False
        if len(self._ends) >= self._ends_to_sweep:
            self._ends = [known for known in self._ends if not _is_over(known)]
            self._ends_to_sweep = 2 * len(self._ends) + ENDS_BEFORE_SWEEP
        self._ends += (end, peer)
        end.outgoing.put(ControlPacket.CONNECT)
        return end

    def cut(self, source: str, target: str) -> None:
        """From now on nothing goes from source to target; it waits."""
        if (source, target) not in self._cuts:
            self._cuts.add((source, target))
            self.world.trace.emit("network", LinkCut(source, target))

    def heal(self, source: str, target: str) -> None:
        if (source, target) in self._cuts:
            self._cuts.discard((source, target))
            self.world.trace.emit("network", LinkHealed(source, target))
            self._wake(lambda end: end.local == source and end.remote == target)

    def partition(self, groups: Sequence[Iterable[str]]) -> None:
        """Hosts of different groups no longer reach each other; inside a group all is well."""
        members = [sorted(group) for group in groups]
        for index, group in enumerate(members):
            for other in members[:index] + members[index + 1 :]:
                for source in group:
                    for target in other:
                        self.cut(source, target)

    def hold(self, source: str, target: str, purpose: str) -> None:
        """Keep back what source sends to target on connections of that purpose, whoever opened
        them. Should source be killed meanwhile, what is kept back dies with it."""
        if (source, target, purpose) not in self._held:
            self._held.add((source, target, purpose))
            self.world.trace.emit("network", BytesHeld(source, target, purpose))

    def release(self, source: str, target: str, purpose: str) -> None:
        if (source, target, purpose) in self._held:
            self._held.discard((source, target, purpose))
            self.world.trace.emit("network", BytesReleased(source, target, purpose))
            for end in self._ends:
                if end.held_way == (source, target, purpose):
                    end.outgoing.wake()

    def heal_all(self) -> None:
        """No cut, no hold, no slow link is left."""
        for source, target in sorted(self._cuts):
            self.heal(source, target)
        for source, target, purpose in sorted(self._held):
            self.release(source, target, purpose)
        self._slow.clear()

    def slow_down(self, source: str, target: str, *, delay_us_min: int, delay_us_max: int) -> None:
        self._slow[(source, target)] = (delay_us_min, delay_us_max)

    def refuse(self, host: str) -> None:
        """New connections to this host are refused, though its process lives."""
        self._refusing.add(host)

    def accept(self, host: str) -> None:
        self._refusing.discard(host)

    def reset_connections(self, host: str) -> None:
        """Something on the way resets every connection of this host, for both of its sides."""
        for end in self._open_ends_of(host):
            assert end.peer is not None
            for side in (end, end.peer):
                side.outgoing.clear()
                self.world.after(self.delay_us(side), partial(self._deliver_reset, side))

    def process_died(self, host: str, *, has_read_all: bool = False) -> None:
        """The kernel closes what the process had open; new connections are refused."""
        self._listeners.pop(host, None)
        for end in self._open_ends_of(host):
            is_unread = not has_read_all and self._random.random() < self.conditions.reset_chance
            if is_unread or end.outgoing.is_held:
                end.reset()
            else:
                end.close()

    def power_lost(self, host: str) -> None:
        self._listeners.pop(host, None)
        self._without_power.add(host)
        for end in self._open_ends_of(host):
            end.vanish()

    def power_back(self, host: str) -> None:
        self._without_power.discard(host)
        self._wake(lambda end: end.remote == host)

    # For the pipes.

    def chop(self, data: bytes) -> list[bytes]:
        if len(data) < 2 or self._random.random() >= self.conditions.chop_chance:
            return [data]
        cut_positions = sorted(self._random.randrange(1, len(data)) for _ in range(3))
        pieces = zip([0, *cut_positions], [*cut_positions, len(data)], strict=True)
        return [data[start:end] for start, end in pieces if start < end]

    def delay_us(self, source: End) -> int:
        conditions = self.conditions
        low, high = conditions.delay_us_min, conditions.delay_us_max
        if source.way in self._slow:
            low, high = self._slow[source.way]
        return low + int(self._random.random() * (high - low + 1))

    def is_reachable(self, source: End) -> bool:
        return source.remote not in self._without_power and source.way not in self._cuts

    def is_held(self, source: End) -> bool:
        return source.held_way in self._held

    def is_lost(self, source: End) -> bool:
        """Returns whether a packet is lost and the stream stalls; a break resets both sides."""
        conditions = self.conditions
        if conditions.stall_chance == 0.0 and conditions.break_chance == 0.0:
            return False
        dice = self._random.random()
        if dice < conditions.stall_chance:
            self.world.trace.emit("network", Stalled(source.name))
            return True
        if dice < conditions.stall_chance + conditions.break_chance:
            self._break(source)
        return False

    def deliver(self, source: End, item: bytes | ControlPacket) -> None:
        target = source.peer
        assert target is not None
        if isinstance(item, bytes):
            if not target.is_open:
                self._answer_with_reset(source, target)
                return
            self.world.trace.emit("network", Chunk(source.name, len(item)))
            assert target.handler is not None
            target.handler.on_bytes(item)
            return
        self.world.trace.emit("network", Signal(source.name, item.value))
        if item is ControlPacket.CONNECT:
            self._on_connect(source, target)
        elif target.is_open and target.handler is not None:
            if item is ControlPacket.CONNECTED:
                target.handler.on_connected()
            else:
                target.is_open = False
                target.outgoing.clear()
                target.handler.on_closed(item.value)

    def _on_connect(self, source: End, target: End) -> None:
        accept = self._listeners.get(target.local)
        if accept is None or target.local in self._refusing:
            target.outgoing.put(ControlPacket.REFUSED)
            return
        target.is_open = True
        target.outgoing.put(ControlPacket.CONNECTED)
        target.handler = accept(target)

    def _answer_with_reset(self, source: End, target: End) -> None:
        """Bytes for a connection that this host no longer knows."""
        if source.is_open:
            target.outgoing.clear()
            target.outgoing.put(ControlPacket.RESET)

    def _break(self, source: End) -> None:
        target = source.peer
        assert target is not None
        for end, other in ((source, target), (target, source)):
            end.outgoing.clear()
            if other.is_open:
                end.outgoing.put(ControlPacket.RESET)

    def _deliver_reset(self, end: End) -> None:
        if end.is_open and end.handler is not None:
            self.world.trace.emit("network", Signal(end.name, ControlPacket.RESET.value))
            end.is_open = False
            end.handler.on_closed(ControlPacket.RESET.value)

    def _open_ends_of(self, host: str) -> list[End]:
        return [end for end in self._ends if end.local == host and end.is_open]

    def _wake(self, concerned: Callable[[End], bool]) -> None:
        for end in self._ends:
            if concerned(end):
                end.outgoing.wake(self._random.randint(0, self.conditions.resend_us))


def _is_over(end: End) -> bool:
    """Both sides are closed and nothing is under way."""
    peer = end.peer
    assert peer is not None
    is_open = end.is_open or peer.is_open
    return not is_open and end.outgoing.is_empty and peer.outgoing.is_empty
