"""One Java machine with as many of Kafka's own producers as a test wants."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.kafka.tools import QUICK_START, java_command
from tests.process.waiting import wait_until

PROGRAM = Path(__file__).with_name("TimelineProducer.java")
NOTHING = "-"


class JavaRefuses(Exception):
    """Java's producer was not made; the text is the class of its exception."""


class JavaMachine:
    """Runs the program beside this file; `said(...)` has what it told, by its first words."""

    def __init__(self) -> None:
        options = ["-Xmx256m", *QUICK_START]
        self._process = subprocess.Popen(
            java_command(str(PROGRAM), [], options=options, log_level="ERROR"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._said: dict[tuple[str, str], list[str]] = {}
        self._is_ready = threading.Event()
        self._names = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self) -> Self:
        wait_until(self._ready_or_over, "Java's producer")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()

    def open(self, settings: Mapping[str, object]) -> str:
        """A new producer; gives its name."""
        self._names += 1
        name = f"producer-{self._names}"
        self.tell("open", name, *(f"{key}={_text(value)}" for key, value in settings.items()))
        [error] = wait_until(lambda: self.said("opened", name), "a producer")
        if error != NOTHING:
            raise JavaRefuses(error)
        return name

    def tell(self, *words: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()

    def said(self, what: str, whom: str) -> list[str] | None:
        """The words after `what` and `whom`, if that was said."""
        assert self._process.poll() is None, "Java's producer has died"
        return self._said.get((what, whom))

    def ask(self, what: str, name: str) -> list[str]:
        self._said.pop((what, name), None)
        self.tell(what, name)
        return wait_until(lambda: self.said(what, name), f"{what} of {name}")

    def _ready_or_over(self) -> bool:
        assert self._process.poll() is None, "Java's producer did not start"
        return self._is_ready.is_set()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            what, *rest = line.split()
            if what == "ready":
                self._is_ready.set()
            else:
                self._said[what, rest[0]] = rest[1:] or [NOTHING]


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
