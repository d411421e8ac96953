"""The catalogue of anomalies: everything that a check of this house can find, under one name each.

The judge of histories, the invariants of a cluster, the simulator, the lab and the audit on Spark
all take their names from here, and docs/anomalies.md lists them. A kind says what it means, and how
its evidence reads as a sentence; the fields in braces are the evidence. A kind that shows in
several ways has a text for each. The audit makes its evidence in Spark, as columns of a finding, so
kinds that only the audit finds have no text here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from string import Formatter


@dataclass(frozen=True, slots=True)
class AnomalyKind:
    """One entry of the catalogue."""

    name: str
    meaning: str
    texts: tuple[str, ...] = ()

    @property
    def evidence_fields(self) -> tuple[frozenset[str], ...]:
        """The names of the fields that evidence must have, for each way in which it shows."""
        return tuple(
            frozenset(name for _, name, _, _ in Formatter().parse(text) if name is not None)
            for text in self.texts
        )

    def describe(self, evidence: Mapping[str, object]) -> str:
        """The evidence as a sentence: the text that has exactly these fields."""
        at = self.evidence_fields.index(frozenset(evidence))
        return self.texts[at].format_map(evidence)

    def found(self, *, at_us: int, partition: str, **evidence: object) -> Anomaly:
        """An anomaly of this kind."""
        assert frozenset(evidence) in self.evidence_fields, (self.name, sorted(evidence))
        return Anomaly(kind=self, at_us=at_us, partition=partition, evidence=evidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """What was found, when it showed, and the evidence by the names of its fields."""

    kind: AnomalyKind
    at_us: int
    partition: str
    evidence: Mapping[str, object]

    @property
    def name(self) -> str:
        return self.kind.name

    @property
    def text(self) -> str:
        return self.kind.describe(self.evidence)


CATALOGUE: dict[str, AnomalyKind] = {}
"""Every kind, by its name, in the order of docs/anomalies.md."""


def _kind(name: str, meaning: str, *texts: str) -> AnomalyKind:
    assert name not in CATALOGUE, name
    kind = CATALOGUE[name] = AnomalyKind(name, meaning, texts)
    assert len(set(kind.evidence_fields)) == len(texts), (name, "two texts with the same fields")
    return kind


# Records that are gone.

LOST = _kind(
    "lost",
    "acknowledged, but not in the log",
    "{payload!r} of {writer} was answered ok at offset {offset} (acks={acks}), absent from "
    "[{log_start_offset}, {log_end_offset})",
    "offset {offset} held {payload!r}; the final log is [{log_start_offset}, {log_end_offset})",
)
READ_THEN_LOST = _kind(
    "read then lost",
    "given to a reader, later absent from the log or replaced",
    "a reader was given {payload!r} at offset {offset}, now nothing is there",
    "a reader was given {payload!r} at offset {offset}, now {replaced_by!r} is there",
)
CHANGED = _kind(
    "changed",
    "an offset held one record, and later another",
    "offset {offset} held {payload!r}, then {replaced_by!r}",
)
HEAD_MISSING = _kind(
    "head missing",
    "the log starts later than any deletion explains",
    "the log starts at {log_start_offset}, but nothing above {deleted_below} was deleted",
)

# Records that should not be where they are.

DUPLICATED = _kind(
    "duplicated",
    "sent once, but in the log more than once",
    "{payload!r} at offsets {first_offset} and {offset}",
)
MISPLACED = _kind(
    "misplaced",
    "acknowledged with an offset, but at another one",
    "{payload!r} was answered with {acknowledged_offset}, but is at {offset}",
)
REFUSED_BUT_PRESENT = _kind(
    "refused but present",
    "its write was refused, but it is in the log",
    "{payload!r} at offset {offset} was refused",
)
UNEXPECTED = _kind(
    "unexpected",
    "in the log, but no known writer wrote it",
    "{payload!r} at offset {offset} was never written here",
)
CORRUPT = _kind(
    "corrupt",
    "a batch with a wrong checksum, on a replica or as given to a reader",
    "{reader}: bad checksum at offset {offset}",
    "bad checksum at offset {offset}",
)
CORRUPTION_SPREAD = _kind(
    "corruption spread",
    "a batch that decayed on one replica was copied to another",
    "node {node} has a bad checksum at offset {offset}",
)

# What a reader is given, and in which order.

REORDERED = _kind(
    "reordered",
    "behind a record that its producer sent later",
    "{writer}: {payload!r} at {offset} is its write {write}, after its write {write_before}",
    "producer {producer_id}: sequence {sequence} of {payload!r} at {offset} follows "
    "{sequence_before}",
    "offset {offset} of {payload!r} follows {offset_before}",
)
GAP = _kind(
    "gap",
    "a reader was led past a record that is in the log",
    "{reader} was given offset {offset}, but never {skipped_offset} before it",
    "offset {skipped_offset} left out of an answer from {start_offset} on",
    "nothing given at {start_offset}, high watermark {high_watermark}",
    "offset {start_offset} is there, but was refused as out of range",
)
NON_MONOTONIC = _kind(
    "non-monotonic",
    "a reader's position, or the end of the log as one client sees it, went back",
    "{reader} was at {position} and was given {offset}",
    "{reader} was answered that the log ends at {end_before}, then at {end_offset}",
)
STALE = _kind(
    "stale",
    "an answer from a leader that the client knew to be deposed, or one that hides committed "
    "records",
    "{reader} knew leader epoch {known_leader_epoch}, and was answered in leader epoch "
    "{leader_epoch}",
    "{reader} was answered that the log ends at {end_offset} in leader epoch {leader_epoch}; "
    "everything before {acknowledged_end_offset} was acknowledged before",
)
HIDDEN = _kind("hidden", "committed, but brokers tell their readers to skip it")
ABORTED_BUT_READ = _kind("aborted but read", "of an aborted transaction, but readers get it")

# Metadata as clients see it.

PRODUCER_ID_REUSED = _kind(
    "producer id reused",
    "two producers were given one id",
    "producer id {producer_id} was given twice",
)
TOPIC_FORGOTTEN = _kind(
    "topic forgotten",
    "a created topic is missing from a later list",
    "topic {topic} ({topic_id}), created at {answered_us} us",
)
TOPIC_RESURRECTED = _kind(
    "topic resurrected",
    "a deleted topic is in a later list",
    "topic {topic} ({topic_id}), deleted at {answered_us} us",
)

# Replicas on disk, and what a sink published: the audit's own.

DIVERGED = _kind("diverged", "replicas differ in what is committed")
PUBLISHED_TWICE = _kind("published twice", "a sink made several records of it")
UNPUBLISHED = _kind("unpublished", "a sink passed it by")
PUBLISHED_FROM_NOTHING = _kind(
    "published from nothing", "a sink made something of a record that is not in the topic"
)

# Invariants of a running cluster: the name is the rule that does not hold.

ONE_LEADER = _kind(
    "one leader per leader epoch",
    "two nodes, or one node before and after a restart, led in one leader epoch",
    "leader epoch {leader_epoch}: first {first}, then {second}",
    "metadata names {first_leader} and {second_leader} for {leader_epoch}",
)
ELECTION_ALLOWED = _kind(
    "elections are clean or allowed",
    "a leader was taken from outside the in-sync and eligible replicas without permission",
    "leader {leader} in leader epoch {leader_epoch} was neither in sync {isr} nor eligible "
    "{eligible}, last known were {last_known}",
)
EPOCHS_GROW = _kind(
    "epochs grow",
    "a partition, leader or broker epoch did not grow with a change",
    "partition epoch {partition_epoch} after {partition_epoch_before}",
    "leader {leader} in leader epoch {leader_epoch} after {leader_before} in {leader_epoch_before}",
    "broker {broker}: broker epoch {broker_epoch} after {broker_epoch_before}",
)
_BEHIND = (
    "{role} node {node} agrees up to {agreed_end_offset}, committed is {committed_end_offset}; "
    "there it has {found}, committed is {expected}"
)
LEADER_COMPLETENESS = _kind("leader completeness", "a leader lacks committed records", _BEHIND)
CANDIDATE_COMPLETENESS = _kind(
    "leader candidate completeness", "an electable replica lacks committed records", _BEHIND
)
NO_COMMITTED_LOST = _kind(
    "no committed record is lost",
    "no replica holds all that is committed",
    "committed is {committed_end_offset}, the best replica has {best_end_offset}, tails were "
    "lost by {lossy}",
)
LOG_MATCHING = _kind(
    "log matching",
    "two replicas hold different batches at one offset of one leader epoch",
    "node {node} has {found}, another had {expected}",
    "node {node}: before {batch} stands {found}, elsewhere {expected}",
)
PRODUCER_STATE = _kind(
    "producer state matches the log",
    "a replica remembers another batch of a producer than its log holds",
    "node {node}: {found} is not in its log",
    "node {node}: {found}, but its log has {expected}",
)
BEHIND_MAXIMAL_ISR = _kind(
    "the high watermark stays behind the maximal in-sync set",
    "a member of the maximal in-sync set lacks records below the high watermark",
    "leader {leader} is at {high_watermark}, member {member} vouches for {held_end_offset}; "
    "maximal {maximal_isr}",
)
MINIMUM_IN_SYNC = _kind(
    "the high watermark needs the minimum in-sync set",
    "a leader moved its high watermark with fewer replicas in sync than the minimum",
    "{leader} moved it to {high_watermark} with {isr} in sync, the minimum is {minimum}",
)
HIGH_WATERMARK_FORWARD = _kind(
    "the high watermark of one leadership never goes back",
    "a leader moved its high watermark back",
    "{leader}: from {high_watermark_before} to {high_watermark}",
)
ISR_ARE_REPLICAS = _kind(
    "in-sync replicas are replicas",
    "the in-sync set names a broker that is no replica",
    "{isr} of {replicas}",
)
LEADER_IN_SYNC = _kind(
    "the leader is in sync", "the leader is not in its own in-sync set", "{leader} not in {isr}"
)
NO_FENCED_IN_SYNC = _kind(
    "no fenced broker is in sync", "the in-sync set names a fenced broker", "{fenced} of {isr}"
)
ELIGIBLE_ARE_SOUND = _kind(
    "eligible replicas are replicas, not in sync, and only below the minimum",
    "the eligible leader replicas contradict the replicas, the in-sync set or the minimum",
    "eligible {eligible}, in sync {isr}, replicas {replicas}, minimum {minimum}",
)
LAST_KNOWN_LEADER = _kind(
    "recovery has its last known leader",
    "nobody is in sync or eligible, and no single replica is known to have led last",
    "it is {last_known}",
)
QUORUM_SUPERSET = _kind(
    "replication quorum superset",
    "a replica can be elected for which the leader does not wait",
    "leader {leader} waits for {maximal_isr}, electable are {electable}",
)
JOINED_AS_ITSELF = _kind(
    "who joins the in-sync set is the process that fetched",
    "a restarted broker joined the in-sync set for what its former process fetched",
    "{node} joined in broker epoch {broker_epoch}, but fetched from {leader} in "
    "{fetched_broker_epoch}",
)
METADATA_AGREES = _kind(
    "metadata agrees",
    "a node's metadata image differs from what is committed",
    "{node}: {difference}",
)
METADATA_COMMITTED = _kind(
    "only committed metadata is applied",
    "a node applied metadata that is not committed",
    "{node} applied up to {applied_end_offset}, committed is {committed_end_offset}",
)
QUORUM_ELECTION_SAFETY = _kind(
    "quorum election safety",
    "two nodes, or one node before and after a restart, led the quorum in one epoch",
    "quorum epoch {quorum_epoch}: {first}, then {second}",
)
ONE_VOTE = _kind(
    "one vote per quorum epoch",
    "a node forgot or changed its vote",
    "{node} voted for {vote} in {quorum_epoch}, now it does not know it",
    "{node} voted for {vote} in {quorum_epoch}, now it voted for {second_vote}",
)
QUORUM_EPOCH_FORWARD = _kind(
    "the quorum epoch of a node never goes back",
    "a voter went back to an earlier quorum epoch",
    "{node}: {quorum_epoch} after {quorum_epoch_before}",
)
QUORUM_LEADER_COMPLETENESS = _kind(
    "quorum leader completeness", "the quorum's leader lacks committed metadata", _BEHIND
)
QUORUM_MAJORITY = _kind(
    "a majority holds what the quorum commits",
    "committed metadata is on the disks of too few voters",
    "committed is {committed_end_offset}, held is {held}",
)

# How a run of the simulator itself can fail.

UNEXPECTED_ANSWER = _kind(
    "unexpected answer", "a broker gave an answer that no fault explains", "{request}: {answer}"
)
NOT_RECOVERED = _kind(
    "not recovered",
    "after all faults the cluster does not serve completely again",
    "{reason}",
    "{reason}: {missing}",
)
CRASHED = _kind("crashed", "a broker, or the simulator, raised an exception", "{error}: {message}")
HOLE = _kind("hole", "the final log skips offsets", "offsets are missing from {offset} on")
