"""Kafka's command line tools in one Java machine: only the first run waits for a start."""

from __future__ import annotations

import atexit
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from threading import Timer
from types import TracebackType
from typing import IO, Self

from tests.kafka.tools import QUICK_START, Tool, ToolResult, java_command
from tests.process.waiting import PATIENCE_S

PROGRAM = Path(__file__).with_name("ToolMachine.java")


def run_tool(tool: Tool, arguments: Sequence[str], *, standard_input: str = "") -> ToolResult:
    """Run one of Kafka's tools to its end, in the machine that all tests of this process share."""
    machine = _shared_machine()
    try:
        return machine.run(tool, arguments, standard_input=standard_input)
    except BaseException:  # whatever is left of this run, the next one shall not meet it
        _shared_machine.cache_clear()
        machine.close()
        raise


@cache
def _shared_machine() -> ToolMachine:
    machine = ToolMachine()
    atexit.register(machine.close)
    return machine


class ToolMachine:
    """One Java for many runs; one tool at a time."""

    def __init__(self, *, timeout_s: float = 2 * PATIENCE_S) -> None:
        self._timeout_s = timeout_s
        command = java_command(str(PROGRAM), [], options=["-Xmx256m", *QUICK_START])
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def run(self, tool: Tool, arguments: Sequence[str], *, standard_input: str = "") -> ToolResult:
        """To its end; what it printed and how it ended."""
        words, answers = self._process.stdin, self._process.stdout
        assert words is not None and answers is not None
        assert not any("\t" in each or "\n" in each for each in arguments), arguments
        given = standard_input.encode()
        words.write("\t".join([str(len(given)), tool.value, *arguments]).encode() + b"\n" + given)
        words.flush()
        watch = Timer(self._timeout_s, self._process.kill)
        watch.start()
        try:
            return _result(answers, [tool.value, *arguments])
        finally:
            watch.cancel()


def _result(answers: IO[bytes], words: Sequence[str]) -> ToolResult:
    line = answers.readline()
    assert line, f"Java ended, or was ended because it took too long, in {words}"
    exit_code, output_bytes, errors_bytes = map(int, line.split())
    output, errors = answers.read(output_bytes).decode(), answers.read(errors_bytes).decode()
    return ToolResult(exit_code=exit_code, output=output, errors=errors)
