"""The audit: journals, topic and what a sink published go in, a report comes out.

Everything here is order: who is read, what is compared with what. The judgements are in pairing.py,
rules.py and classification.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark import StorageLevel
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tidelog.spark.audit.acknowledged import acknowledged_frame, run_frame
from tidelog.spark.audit.audited_topic import AuditedTopic
from tidelog.spark.audit.broker_frames import held_frame
from tidelog.spark.audit.broker_metadata import BrokerTopic, describe_topic
from tidelog.spark.audit.classification import Strictness, classified, counts, findings
from tidelog.spark.audit.errors import AuditRefused, refusal_in_trace
from tidelog.spark.audit.findings import COLUMNS
from tidelog.spark.audit.journal_index import JournalRun, index_journals
from tidelog.spark.audit.pairs import Pairs, fence_frame, pair
from tidelog.spark.audit.published import judge_published
from tidelog.spark.audit.replica_lookup import with_replicas
from tidelog.spark.audit.replica_rules import corrupt, diverged, odd_batches
from tidelog.spark.audit.replicas import find_replicas
from tidelog.spark.audit.report import AuditReport, PublishedCounts
from tidelog.spark.audit.request import AuditRequest
from tidelog.spark.audit.segment_frames import (
    batch_frame,
    facts_from_disks,
    floor_frame,
    leading,
    logs,
    one_topic_id,
    record_frame,
    record_frame_of_batches,
    stretches,
)
from tidelog.spark.audit.tasks import own_session, size_for

RECORD_BYTES = 100
"""A guess, to know how much work a file is."""
_TIME = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Topic:
    """What is known of the topic, and its records."""

    facts: AuditedTopic
    held: DataFrame
    at_brokers: BrokerTopic | None
    batches: DataFrame | None = None
    floors: DataFrame | None = None
    is_sound: bool = True
    """Whether every byte of its replicas can be read."""


def audit(
    spark: SparkSession,
    request: AuditRequest,
    say: Say = lambda text: None,
    journals: Journals | None = None,
) -> AuditReport:
    """AuditRefused if the input is not what it should be; whatever is found is in the report.

    `journals` may have been looked at before.
    """
    try:
        return _Audit(own_session(spark), request, say).make(journals or read_journals(request))
    except PythonException as error:
        refused = refusal_in_trace(str(error))
        if refused is None:
            raise
        raise refused from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Journals:
    """The topic, the runs that are about it, and what to say of them."""

    topic: str
    runs: list[JournalRun]
    notes: list[str]


def read_journals(request: AuditRequest) -> Journals:
    """What the journals are about; AuditRefused if they are none."""
    runs = index_journals(list(request.journals))
    topics = sorted({run.topic for run in runs})
    topic = request.topic
    if topic is None:
        if len(topics) != 1:
            raise AuditRefused(
                f"the journals are about {', '.join(topics)}: say which with --topic"
            )
        topic = topics[0]
    chosen = [run for run in runs if run.topic == topic]
    if not chosen:
        raise AuditRefused(f"the journals are about {', '.join(topics)}, not about {topic}")
    notes = [
        f"{run.path}: run {run.name} may have written more than the journal says: {run.cut}"
        for run in chosen
        if run.is_cut
    ]
    if len(chosen) < len(runs):
        notes.append(f"{len(runs) - len(chosen)} runs of the journals are about other topics")
    return Journals(topic=topic, runs=chosen, notes=notes)


class _Audit:
    def __init__(self, spark: SparkSession, request: AuditRequest, say: Say) -> None:
        self._spark = spark
        self._request = request
        self._say = say
        self._kept: list[DataFrame] = []

    def make(self, journals: Journals) -> AuditReport:
        runs = journals.runs
        entries = sum(run.entries for run in runs)
        self._say(f"{entries:,} outcomes in {len(runs)} runs about {journals.topic}")
        try:
            topic = self._topic(journals.topic, entries)
            _check_topic_id(runs, topic.facts)
            pairs = pair(
                acknowledged_frame(self._spark, runs),
                topic.held,
                run_frame(self._spark, runs),
                topic.facts,
            )
            self._kept += pairs.kept
            self._say(f"{pairs.held:,} records in the topic; judging")
            return self._report(topic, runs, pairs, journals.notes)
        finally:
            for frame in self._kept:
                frame.unpersist()

    # Where the topic is.

    def _topic(self, name: str, entries: int) -> _Topic:
        at_brokers = None
        if self._request.settings is not None:
            self._say(f"asking brokers about {name}")
            at_brokers = describe_topic(
                self._request.settings, name, timeout_s=self._request.timeout_s
            )
            size_for(self._spark, max(entries, at_brokers.topic.records_max))
        if not self._request.segments:
            assert at_brokers is not None and self._request.settings is not None
            held = held_frame(self._spark, self._request.settings, at_brokers)
            return _Topic(facts=at_brokers.topic, held=held, at_brokers=at_brokers)
        return self._topic_on_disks(name, at_brokers, entries)

    def _topic_on_disks(self, name: str, at_brokers: BrokerTopic | None, entries: int) -> _Topic:
        replicas = find_replicas(self._request.segments, name)
        if not replicas:
            raise AuditRefused(f"--segments: no replica of topic {name!r} is in these directories")
        size_bytes = sum(segment.size_bytes for each in replicas for segment in each.segments)
        size_for(self._spark, max(entries, size_bytes // RECORD_BYTES))
        self._say(f"walking the segments of {len(replicas)} replicas")
        topic_id = one_topic_id(replicas)
        if at_brokers is not None and topic_id not in (None, at_brokers.topic.topic_id):
            raise AuditRefused(
                f"the segments are of topic id {topic_id}, the brokers' {name} is "
                f"{at_brokers.topic.topic_id}: it was deleted and made anew"
            )
        batches = self._keep(batch_frame(self._spark, replicas))
        found = logs(batches, replicas)
        leaders = leading(found)
        floors = floor_frame(self._spark, found, leaders, at_brokers)
        if at_brokers is not None:
            assert self._request.settings is not None
            facts, held = (
                at_brokers.topic,
                held_frame(self._spark, self._request.settings, at_brokers),
            )
        else:
            facts = facts_from_disks(name, found, leaders, is_compacted=self._request.is_compacted)
            held = record_frame(self._spark, stretches(batches, leaders)).where(_in_fences(facts))
        return _Topic(
            facts=facts,
            held=held,
            at_brokers=at_brokers,
            batches=batches,
            floors=floors,
            is_sound=all(log.is_sound for log in found),
        )

    def _keep(self, frame: DataFrame) -> DataFrame:
        kept = frame.persist(StorageLevel.DISK_ONLY)
        self._kept.append(kept)
        return kept

    # What became of it.

    def _report(
        self, topic: _Topic, runs: list[JournalRun], pairs: Pairs, notes: list[str]
    ) -> AuditReport:
        rules = Strictness(
            is_strict=self._request.is_strict,
            is_any_cut=any(run.is_cut for run in runs),
            uses_timestamps=pairs.uses_timestamps,
        )
        judged = classified(pairs.rows, rules)
        counted = counts(judged)
        wrong = [findings(judged, rules), *self._about_replicas(topic)]
        published: PublishedCounts | None = None
        if self._request.has_published:
            self._say("reading what was published")
            found, published, more = judge_published(
                self._spark,
                self._request,
                topic.facts,
                pairs,
                fence_frame(self._spark, topic.facts),
            )
            wrong += found
            notes = [*notes, *more]
        together = self._keep(reduce(DataFrame.unionByName, wrong))
        by_name = {
            row["finding"]: int(row["count"])
            for row in together.groupBy("finding").count().orderBy("finding").collect()
        }
        if by_name and topic.batches is not None:
            together = self._keep(with_replicas(together, topic.batches))
        if self._request.out is not None:
            together.write.mode("overwrite").parquet(str(self._request.out))
        return AuditReport(
            facts=topic.facts,
            runs=tuple(runs),
            outcomes=pairs.outcomes,
            held=pairs.held,
            counts=counted,
            findings=by_name,
            first=tuple(self._first(together) if by_name else ()),
            published=published,
            notes=(*notes, *topic.facts.notes, *_notes(rules, counted)),
        )

    def _about_replicas(self, topic: _Topic) -> list[DataFrame]:
        if topic.batches is None or topic.floors is None:
            return []
        found = [] if topic.is_sound else [corrupt(topic.batches, topic.floors)]
        theirs, ours = (self._keep(each) for each in odd_batches(topic.batches, topic.floors))
        if not theirs.isEmpty() or not ours.isEmpty():
            self._say("replicas differ; comparing their records")
            found.append(
                diverged(
                    record_frame_of_batches(theirs),
                    record_frame_of_batches(ours),
                    topic.floors,
                    is_compacted=topic.facts.is_compacted or self._request.is_compacted,
                )
            )
        return found

    def _first(self, together: DataFrame) -> list[dict[str, Any]]:
        rows = (
            together.orderBy("finding", "partition", "offset", "number")
            .limit(self._request.shown_max)
            .withColumn("answered_at", f.date_format("answered_at", _TIME))
            .select(*COLUMNS)
            .collect()
        )
        return [row.asDict() for row in rows]


def _in_fences(facts: AuditedTopic) -> Any:
    """Only what is part of the log: a segment may begin before the log's start."""
    inside = f.lit(False)
    for each in facts.partitions.values():
        inside = inside | (
            (f.col("partition") == each.partition) & (f.col("offset") >= each.log_start_offset)
        )
    return inside


def _check_topic_id(runs: Sequence[JournalRun], facts: AuditedTopic) -> None:
    for run in runs:
        if run.topic_id is not None and facts.topic_id not in (None, run.topic_id):
            raise AuditRefused(
                f"{run.path}:{run.line}: run {run.name} wrote to topic id {run.topic_id}, but "
                f"{facts.topic} now has id {facts.topic_id}: it was deleted and made anew"
            )


def _notes(rules: Strictness, counted: dict[tuple[str, str | None], int]) -> list[str]:
    notes = []
    if rules.is_strict and rules.is_any_cut:
        notes.append("--strict condemns no unexpected record, since a journal is cut")
    if any(verdict == "identical" for verdict, _ in counted):
        notes.append(
            "brokers set the timestamps here, so equal records of other writers cannot be told "
            "from duplicates; --strict condemns them, if every writer's journal is given"
        )
    return notes
