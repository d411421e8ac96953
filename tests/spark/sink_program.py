"""A process that runs a sink, and can be made to end itself with SIGKILL at its n-th request.

    python -m tests.spark.sink_program BOOTSTRAP TOPIC FIRST_BATCH BATCHES [before|after N API_KEY]

It says what it does, line by line, and why it stopped. `before` kills it when the request is about
to leave, `after` when its answer has come and nobody has read it. Without an API key all requests
are counted, but for those that change nothing and that every client makes.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from struct import Struct

from tests.spark.sink_parts import Sink, rows_of, source_hash
from tidelog.client.shells.loop import Loop
from tidelog.client.sink.errors import SinkError
from tidelog.client.sink.values import AlreadyPublished

_API_KEY = Struct(">h")
_SIZE_BYTES = 4
NOT_COUNTED = frozenset({3, 18})
"""Metadata and versions, which every client asks for and which change nothing."""


class CountedLoop(Loop):
    """A loop whose requests and answers are counted."""

    def send(self, link: int, parts: Sequence[bytes | bytearray | memoryview]) -> None:
        (api_key,) = _API_KEY.unpack_from(parts[0], _SIZE_BYTES)
        asked[(id(self), link)].append(api_key)
        fuses["before"].see(api_key)
        super().send(link, parts)

    def answered(self, link: int, frame: memoryview, now_ms: int) -> None:
        fuses["after"].see(asked[(id(self), link)].popleft())
        super().answered(link, frame, now_ms)


class Fuse:
    """Ends the process when it has seen enough."""

    def __init__(self) -> None:
        self.kill_at: int | None = None
        self.kill: Callable[[], None] = lambda: os.kill(os.getpid(), signal.SIGKILL)
        self.api_key: int | None = None
        self._seen = 0

    def see(self, api_key: int) -> None:
        is_counted = api_key not in NOT_COUNTED if self.api_key is None else api_key == self.api_key
        self._seen += is_counted
        if is_counted and self._seen == self.kill_at:
            self.kill()


asked: dict[tuple[int, int], deque[int]] = defaultdict(deque)
fuses = {"before": Fuse(), "after": Fuse()}


def say(*words: object) -> None:
    print(*words, flush=True)


def main(bootstrap: str, topic: str, first: int, batches: int) -> None:
    sink = Sink(bootstrap, topic)
    with sink.driver() as driver:
        driver.take_over()
        say("taken over")
        for batch_id in range(first, first + batches):
            begun = driver.begin(batch_id, source_hash(batch_id))
            if isinstance(begun, AlreadyPublished):
                say("skipped", batch_id)
                continue
            say("begun", batch_id)
            receipts = sink.write(begun, rows_of(batch_id))
            say("written", batch_id)
            driver.commit(receipts)
            say("committed", batch_id)


if __name__ == "__main__":
    from tidelog.client.shells import sink_runner, sink_task

    sink_runner.Loop = sink_task.Loop = CountedLoop  # type: ignore[attr-defined]
    if len(sys.argv) > 5:
        fuse = fuses[sys.argv[5]]
        fuse.kill_at, *keys = map(int, sys.argv[6:])
        fuse.api_key = keys[0] if keys else None
    try:
        main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
        say("done")
    except SinkError as error:
        say("stopped", type(error).__name__, error)
        raise SystemExit(3) from None
