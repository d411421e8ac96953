"""A steady writer in a process of its own, which knows when each of its records was acknowledged.

`python -m bench.writing PARAMETERS` (in JSON) prints `ready` and then answers each line on its
standard input with a line in JSON. One librdkafka producer, idempotent (so `acks=all`), otherwise
with its defaults, hands over a small record every few milliseconds and never waits for answers.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

ROOT = Path(__file__).parents[1]
INTERVAL_S = 0.003
VALUE = b"v" * 100
FLUSH_S = 60.0
ENDS_WITHIN_S = 90.0


class Gap(NamedTuple):
    """Two consecutive acknowledgements, on the monotonic clock."""

    start_s: float
    end_s: float

    @property
    def length_ms(self) -> float:
        return (self.end_s - self.start_s) * 1000


def longest_gap(acknowledged_s: Sequence[float], *, since_s: float) -> Gap | None:
    """The longest one that ends after that moment; None when nothing was acknowledged since."""
    gaps = [Gap(earlier, later) for earlier, later in pairwise(acknowledged_s) if later > since_s]
    return max(gaps, key=lambda gap: gap.length_ms, default=None)


class WriterFailed(Exception):
    """The writing process ended, or a record was not delivered."""


class SteadyWriter:
    """The handle on such a process; `with SteadyWriter(...) as writer: writer.to(partition)`."""

    def __init__(self, *, address: str, topic: str) -> None:
        parameters = json.dumps({"address": address, "topic": topic})
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.writing", parameters],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        self._read()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def to(self, partition: int) -> None:
        """Write to that partition from now on."""
        self._ask("to", partition=partition)

    def acknowledged(self, *, written_since_s: float) -> int:
        """How many of the records that were handed over after that moment."""
        count: int = self._ask("count", since_s=written_since_s)["count"]
        return count

    def longest_gap(self, since_s: float) -> Gap | None:
        """Around that moment and after it."""
        found = self._ask("gap", since_s=since_s)["gap"]
        return None if found is None else Gap(*found)

    def finish(self) -> dict[str, Any]:
        """Everything is acknowledged or lost: the counts of both, and why."""
        reply = self._ask("finish")
        self._process.wait(ENDS_WITHIN_S)
        return reply

    def _ask(self, do: str, **fields: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **fields}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._read())
        return answer

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise WriterFailed(f"the writer ended with {self._process.wait()}")
        return line


class Writing:
    """Inside that process: one thread hands records over, another takes acknowledgements."""

    def __init__(self, *, address: str, topic: str) -> None:
        from confluent_kafka import Producer

        settings = {"enable.idempotence": True, "log_level": 0}  # lost connections are expected
        self._producer = Producer({"bootstrap.servers": address, **settings})
        self._topic = topic
        self._partition = 0
        self._written_s: list[float] = []
        self._acknowledged_s: list[float] = []
        self._failures: list[str] = []
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=each) for each in (self._write, self._poll)]

    def serve(self) -> None:
        for thread in self._threads:
            thread.start()
        print("ready", flush=True)
        for line in sys.stdin:
            requested = json.loads(line)
            answer = getattr(self, f"do_{requested.pop('do')}")(**requested)
            print(json.dumps(answer), flush=True)
            if self._is_over.is_set():
                return
        self.do_finish()

    def do_to(self, *, partition: int) -> dict[str, Any]:
        self._partition = partition
        return {}

    def do_count(self, *, since_s: float) -> dict[str, Any]:
        return {"count": sum(at_s > since_s for at_s in self._written_s)}

    def do_gap(self, *, since_s: float) -> dict[str, Any]:
        return {"gap": longest_gap(self._acknowledged_s, since_s=since_s)}

    def do_finish(self) -> dict[str, Any]:
        self._is_over.set()
        for thread in self._threads:
            thread.join()
        left = self._producer.flush(FLUSH_S)
        return {
            "acknowledged": len(self._acknowledged_s),
            "lost": len(self._failures) + left,
            "failures": self._failures[:5],
        }

    def _write(self) -> None:
        next_s = time.monotonic()
        while not self._is_over.wait(max(0.0, next_s - time.monotonic())):
            next_s = max(next_s + INTERVAL_S, time.monotonic() - INTERVAL_S)
            delivered = partial(self._on_delivery, time.monotonic())
            self._producer.produce(
                self._topic, VALUE, partition=self._partition, on_delivery=delivered
            )

    def _poll(self) -> None:
        while not self._is_over.is_set():
            self._producer.poll(0.1)

    def _on_delivery(self, written_s: float, error: object, message: object) -> None:
        if error is None:
            self._written_s.append(written_s)
            self._acknowledged_s.append(time.monotonic())
        else:
            self._failures.append(str(error))


if __name__ == "__main__":
    Writing(**json.loads(sys.argv[1])).serve()
