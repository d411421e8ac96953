"""The catalogue of anomalies: everything that a check of this house can find, under one name each.

The judge of histories, the invariants of a cluster, the simulator, the lab and the audit on Spark
all take their names from here, and docs/anomalies.md lists them. A kind says what it means, and how
its evidence reads as a sentence; the fields in braces are the evidence. A kind that shows in
several ways has a text for each. The audit makes its evidence in Spark, as columns of a finding, so
kinds that only the audit finds have no text here.
"""

# Size: one catalogue, in the order of docs/anomalies.md.

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
    "{payload!r} of {writer} was answered ok at an unknown offset (acks={acks}), absent from "
    "[{log_start_offset}, {log_end_offset})",
)
READ_THEN_LOST = _kind(
    "read then lost",
    "given to a reader, later absent from the log or replaced",
    "a reader was given {payload!r} at offset {offset}, now nothing is there",
    "a reader was given {payload!r} at offset {offset}, now {replaced_by!r} is there",
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
DIRTY_READ = _kind(
    "dirty read",
    "a reader was given a record, or an end of the log, that was not committed yet",
    "{reader} was given {payload!r} of leader epoch {leader_epoch} at offset {offset}; leaders "
    "had committed up to {high_watermark}",
    "{reader} was given {payload!r} at offset {offset}; the answer itself says that the high "
    "watermark is {high_watermark}",
    "{reader} was answered that the log ends at {end_offset} in leader epoch {leader_epoch}; its "
    "high watermark was {high_watermark}",
)
HIDDEN = _kind(
    "hidden",
    "committed, but brokers tell their readers to skip it",
    "{reader} has passed offset {offset} without {payload!r} of {transaction}",
)
ABORTED_BUT_READ = _kind(
    "aborted but read",
    "of an aborted transaction, but readers get it",
    "{reader} was given {payload!r} of {transaction} at offset {offset}",
)

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

# Compaction, on replicas and as readers see it.

COMPACTED_AWAY = _kind(
    "compacted away",
    "a record went, by compaction or a crash in the middle of it, that no later one replaces",
    "node {node} no longer has {payload!r} of key {key!r} at offset {offset}",
)
COMPACTED_TOO_SOON = _kind(
    "compacted too soon",
    "compaction counted records that may be taken back, or are younger than min.compaction.lag.ms",
    "node {node} has removed offset {offset} of key {key!r}, replaced at or above {fence} only",
    "node {node} has removed offset {offset} of key {key!r}, which is {age_ms} ms old",
)
TOMBSTONE_TOO_SOON = _kind(
    "tombstone gone too soon",
    "a tombstone went before every reader had delete.retention.ms to see it",
    "node {node} has removed the tombstone of {key!r} at offset {offset} after {age_ms} ms",
    "{reader} was given {payload!r} of key {key!r}, but not the tombstone at {offset}",
)
CHANGED_BY_COMPACTION = _kind(
    "changed by compaction",
    "an offset holds another record than it did before",
    "node {node} has {payload!r} at offset {offset}, which was {payload_before!r}",
    "{reader} was given {payload!r} at offset {offset}, which was {payload_before!r}",
)
CAME_BACK = _kind(
    "came back",
    "a record is there again that compaction had removed",
    "node {node} has {payload!r} of key {key!r} again, at offset {offset}",
)
NEWEST_MISSING = _kind(
    "newest missing",
    "a reader of the whole log was not given the newest value of a key",
    "{reader} read [{start_offset}, {end_offset}) without {payload!r} of key {key!r} at {offset}",
)
COMPACTED_DIFFERENTLY = _kind(
    "compacted differently",
    "two replicas at rest have different newest values of a key",
    "key {key!r} is {payload!r} on node {node}, {other_payload!r} on node {other_node}",
)

# Consumer groups, as their members and tools see them.

OWNED_TWICE = _kind(
    "owned twice",
    "two members of a group own the same partition",
    "group {group}, generation {generation}: {first}, then {second}",
    "group {group}: {second} was given it in epoch {epoch}, {first} has it and is answered so in "
    "epoch {first_epoch}",
)
UNOWNED = _kind(
    "unowned",
    "a group with living members does not own a partition, long after the last fault",
    "group {group}: nobody of {members} owns it",
)
COMMIT_FORGOTTEN = _kind(
    "commit forgotten",
    "a committed offset is gone, or an older one is in its place",
    "group {group}: {reader} was given no offset, {committed!r} was committed before",
    "group {group}: {reader} was given {token!r}, {committed!r} was committed after it",
)
DELETED_OFFSET_BACK = _kind(
    "deleted offset back",
    "an offset that was deleted is there again",
    "group {group}: {reader} was given {token!r}, which was deleted before",
)
OFFSET_INVENTED = _kind(
    "offset invented",
    "a committed offset that nobody committed",
    "group {group}: {reader} was given {offset} with {token!r}",
)
FENCED_COMMIT = _kind(
    "fenced commit",
    "a commit was answered ok though its member had been fenced before",
    "group {group}: {member} committed in generation {generation}, after {later_member} was given "
    "its assignment of generation {later_generation}",
    "group {group}: {member} committed in epoch {epoch}, after it had released the partition and "
    "come to epoch {later_epoch}",
    "group {group}: {member} committed in epoch {epoch}, after {later_member} was given the "
    "partition in epoch {later_epoch}",
)
REFUSED_COMMIT = _kind(
    "refused commit",
    "a commit was refused, but it counts",
    "group {group}: {token!r} of {member} was refused with {error}, then fetched",
)
GENERATION_DENIED = _kind(
    "generation denied",
    "a later coordinator contradicts a generation that was given to a member",
    "group {group}: {member} was let into generation {generation}, after {member_before} was given "
    "its assignment of generation {generation_before}",
    "group {group}: {member} was given {assigned_before} in generation {generation}, then "
    "{assigned}",
)
EPOCH_DENIED = _kind(
    "member epoch denied",
    "a later coordinator contradicts an epoch that was given to a member",
    "group {group}: {member} was let into epoch {epoch}, after {member_before} was in epoch "
    "{epoch_before}",
    "group {group}: {member} was fenced in epoch {epoch_before}, which it had just been answered",
)
UNANSWERED = _kind(
    "unanswered",
    "a request was not answered over a connection that stood",
    "{client} asked broker {broker}: {request}",
)
DELIVERED_AFTER_COMMIT = _kind(
    "delivered after commit",
    "a member began before what its group had committed when the partition was assigned",
    "group {group}: {member} was given offset {offset}, but {committed_offset} was committed",
)
DELIVERED_TWICE = _kind(
    "delivered twice",
    "members of a group were given a record more than once",
    "group {group}: {payload!r} at offset {offset} by {first}, then by {second}",
)
SKIPPED = _kind(
    "skipped",
    "a record lies before a group's position, but no member was given it",
    "group {group}: {payload!r} at offset {offset}, the group is at {position}",
)

# Transactions.

TORN_TRANSACTION = _kind(
    "torn transaction",
    "part of a transaction counts, another part does not",
    "{transaction}: {reader} was given {payload!r}, but {other_reader} has passed {missed!r}",
)
UNDECIDED_READ = _kind(
    "undecided read",
    "a read_committed reader was given a record whose transaction was not decided yet",
    "{reader} was given {payload!r} at offset {offset} before the commit of {transaction}",
    "{reader} came to {next_offset}, beyond the last stable offset {last_stable_offset}",
)
STABLE_OFFSET_BACK = _kind(
    "last stable offset back",
    "within one leader epoch a later answer has a lower last stable offset",
    "{reader} was given {last_stable_offset} in leader epoch {leader_epoch}, after "
    "{last_stable_offset_before}",
)
HANGING_TRANSACTION = _kind(
    "hanging transaction",
    "long after the last fault a last stable offset is behind the high watermark",
    "node {node}: {last_stable_offset}, the high watermark is {high_watermark}",
)
ZOMBIE_WRITE = _kind(
    "zombie write",
    "a producer was answered ok though another had been given its transactional id before",
    "{transaction} of {producer} {identity}: {request}, after {later} was given {later_identity}",
)
ABORTED_OFFSETS = _kind(
    "aborted offsets",
    "a group was given offsets of a transaction that was not committed",
    "group {group}: {reader} was given {offset} of {transaction}",
)
TRANSFORMED_TWICE = _kind(
    "transformed twice",
    "a record has several results in a topic that has one for each",
    "group {group}: {payload!r} has {count} results",
)
NOT_TRANSFORMED = _kind(
    "not transformed",
    "a record has no result in a topic that has one for each",
    "group {group}: {payload!r} at offset {offset}",
)
TRANSFORMED_FROM_NOTHING = _kind(
    "transformed from nothing",
    "a result is there without the record that it was made of",
    "group {group}: {payload!r}",
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
PAUSED_LEADER_ASKS = _kind(
    "a leader that was paused asks first",
    "a leader took a write after a pause in which another was elected",
    "{leader}, paused from {paused_us} to {resumed_us} us, wrote offset {offset} in leader epoch "
    "{leader_epoch}",
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
CUT_TOO_DEEP = _kind(
    "a follower cuts only what its leader does not share",
    "a follower dropped records that its leader has as well, and that may be committed",
    "node {node} cut its log to {end_offset}, but shares everything before {shared_end_offset} "
    "with leader {leader}",
)
PRODUCER_STATE = _kind(
    "producer state matches the log",
    "a replica remembers another batch of a producer than its log holds",
    "node {node}: {found} is not in its log",
    "node {node}: {found}, but its log has {expected}",
)
SYNCED_IS_DURABLE = _kind(
    "what a log calls synced is on its disk",
    "a log vouches for records that a power loss may take, or need not look for them afterwards",
    "node {node} has synced up to {synced_end_offset} and recovers from {recovery_point}, but on "
    "its disk are only those before {durable_end_offset}",
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
REASSIGNMENT_IN_ORDER = _kind(
    "replicas are added, come into sync, and only then replace others",
    "a reassignment skipped a step",
    "{what}: replicas {before} -> {after}, adding {adding}, in sync {isr}, "
    "leader epoch {leader_epoch}",
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

STRANGER_SERVED = _kind(
    "only nodes are served as nodes",
    "somebody who did not prove to be a node was served what only nodes may ask",
    "{node} served {request}",
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
