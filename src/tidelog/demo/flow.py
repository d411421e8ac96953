"""The running mission as those see it who kill brokers: what flows, and how to wait for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from tidelog.demo.spark_processes import PipelineProgress
from tidelog.demo.stream import OrderStream


class WaitUntil(Protocol):
    """Waits; DemoFailed if it takes too long or the pipeline dies by itself."""

    def __call__(self, reached: Callable[[], bool], what: str) -> None: ...


class Flow(NamedTuple):
    """Orders into the topic, revenue out of the pipeline."""

    stream: OrderStream
    revenue: PipelineProgress
    pause: Callable[[], None]
    """Let it run for a while, and print the progress."""
    wait: WaitUntil
