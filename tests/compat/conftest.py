"""Unmodified clients meet real broker processes."""

from __future__ import annotations

from tests.process.fixtures import (
    bootstrap,
    broker,
    new_topic,
    pytest_runtest_makereport,
    start_broker,
    wire,
)

__all__ = ["bootstrap", "broker", "new_topic", "pytest_runtest_makereport", "start_broker", "wire"]
