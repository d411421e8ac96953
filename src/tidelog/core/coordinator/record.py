"""One record of an internal topic, as a coordinator decides it and reads it back."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CoordinatorRecord:
    """Key and value in the schemas of the topic."""

    key: bytes
    value: bytes | None
    """None is a tombstone: what the key named is gone."""
