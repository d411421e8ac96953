"""Real broker processes for every test below."""

from __future__ import annotations

from tests.process.fixtures import (
    bootstrap,
    broker,
    new_topic,
    pytest_runtest_makereport,
    start_broker,
    wire,
)
from tests.process.timelines import java_machine, running, stage, start_crew, start_producer

__all__ = [
    "bootstrap",
    "broker",
    "java_machine",
    "new_topic",
    "pytest_runtest_makereport",
    "running",
    "stage",
    "start_broker",
    "start_crew",
    "start_producer",
    "wire",
]
