"""What an audit is asked for, as data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRequest:
    """At least one of `settings` and `segments` says where the topic is."""

    journals: tuple[Path, ...]
    topic: str | None = None
    """None: the one that the journals are about."""
    settings: dict[str, str] | None = None
    """Of a client of the brokers; None: they are not asked."""
    segments: tuple[str, ...] = ()
    published: tuple[str, ...] = ()
    published_tables: tuple[Path, ...] = ()
    may_filter: bool = False
    """The sink need not publish every record."""
    is_strict: bool = False
    is_compacted: bool = False
    """Said by hand, where no broker can be asked."""
    out: Path | None = None
    timeout_s: float = 30.0
    shown_max: int = 20

    @property
    def has_published(self) -> bool:
        return bool(self.published or self.published_tables)
