"""Moments in a stream at which its process kills or stops itself, driver and JVM together.

Every request and every answer of the sink is an event, and so are a few steps that ask nobody:

    take over: before InitProducerId      begin: after OffsetFetch      task: before Produce
    before the sync                       the batch is published

A fuse waits for the n-th event of a name, or of any name. Those of tasks burn in Spark's workers.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

from tidelog.client.shells.loop import Loop
from tidelog.client.shells.sink_driver import SinkDriver
from tidelog.client.sink.values import AlreadyPublished, BatchTicket

if TYPE_CHECKING:
    import pyarrow as pa

_API_KEY = Struct(">h")
_SIZE_BYTES = 4
NAMES = {
    0: "Produce",
    2: "ListOffsets",
    9: "OffsetFetch",
    22: "InitProducerId",
    24: "AddPartitionsToTxn",
    25: "AddOffsetsToTxn",
    26: "EndTxn",
    28: "TxnOffsetCommit",
    61: "DescribeProducers",
    65: "DescribeTransactions",
}
"""Of the sink's own requests; others change nothing, and every client makes them."""
EXECUTOR = "CoarseGrainedExecutorBackend"


class Fuse(NamedTuple):
    """What to do at which event."""

    event: str | None = None
    """None: any of the driver."""
    nth: int = 1
    act: str = "kill"
    """kill, stop (SIGSTOP), or executor: kill the JVM that runs this task."""
    once: str | None = None
    """A file; whoever makes it is the one that acts."""
    within_s: float | None = None
    """So long after the event."""
    batch_id: int | None = None
    """Only in tasks of this batch."""


class Fuses:
    """Those of this process, and what happened so far."""

    def __init__(self) -> None:
        self.fuses: Sequence[Fuse] = ()
        self.phase = "idle"
        self._seen: Counter[str | None] = Counter()

    def arm(self, fuses: Sequence[Fuse], *, phase: str = "idle") -> None:
        self.fuses = fuses
        self.phase = phase
        self._seen.clear()

    @contextmanager
    def during(self, phase: str) -> Iterator[None]:
        former, self.phase = self.phase, phase
        try:
            yield
        finally:
            self.phase = former

    def happen(self, event: str) -> None:
        self._seen[event] += 1
        self._seen[None] += self.phase != "task"
        for fuse in self.fuses:
            if fuse.event in (event, None) and self._seen[fuse.event] == fuse.nth:
                self._burn(fuse)

    def request(self, moment: str, api_key: int) -> None:
        if api_key in NAMES:
            self.happen(f"{self.phase}: {moment} {NAMES[api_key]}")

    def _burn(self, fuse: Fuse) -> None:
        if fuse.once is not None and not _is_made(fuse.once):
            return
        if fuse.within_s is None:
            ACTS[fuse.act]()
        else:
            timer = threading.Timer(fuse.within_s, ACTS[fuse.act])
            timer.daemon = True
            timer.start()


FUSES = Fuses()


class FusedLoop(Loop):
    """A loop whose requests and answers are events."""

    asked: defaultdict[int, deque[int]]

    def __init__(self, *given: Any, **more: Any) -> None:
        self.asked = defaultdict(deque)
        super().__init__(*given, **more)

    def send(self, link: int, parts: Sequence[bytes | bytearray | memoryview]) -> None:
        (api_key,) = _API_KEY.unpack_from(parts[0], _SIZE_BYTES)
        self.asked[link].append(api_key)
        FUSES.request("before", api_key)
        super().send(link, parts)

    def answered(self, link: int, frame: memoryview, now_ms: int) -> None:
        FUSES.request("after", self.asked[link].popleft())
        super().answered(link, frame, now_ms)


class FusedDriver(SinkDriver):
    """Says in which part of the protocol its requests are."""

    def take_over(self) -> None:
        with FUSES.during("take over"):
            super().take_over()

    def begin(self, batch_id: int, source_hash: str) -> BatchTicket | AlreadyPublished:
        with FUSES.during("begin"):
            return super().begin(batch_id, source_hash)

    def commit(self, receipts: Any) -> None:
        with FUSES.during("commit"):
            super().commit(receipts)


class FusedWriter:
    """A task that takes the fuses of its driver along."""

    def __init__(self, options: Any, ticket: BatchTicket) -> None:
        self._options = options
        self._ticket = ticket
        self._fuses = FUSES.fuses

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from tidelog.client.shells import sink_task
        from tidelog.spark.sink.task_writer import TaskWriter

        mine = [
            each
            for each in self._fuses
            # A moment of the driver is not one of its tasks.
            if each.event is not None and each.batch_id in (None, self._ticket.batch_id)
        ]
        FUSES.arm(mine, phase="task")
        sink_task.Loop = FusedLoop  # type: ignore[attr-defined]
        yield from TaskWriter(self._options, self._ticket)(batches)


def install() -> None:
    """In the driver's process, which must lead a session of its own."""
    from tidelog.client.shells import sink_runner
    from tidelog.spark.sink import exactly_once as module

    assert os.getsid(0) == os.getpid(), "whoever kills its session must be alone in it"
    patched: Any = module
    sync = patched.sync_offsets

    def fused_sync(checkpoint: str, batch_id: int) -> None:
        FUSES.happen("before the sync")
        sync(checkpoint, batch_id)
        FUSES.happen("after the sync")

    for name in ("sync_offsets", "SinkDriver", "TaskWriter"):
        assert hasattr(module, name), "a fuse for something that is not there burns nothing"
    hear_of_waking()
    patched.sync_offsets = fused_sync
    patched.SinkDriver = FusedDriver
    patched.TaskWriter = FusedWriter
    sink_runner.Loop = FusedLoop  # type: ignore[attr-defined]


# What fuses do. The driver leads its session and its process group; the JVM is in both, Spark's
# Python workers have groups of their own.


def kill_all() -> None:
    """kill -9 of the driver and its JVM in one call, and of the worker that calls it."""
    os.killpg(os.getsid(0), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


_waking: list[int] = []
"""A pipe in the driver: a byte comes out when the process has got a SIGCONT, whichever thread it
went to. Python's own handlers wait for the main thread, which waits for Spark."""


def hear_of_waking() -> None:
    out, into = os.pipe()
    os.set_blocking(into, False)
    signal.signal(signal.SIGCONT, lambda *_: None)
    signal.set_wakeup_fd(into)
    _waking.append(out)


def stop_all() -> None:
    """SIGSTOP of the driver and its JVM. A process of many threads runs on for a moment, in which
    the request that this fuse is before would leave: the driver goes on only when it is woken."""
    os.killpg(os.getsid(0), signal.SIGSTOP)
    if os.getpid() == os.getsid(0):
        os.read(_waking[0], 1)


def kill_executor() -> None:
    """kill -9 of the JVM under which this worker runs."""
    pid = os.getppid()
    while EXECUTOR not in _command(pid):
        pid = _parent(pid)
        assert pid > 1, "this worker belongs to no executor"
    os.kill(pid, signal.SIGKILL)


ACTS = {"kill": kill_all, "stop": stop_all, "executor": kill_executor}


def _is_made(path: str) -> bool:
    """Whether it was us who made the file."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def _command(pid: int) -> str:
    with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
        return file.read()


def _parent(pid: int) -> int:
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return int(file.read().rpartition(")")[2].split()[1])
