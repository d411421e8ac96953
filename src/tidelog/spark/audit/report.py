"""What an audit found: counts, the first findings, and what to keep in mind, as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tidelog.spark.audit.audited_topic import AuditedTopic
from tidelog.spark.audit.journal_index import JournalRun


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCounts:
    """What a sink was found to have made of the topic."""

    records: int
    sources: int
    """Different source records among them."""
    unnamed: int
    """Published records that do not say what they were made of."""
    waiting: int
    """Committed source records behind the newest published one."""
    filtered: int
    """Committed source records before it that were not published, where that is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """Everything that is told of one audit."""

    facts: AuditedTopic
    runs: tuple[JournalRun, ...]
    outcomes: int
    held: int
    counts: dict[tuple[str, str | None], int]
    """(class, acks) → records; acks is None where nobody was told."""
    findings: dict[str, int]
    """How many of each name."""
    first: tuple[dict[str, Any], ...]
    """The first findings, by the columns of findings.SPARK_FINDINGS."""
    published: PublishedCounts | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def is_clean(self) -> bool:
        return not self.findings

    def as_json(self) -> dict[str, Any]:
        """One document for other programs."""
        by_class: dict[str, dict[str, int]] = {}
        for (verdict, acks), count in sorted(
            self.counts.items(), key=lambda each: (each[0][0], each[0][1] or "")
        ):
            by_class.setdefault(verdict, {})["none" if acks is None else acks] = count
        return {
            "topic": self.facts.topic,
            "topic_id": self.facts.topic_id,
            "compacted": self.facts.is_compacted,
            "answered": self.outcomes,
            "held": self.held,
            "classes": by_class,
            "findings": dict(self.findings),
            "findings_total": sum(self.findings.values()),
            "first_findings": [_plain(each) for each in self.first],
            "published": None
            if self.published is None
            else {
                name: getattr(self.published, name)
                for name in ("records", "sources", "unnamed", "waiting", "filtered")
            },
            "partitions": [
                {
                    "partition": each.partition,
                    "log_start_offset": each.log_start_offset,
                    "end_offset": each.end_offset,
                    "log_end_offset": each.log_end_offset,
                    "read_from": each.read_from,
                    "replicas": list(each.replicas),
                }
                for each in self.facts.partitions.values()
            ],
            "runs": [
                {
                    "run": run.name,
                    "journal": run.path,
                    "line": run.line,
                    "acks": run.acks,
                    "idempotence": run.is_idempotent,
                    "entries": run.entries,
                    "cut": run.cut,
                }
                for run in self.runs
            ],
            "notes": list(self.notes),
        }


def _plain(finding: dict[str, Any]) -> dict[str, Any]:
    """Bytes as text where they are some, as in every other JSON of ours."""
    from tidelog.client.shells.acks_journal import text_of

    key = finding["key"]
    return {**finding, "key": text_of(None if key is None else bytes(key))}
