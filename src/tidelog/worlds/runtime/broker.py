"""One broker process: settings, locks, sockets, then a node and its shell until a signal comes.

Exit codes: 0 after a graceful stop, 1 when something went wrong, 2 for a bad configuration. A
broker that cannot start says why in one line for each reason, and has changed nothing by then
that it would have to undo.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from random import SystemRandom
from threading import Thread
from typing import TYPE_CHECKING, NoReturn

from tidelog.core.model.listeners import Listener
from tidelog.core.node.broker.session_watch import pause_ms_max
from tidelog.core.node.metadata.node_identity import CannotStart as NotOurDirectory
from tidelog.core.node.node import Node
from tidelog.core.node.settings import NodeSettings
from tidelog.core.storage.disk import DiskError
from tidelog.worlds.runtime.clock import MonotonicClock
from tidelog.worlds.runtime.config_file import BadConfiguration, load_settings
from tidelog.worlds.runtime.events import BrokerFailed, BrokerReady, BrokerStopping
from tidelog.worlds.runtime.log_lines import LogLines
from tidelog.worlds.runtime.machine import (
    MachineUnfit,
    advertised_listeners,
    bind,
    listen,
    lock_directories,
    per_ip_overrides,
    raise_descriptor_limit,
)
from tidelog.worlds.runtime.os_disk import OsDisk
from tidelog.worlds.runtime.server import Admission, Server, ServerLimits

if TYPE_CHECKING:
    from tidelog.worlds.runtime.fault_socket import FaultControl

PER_IP_OVERRIDES = "max.connections.per.ip.overrides"
FAILED = 1
BAD_CONFIGURATION = 2

_YOUNG_OBJECTS_MAX = 50_000
"""Collecting garbage is put off: requests leave hardly any cycles behind."""
_STDIN_BYTES = 4096
_CLOSE_WITHIN_MS = 1_000
_HAND_OVER_WITHIN_MS = 5_000
"""Maximum time for a broker that was asked to stop to hand over what it leads."""


def run_broker(
    config: str | None,
    overrides: Sequence[str] = (),
    *,
    ready_file: str | None = None,
    log_level: str | None = None,
    faults: str | None = None,
    stop_with_stdin: bool = False,
) -> int:
    """Serve until SIGTERM or SIGINT; the exit code."""
    started_ns = time.monotonic_ns()
    if not __debug__:
        return _refuse("refusing to start: assertions are disabled (python -O)")
    try:
        settings = load_settings(config, overrides)
    except BadConfiguration as refusal:
        for complaint in refusal.complaints:
            _refuse(complaint)
        return BAD_CONFIGURATION
    try:
        descriptors_max = raise_descriptor_limit()
        locks = lock_directories(settings.log_dirs)
        send_buffer_bytes = settings.integer("socket.send.buffer.bytes")
        sockets = [
            bind(listener, send_buffer_bytes=None if send_buffer_bytes == -1 else send_buffer_bytes)
            for listener in settings.listeners
        ]
        broker = Broker(
            settings,
            sockets,
            descriptors_max=descriptors_max,
            log_level=log_level,
            faults=faults,
            stop_with_stdin=stop_with_stdin,
        )
        broker.loop.run_until_complete(broker.run(started_ns, ready_file))
    except (MachineUnfit, NotOurDirectory, DiskError) as error:
        return _refuse(f"cannot start: {error}")
    for lock in locks:
        os.close(lock)
    return broker.exit_code


class Broker:
    """The node, its loop and its ports, put together."""

    def __init__(
        self,
        settings: NodeSettings,
        sockets: list[socket.socket],
        *,
        descriptors_max: int,
        log_level: str | None,
        faults: str | None = None,
        stop_with_stdin: bool = False,
    ) -> None:
        self.loop = new_loop()
        self.exit_code = 0
        self._settings = settings = replace(
            settings, advertised=advertised_listeners(settings, sockets)
        )
        self._sockets = sockets
        self._backlog = settings.integer("socket.listen.backlog.size")
        self._stop_with_stdin = stop_with_stdin
        self._is_stopping = False
        self._signals = 0
        self._log = LogLines(
            form=settings.text("tidelog.log.format"),
            level=log_level or settings.text("tidelog.log.level"),
        )
        self._clock = MonotonicClock()
        files_max = max(64, descriptors_max // 2)
        self._connections_max = max(16, descriptors_max - files_max - 64)
        self._overrides = _checked_overrides(settings.text(PER_IP_OVERRIDES))
        self._server = Server(
            loop=self.loop,
            clock=self._clock,
            trace=self._log,
            limits=self._limits(),
            fail=self._fail,
        )
        self._disk = OsDisk(list(settings.log_dirs), descriptors_max=files_max, wake=self._wake)
        self._faults = None if faults is None else self._fault_control(faults)
        self._node = Node(
            settings=settings,
            disk=self._disk,
            outbox=self._server if self._faults is None else self._faults.gate,
            trace=self._log,
            random=SystemRandom(),
            wall_ms=self._clock.wall_ms,
        )

    async def run(self, started_ns: int, ready_file: str | None) -> None:
        """From the start to the end; in one run of the loop, outside of which signals are lost."""
        self._stopped = asyncio.Event()
        await self._start(started_ns, ready_file)
        await self._stopped.wait()

    async def _start(self, started_ns: int, ready_file: str | None) -> None:
        """Recover what is on the disk, then open the doors.

        From the beginning on the system lets connections wait at the doors: nodes that start
        together find each other at the first try.
        """
        await self._open_doors_to_node()
        for listener, listening in zip(self._settings.listeners, self._sockets, strict=True):
            listen(listener, listening, backlog=self._backlog)
        for number in (signal.SIGTERM, signal.SIGINT):
            self.loop.add_signal_handler(number, self._on_signal, signal.Signals(number).name)
        if self._stop_with_stdin:
            Thread(target=self._watch_stdin, name="standard input", daemon=True).start()
        self._node.start(self._clock.now_ms())
        for listening in self._sockets:
            await self._server.listen(listening, backlog=self._backlog)
        gc.freeze()
        gc.set_threshold(_YOUNG_OBJECTS_MAX, 20, 50)
        gc.enable()
        bound = [
            Listener(listener.name, *sock.getsockname()[:2])
            for listener, sock in zip(self._settings.listeners, self._sockets, strict=True)
        ]
        self._log.emit(
            BrokerReady(
                node_id=self._settings.node_id,
                listeners=tuple(map(str, bound)),
                advertised=tuple(map(str, self._settings.advertised)),
                start_ms=(time.monotonic_ns() - started_ns) // 1_000_000,
            )
        )
        if ready_file is not None:
            _write_ready_file(ready_file, bound)

    async def _open_doors_to_node(self) -> None:
        """Events go to the node; through a gate, if faults shall be possible."""
        if self._faults is None:
            self._server.serve(self._node, self._disk)
            return
        self._faults.gate.serve(self._node)
        self._server.serve(self._faults.gate, self._disk)
        self._faults.load()
        await self._faults.listen()

    def _fault_control(self, path: str) -> FaultControl:
        from tidelog.worlds.runtime.fault_gate import FaultGate
        from tidelog.worlds.runtime.fault_socket import FaultControl
        from tidelog.worlds.runtime.fault_table import FaultTable

        table = FaultTable(node_id=self._settings.node_id, random=SystemRandom())
        gate = FaultGate(server=self._server, table=table, clock=self._clock, trace=self._log)
        return FaultControl(gate, path)

    def _limits(self) -> ServerLimits:
        idle_ms = self._settings.integer("connections.max.idle.ms")
        return ServerLimits(
            request_bytes_max=self._settings.integer("socket.request.max.bytes"),
            idle_ms_max=None if idle_ms < 0 else idle_ms,
            admission=self._admission,
            tick_ms_max=pause_ms_max(self._settings),
        )

    def _admission(self) -> Admission:
        """As the settings are now; there cannot be more connections than descriptors."""
        value = self._node.replica_manager.broker_value
        connections_max, per_ip_max = value("max.connections"), value("max.connections.per.ip")
        assert isinstance(connections_max, int) and isinstance(per_ip_max, int)
        text = value(PER_IP_OVERRIDES)
        if text != self._overrides[0]:
            with suppress(ValueError):
                self._overrides = (str(text), per_ip_overrides(str(text)))
        return Admission(
            min(connections_max, self._connections_max), per_ip_max, self._overrides[1]
        )

    def _wake(self) -> None:
        """Called by sync threads."""
        self.loop.call_soon_threadsafe(self._server.on_disk_results)

    def _watch_stdin(self) -> None:
        """In a thread of its own: whatever kind of file it is, reading it ends some time."""
        with suppress(OSError):
            while os.read(0, _STDIN_BYTES):
                pass
        with suppress(RuntimeError):  # the loop is closed: we are past stopping
            self.loop.call_soon_threadsafe(self._begin_stop, "end of standard input")

    def _on_signal(self, name: str) -> None:
        self._signals += 1
        if self._signals > 1:
            self._log.say("warning", "StoppedAtOnce", signal=name)
            os._exit(FAILED)
        self._begin_stop(name)

    def _begin_stop(self, name: str) -> None:
        if self._is_stopping:
            return
        self._is_stopping = True
        self._log.emit(BrokerStopping(node_id=self._settings.node_id, signal=name))
        self._limit = self.loop.call_later(_HAND_OVER_WITHIN_MS / 1000, self._leave)
        self._server.on_tick_ended = self._leave_if_ready
        try:
            self._node.begin_stop(self._server.begin_tick())
        except Exception as error:
            self._fail(error)

    def _leave_if_ready(self) -> None:
        if self._node.is_ready_to_stop:
            self._leave()

    def _leave(self) -> None:
        """Handed over, or out of time."""
        self._limit.cancel()
        self._server.on_tick_ended = None
        self._stopping = self.loop.create_task(self._stop())

    async def _stop(self) -> None:
        """No new requests, then the node's own end, then the last answers."""
        try:
            self._server.stop_accepting()
            self._server.leave_node()
            if self._faults is not None:
                self._faults.close()
            self._node.stop(self._clock.now_ms())
            await self._server.close_connections("the broker stops", within_ms=_CLOSE_WITHIN_MS)
            self._disk.close()
        except Exception as error:
            self._fail(error)
        self._stopped.set()

    def _fail(self, reason: BaseException | str) -> NoReturn:
        """Nothing can be promised any more: end the process, without a single further step."""
        if isinstance(reason, BaseException):
            text = "".join(traceback.format_exception(reason))
            reason = f"{type(reason).__name__}: {reason}"
        else:
            text = ""
        self._log.emit(BrokerFailed(node_id=self._settings.node_id, reason=reason))
        os.write(2, text.encode("utf-8", "backslashreplace"))
        os._exit(FAILED)


def new_loop() -> asyncio.AbstractEventLoop:
    """uvloop where there is one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def _checked_overrides(text: str) -> tuple[str, dict[str, int]]:
    try:
        return text, per_ip_overrides(text)
    except ValueError as error:
        raise MachineUnfit(f"{PER_IP_OVERRIDES}: {error}") from error


def _write_ready_file(path: str, bound: list[Listener]) -> None:
    """One line `host:port` for each listener; complete as soon as it is there."""
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as file:
        file.writelines(f"{listener.host}:{listener.port}\n" for listener in bound)
    os.rename(temporary, path)


def _refuse(reason: str) -> int:
    sys.stderr.write(f"tidelog broker: {reason}\n")
    return FAILED
