"""A small node for tests of the world: it answers a frame with itself, from memory or from disk."""

from __future__ import annotations

from struct import pack

from tidelog.core.storage.disk import DiskError, File, FileSlice
from tidelog.worlds.simulator.network import End, Network
from tidelog.worlds.simulator.node_process import Ports
from tidelog.worlds.simulator.process import SimProcess
from tidelog.worlds.simulator.world import SimWorld


class EchoNode:
    """Commands: `echo ...`, `keep ...` (append, answer when synced), `show`, `wait N`, `halt`."""

    def __init__(self, ports: Ports) -> None:
        self.ports = ports
        self.file: File | None = None
        self.unsynced: list[tuple[int, int]] = []
        self.alarms: list[tuple[int, int]] = []
        self.opened: list[str] = []
        self.closed = 0
        self.ticks = 0
        self.checks = 0
        self.link_events: list[tuple[int, str | bytes]] = []
        self.is_ready_to_stop = False
        self.is_slow_to_stop = False

    def start(self, now_ms: int) -> None:
        self.file = self.ports.disk.open("kept")
        self.ports.disk.sync_directory_now("")

    def on_connection_opened(self, connection: int, peer: str, now_ms: int) -> None:
        self.opened.append(peer)

    def on_connection_closed(self, connection: int, now_ms: int) -> None:
        self.closed += 1

    def on_frame(self, connection: int, frame: memoryview, now_ms: int) -> None:
        assert self.file is not None
        command, _, rest = bytes(frame).partition(b" ")
        if command == b"echo":
            self._answer(connection, rest)
        elif command == b"keep":
            try:
                self.file.append(rest)
            except DiskError as error:
                self.ports.outbox.halt(str(error))
                return
            self.unsynced.append((connection, self.file.size_bytes))
            self.file.sync()
        elif command == b"show":
            size_bytes = self.file.size_bytes
            parts = (pack(">i", size_bytes), FileSlice(self.file, 0, size_bytes))
            self.ports.outbox.reply(connection, parts)
        elif command == b"wait":
            self.alarms.append((now_ms + int(rest), connection))
            self.ports.outbox.arm(now_ms + int(rest))
        elif command == b"halt":
            self.ports.outbox.halt("asked to")
        else:
            self.ports.outbox.close(connection, "unknown command")

    def on_synced(self, file: File, size_bytes: int, now_ms: int) -> None:
        done = [entry for entry in self.unsynced if entry[1] <= size_bytes]
        self.unsynced = [entry for entry in self.unsynced if entry[1] > size_bytes]
        for connection, kept_bytes in done:
            self._answer(connection, b"kept %d" % kept_bytes)

    def on_sync_failed(self, file: File, reason: str, now_ms: int) -> None:
        self.ports.outbox.halt(f"sync failed: {reason}")

    def on_timer(self, now_ms: int) -> None:
        due = [alarm for alarm in self.alarms if alarm[0] <= now_ms]
        self.alarms = [alarm for alarm in self.alarms if alarm[0] > now_ms]
        for deadline_ms, connection in due:
            self._answer(connection, b"%d" % (now_ms - deadline_ms))
        if self.alarms:
            self.ports.outbox.arm(min(self.alarms)[0])

    def end_of_tick(self, now_ms: int) -> None:
        self.ticks += 1

    def on_link_opened(self, link: int, now_ms: int) -> None:
        self.link_events.append((link, "opened"))

    def on_link_closed(self, link: int, reason: str, now_ms: int) -> None:
        self.link_events.append((link, reason))

    def on_answer(self, link: int, frame: memoryview, now_ms: int) -> None:
        self.link_events.append((link, bytes(frame)))

    def begin_stop(self, now_ms: int) -> None:
        self.is_ready_to_stop = not self.is_slow_to_stop

    def stop(self, now_ms: int) -> None:
        assert self.file is not None
        self.file.append(b"(stopped)")
        self.file.sync_now()

    def check(self) -> None:
        self.checks += 1

    def _answer(self, connection: int, data: bytes) -> None:
        self.ports.outbox.reply(connection, (pack(">i", len(data)), data))


class Talker:
    """Says frames to the echo process and remembers the answers."""

    def __init__(self, network: Network) -> None:
        self.end: End = network.connect("client", "echo", self)
        self.received = bytearray()
        self.closed: str | None = None

    def on_connected(self) -> None:
        return

    def on_bytes(self, data: bytes) -> None:
        self.received += data

    def on_closed(self, reason: str) -> None:
        self.closed = reason

    def say(self, text: bytes) -> None:
        self.end.send(pack(">i", len(text)) + text)

    def answers(self) -> list[bytes]:
        found, position = [], 0
        while position + 4 <= len(self.received):
            size = int.from_bytes(self.received[position : position + 4], "big")
            if position + 4 + size > len(self.received):
                break
            found.append(bytes(self.received[position + 4 : position + 4 + size]))
            position += 4 + size
        return found


class Stage:
    """One echo process and one talker."""

    def __init__(self, *, seed: int = 1) -> None:
        self.world = SimWorld(seed=seed)
        self.network = Network(self.world)
        self.process = SimProcess(
            world=self.world, network=self.network, name="echo", make_node=EchoNode
        )
        self.process.start()
        self.talker = Talker(self.network)
        self.world.run_for(5)

    @property
    def node(self) -> EchoNode:
        node = self.process.node
        assert isinstance(node, EchoNode)
        return node

    def deliver(self, count: int) -> list[bytes]:
        self.world.run_until(lambda: len(self.talker.answers()) >= count, within_ms=1_000)
        return self.talker.answers()
