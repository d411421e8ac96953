"""Trace events of the simulated network: arrivals, stalls, cuts and holds.

Arrivals are named tuples because there is one for nearly every step of a run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Chunk(NamedTuple):
    """Bytes arrived."""

    connection: str
    size_bytes: int


class Signal(NamedTuple):
    """Something other than bytes arrived: a connect, its answer, an end or a reset."""

    connection: str
    what: str


@dataclass(frozen=True, slots=True)
class Stalled:
    """A packet was lost: the stream waits until it is sent again."""

    connection: str


@dataclass(frozen=True, slots=True)
class LinkCut:
    """Nothing goes from source to target any more."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class LinkHealed:
    """Source reaches target again."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class BytesHeld:
    """Bytes from source to target on connections of one purpose are kept back."""

    source: str
    target: str
    purpose: str


@dataclass(frozen=True, slots=True)
class BytesReleased:
    """They flow again."""

    source: str
    target: str
    purpose: str
