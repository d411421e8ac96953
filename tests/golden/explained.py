"""Where Tidelog answers otherwise than Apache Kafka on purpose, each with its reason.

Cases and fields are named one by one, without patterns: what is not named here is a bug.
`docs/differences-from-kafka.md` tells the same to users; a test holds the two together.
"""

# Size: one table, in the order of the page that is made from it.

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.golden.compare import ABSENT, Difference
from tests.golden.explained_keys import MISSING_APIS, MISSING_SETTINGS

ANSWER = "answer"
"""The whole of it: a field of this name is an answer of another kind."""
TOPIC = "<topic>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One kind of difference: it may be in each of these fields of each of these cases."""

    title: str
    """The heading in the documentation."""
    reason: str
    cases: Sequence[str]
    fields: Sequence[str]
    """As `field_of` names them."""
    only_missing: bool = False
    """Whether it explains only that Tidelog has less."""
    only_added: bool = False
    """Whether it explains only that Tidelog says something where Kafka says null."""

    def covers(self, difference: Difference) -> bool:
        return (
            difference.case in self.cases
            and field_of(difference) in self.fields
            and (not self.only_missing or difference.tidelog == ABSENT)
            and (not self.only_added or difference.kafka is None)
        )


def field_of(difference: Difference) -> str:
    """The path inside an answer; without the number of the step and the name of the case's own
    topic, which are no part of what differs."""
    _, *parts = difference.path.split("/")
    if parts[0] == ANSWER and len(parts) > 1:
        del parts[0]
    return "/".join(TOPIC if f"{difference.case}-" in part else part for part in parts)


def versions(stem: str, *numbers: int) -> tuple[str, ...]:
    """One conversation in several versions of its API."""
    return tuple(f"{stem}-v{number}" for number in numbers)


_BROKER = "describe-configs-of-the-broker-v4"
_BROKER_SETTING = "results/resource_name=1/configs/name="
_FENCED_BUT_NOT_ENDED = tuple(
    f"transaction_states/{TOPIC}/{field}"
    for field in ("producer_epoch", "transaction_state", f"topics/{TOPIC}")
)
_PRODUCED = f"responses/{TOPIC}/partition_responses/index=0"
_END_OFFSET = f"topics/{TOPIC}/partitions/partition_index=0/offset"

_WITH_VERSIONS = (
    *versions("api-versions-asked", 0, 1, 2, 3, 4),
    "api-versions-asked-again",
    "api-versions-null-client-id",
    "api-versions-software-name-that-ends-badly-v3",
    "api-versions-with-trailing-bytes",
    "api-versions-with-unknown-tagged-fields",
)
_WITH_MESSAGES = (
    "produce-a-batch-that-unpacks-to-101-mebibytes-v13",
    "produce-a-byte-behind-the-records-in-every-codec-v13",
    "produce-a-key-beyond-the-batch-in-every-codec-v13",
    "produce-a-negative-number-of-headers-in-every-codec-v13",
    "produce-a-negative-offset-delta-in-a-compressed-batch-v13",
    "produce-a-record-cut-short-in-every-codec-v13",
    "produce-a-record-of-negative-size-v13",
    "produce-a-stream-cut-short-in-every-codec-v13",
    "produce-an-offset-delta-twice-v13",
    "produce-base-offset-negative-v13",
    "produce-base-offset-of-the-client-v13",
    "produce-batch-above-the-default-limit-v13",
    "produce-batch-larger-than-a-segment-v13",
    "produce-batch-of-exactly-the-limit-v13",
    "produce-batch-too-large-v13",
    "produce-control-batch-v13",
    "produce-control-batch-with-a-producer-v13",
    "produce-count-and-offsets-agree-but-not-the-records-v13",
    "produce-count-and-offsets-agree-on-too-few-v13",
    "produce-count-of-zero-v13",
    "produce-duplicate-after-records-were-deleted-v13",
    "produce-flipped-bit-in-a-record-v13",
    "produce-gap-v13",
    "produce-last-offset-delta-negative-v13",
    "produce-last-offset-delta-too-large-v13",
    "produce-length-one-too-small-v13",
    "produce-negative-count-v13",
    "produce-newer-producer-epoch-not-at-zero-v13",
    "produce-no-records-in-every-codec-v13",
    "produce-noise-in-every-codec-v13",
    "produce-not-really-gzip-v13",
    "produce-not-really-zstd-v13",
    "produce-offset-deltas-with-a-gap-in-a-compressed-batch-v13",
    "produce-offset-deltas-with-a-gap-v13",
    "produce-older-producer-epoch-v10",
    "produce-older-producer-epoch-v13",
    "produce-older-producer-epoch-v9",
    "produce-older-than-the-five-remembered-v13",
    "produce-overlapping-v13",
    "produce-partitions-count-apart-v13",
    "produce-plain-records-in-every-codec-v13",
    "produce-producer-with-a-negative-sequence-v13",
    "produce-producer-without-a-sequence-v13",
    "produce-really-empty-v13",
    "produce-really-empty-with-negative-delta-v13",
    "produce-record-length-too-large-v13",
    "produce-record-length-too-small-v13",
    "produce-record-lengths-in-a-compressed-batch-v13",
    "produce-settings-changed-meanwhile-v13",
    "produce-the-wrong-codec-v13",
    "produce-too-few-records-counted-v13",
    "produce-too-few-records-in-every-codec-v13",
    "produce-too-many-records-counted-v13",
    "produce-too-many-records-in-every-codec-v13",
    "produce-topic-recompressed-from-garbage-v13",
    "produce-unknown-codec-v13",
    "produce-value-length-too-large-v13",
    "produce-wrap-around-with-a-gap-v13",
    "produce-wrong-crc-v13",
    "produce-wrong-crc-v9",
    *versions("transactions-produce-after-an-end-of-the-new-protocol", 12, 13),
    *versions("transactions-produce-of-a-damaged-batch", 11, 13),
    *versions("transactions-produce-of-a-marker", 11, 13),
    "transactions-produce-of-a-plain-batch-in-a-transaction-v13",
    *versions("transactions-produce-with-a-gap-in-the-sequence", 11, 12, 13),
)

EXPLAINED: tuple[Explained, ...] = (
    Explained(
        title="Joins with unreadable subscriptions",
        reason="A consumer that joins a classic group with metadata that is no subscription makes "
        "Kafka stumble when the generation begins, and the join is never answered. Tidelog lets "
        "it in, and takes it to be subscribed to any topic.",
        cases=versions("groups-join-group-with-an-unreadable-subscription", 0, 3),
        fields=(ANSWER,),
    ),
    Explained(
        title="Fewer APIs",
        reason="Tidelog advertises only the APIs that it serves, Kafka also those for share and "
        "Streams groups, security and quotas.",
        cases=_WITH_VERSIONS,
        fields=tuple(f"api_keys/api_key={key}" for key in MISSING_APIS),
        only_missing=True,
    ),
    Explained(
        title="ApiVersions of Kafka 4.4",
        reason="Tidelog also serves version 5 of ApiVersions, which clients of Kafka 4.4 begin "
        "with: one that names a node or a cluster other than the one it has reached is answered "
        "REBOOTSTRAP_REQUIRED. Kafka 4.3 knows no such version and answers UNSUPPORTED_VERSION.",
        cases=(
            *_WITH_VERSIONS,
            *versions("api-versions-unknown", -1, 6, 99),
        ),
        fields=("api_keys/api_key=18/max_version",),
    ),
    Explained(
        title="Internal topics fit the cluster",
        reason="A single Kafka with default settings cannot make __consumer_offsets and "
        "__transaction_state, which want three replicas, so it coordinates nothing. Tidelog makes "
        "them with as many replicas as there are brokers, up to three, and holds the first "
        "question until they are there.",
        cases=(
            *versions("find-coordinator-of-a-group", 0, 3),
            *versions("find-coordinator-of-a-transactional-id", 1, 6),
            *versions("find-coordinator-of-two-groups", 4, 6),
        ),
        fields=(
            "error_code",
            "host",
            "node_id",
            "port",
            "coordinators/0/error_code",
            "coordinators/0/host",
            "coordinators/0/node_id",
            "coordinators/0/port",
            "coordinators/1/error_code",
            "coordinators/1/host",
            "coordinators/1/node_id",
            "coordinators/1/port",
            "coordinators/node_id=1",
            "coordinators/node_id=-1",
        ),
    ),
    Explained(
        title="Fewer features",
        reason="Tidelog has no share groups and no streams groups, so it does not offer their "
        "feature levels.",
        cases=(
            *versions("api-versions-asked", 3, 4),
            "api-versions-asked-again",
            "api-versions-software-name-that-ends-badly-v3",
            "api-versions-with-unknown-tagged-fields",
        ),
        fields=(
            "supported_features/name=share.version",
            "supported_features/name=streams.version",
            "finalized_features/name=share.version",
            "finalized_features/name=streams.version",
        ),
        only_missing=True,
    ),
    Explained(
        title="Fewer broker settings",
        reason="Tidelog tells the broker settings that it accepts; Kafka has many more, for "
        "security, groups, quotas and tiered storage.",
        cases=(_BROKER,),
        fields=tuple(f"{_BROKER_SETTING}{name}" for name in MISSING_SETTINGS),
        only_missing=True,
    ),
    Explained(
        title="Settings of the controller's role",
        reason="A Tidelog node is broker and controller without being told so, and reaches its "
        "controller without a listener of its own: these settings keep their defaults.",
        cases=(_BROKER,),
        fields=(
            f"{_BROKER_SETTING}controller.listener.names/config_source",
            f"{_BROKER_SETTING}controller.listener.names/value",
            f"{_BROKER_SETTING}controller.quorum.bootstrap.servers/config_source",
            f"{_BROKER_SETTING}controller.quorum.bootstrap.servers/value",
            f"{_BROKER_SETTING}process.roles/config_source",
        ),
    ),
    Explained(
        title="One listener for all",
        reason="A Tidelog node has one listener, for clients, brokers and controllers alike; a "
        "Kafka controller has one of its own, with another name.",
        cases=("describe-quorum-of-the-metadata-v2", "cluster-describe-quorum-of-three-voters-v2"),
        fields=tuple(
            f"nodes/node_id={node_id}/listeners/name={name}"
            for node_id in (1, 2, 3)
            for name in ("CONTROLLER", "PLAINTEXT")
        ),
    ),
    Explained(
        title="Who may speak as a node",
        reason="Only the nodes of a cluster fetch as replicas, vote, register, alter partitions "
        "and forward requests, after they have proved to know the cluster's secret. Others get "
        "TOPIC_AUTHORIZATION_FAILED for such a fetch and CLUSTER_AUTHORIZATION_FAILED for the "
        "rest, as from a Kafka with an authorizer; without one, Kafka serves everybody who reaches "
        "the listener.",
        cases=("fetch-by-a-replica-that-is-none-v4", "fetch-by-a-replica-state-that-is-none-v18"),
        fields=(
            f"responses/{TOPIC}/partitions/partition_index=0/error_code",
            f"responses/{TOPIC}/partitions/partition_index=0/current_leader/leader_epoch",
            f"responses/{TOPIC}/partitions/partition_index=0/current_leader/leader_id",
        ),
    ),
    Explained(
        title="Settings of its own",
        reason="Settings that begin with `tidelog.` do not exist in Kafka.",
        cases=(_BROKER,),
        fields=(
            f"{_BROKER_SETTING}tidelog.cluster.secret",
            f"{_BROKER_SETTING}tidelog.cluster.secret.file",
            f"{_BROKER_SETTING}tidelog.failure.detection",
            f"{_BROKER_SETTING}tidelog.fsync",
            f"{_BROKER_SETTING}tidelog.log.format",
            f"{_BROKER_SETTING}tidelog.log.level",
            f"{_BROKER_SETTING}tidelog.records.validation",
        ),
    ),
    Explained(
        title="Lengths and texts that make no sense",
        reason="A negative length other than the -1 of null, and text that is not UTF-8, close the "
        "connection; Kafka reads the one as null and replaces what is wrong in the other.",
        cases=(
            "api-versions-client-id-of-length-minus-two",
            "metadata-name-that-is-not-utf8",
            "produce-records-of-length-minus-five",
        ),
        fields=(ANSWER,),
    ),
    Explained(
        title="Null in place of records",
        reason="Tidelog refuses a Produce with null records (INVALID_RECORD); Kafka fails inside "
        "and never answers.",
        cases=versions("produce-null-records", 3, 9, 13),
        fields=(ANSWER,),
    ),
    Explained(
        title="AddPartitionsToTxn without a transaction",
        reason="Brokers ask coordinators for many transactions at once. Tidelog answers a request "
        "for none; Kafka never does.",
        cases=versions("transactions-add-partitions-to-txn-of-no-transactions", 4, 5),
        fields=(ANSWER,),
    ),
    Explained(
        title="A fenced producer leaves its successor alone",
        reason="InitProducerId with an outdated epoch, while another producer has a transaction "
        "open under the same transactional id: both refuse it, but Kafka aborts the other's "
        "transaction first. kafka-python asks so by itself when it was fenced.",
        cases=versions(
            "transactions-init-producer-id-with-an-open-transaction-and-an-older-epoch", 3, 5
        ),
        fields=_FENCED_BUT_NOT_ENDED,
    ),
    Explained(
        title="One resource twice in AlterConfigs",
        reason="Tidelog refuses a resource that comes twice (INVALID_REQUEST) and decides the "
        "others; Kafka fails inside and never answers.",
        cases=("alter-configs-one-resource-twice-v2",),
        fields=(ANSWER,),
    ),
    Explained(
        title="One partition twice in a Produce",
        reason="Tidelog appends both batches, in order, and answers both; Kafka silently drops the "
        "first one and answers as if there had been one.",
        cases=versions("produce-one-partition-twice", 3, 13),
        fields=(
            _PRODUCED,
            f"responses/{TOPIC}/partition_responses/base_offset=0",
            f"responses/{TOPIC}/partition_responses/base_offset=1",
            _END_OFFSET,
        ),
    ),
    Explained(
        title="Offset deltas that contradict their batch",
        reason="Tidelog refuses a batch whose records do not count from 0 (INVALID_RECORD): a "
        "reader would skip records behind it, or read one offset twice. Kafka stores it if it is "
        "not compressed, and fails on it with UNKNOWN_SERVER_ERROR if it is.",
        cases=(
            "produce-a-negative-offset-delta-in-a-compressed-batch-v13",
            "produce-an-offset-delta-twice-v13",
            "produce-offset-deltas-with-a-gap-in-a-compressed-batch-v13",
            "produce-offset-deltas-with-a-gap-v13",
        ),
        fields=(f"{_PRODUCED}/base_offset", f"{_PRODUCED}/error_code", _END_OFFSET),
    ),
    Explained(
        title="Lengths of records inside compressed batches",
        reason="Tidelog compares the length of each record with its fields (INVALID_RECORD). Kafka "
        "does so only in batches that are not compressed; consumers stop at the others.",
        cases=("produce-record-lengths-in-a-compressed-batch-v13",),
        fields=(f"{_PRODUCED}/base_offset", f"{_PRODUCED}/error_code", _END_OFFSET),
    ),
    Explained(
        title="Batches that unpack to very much",
        reason="Tidelog refuses a batch that unpacks to more than 100 MiB, or counts more than "
        "262,144 records (MESSAGE_TOO_LARGE, on which Java's producers split a batch): a leader "
        "looks at each record, and one batch must not cost a broker its memory or its session. "
        "Kafka has no such bounds.",
        cases=("produce-a-batch-that-unpacks-to-101-mebibytes-v13",),
        fields=(
            *(f"{_PRODUCED}/base_offset", f"{_PRODUCED}/error_code", _END_OFFSET),
            f"{_PRODUCED}/log_start_offset",
        ),
    ),
    Explained(
        title="A broker that was forgotten",
        reason="UnregisterBroker also takes the broker out of the eligible leader replicas: when "
        "it comes back it is trusted no more than any newcomer. Kafka leaves it among them.",
        cases=("cluster-unregister-broker-that-is-away-v0",),
        fields=(f"topics/{TOPIC}/partitions/partition_index=0/eligible_leader_replicas/0",),
        only_missing=True,
    ),
    Explained(
        title="Another target for a partition on the move",
        reason="When a reassignment is given another target, Tidelog goes on counting as *adding* "
        "whatever came with the first one, so a cancellation leads back to the replicas that the "
        "partition had in the beginning; in Kafka to those of the first target as well. Sent back "
        "by a target in place of a cancellation, the partition is there at once in Tidelog; in "
        "Kafka it is on the move until somebody cancels that.",
        cases=(
            "cluster-alter-partition-reassignments-to-another-target-on-the-way-v1",
            "cluster-alter-partition-reassignments-back-by-another-target-v1",
        ),
        fields=(
            f"topics/{TOPIC}/partitions/partition_index=0/adding_replicas/1",
            f"topics/{TOPIC}",
        ),
    ),
    Explained(
        title="Snapshots that cannot be had",
        reason="FetchSnapshot says for the partition why there is nothing to fetch; Kafka fails on "
        "its own refusal and answers nothing but UNKNOWN_SERVER_ERROR.",
        cases=(
            *versions("cluster-fetch-snapshot-of-something-else", 0, 1),
            *versions("cluster-fetch-snapshot-that-does-not-exist", 0, 1),
        ),
        fields=(
            "error_code",
            "topics/name=__cluster_metadata",
            "topics/name=tides",
            "node_endpoints/0",
        ),
    ),
    Explained(
        title="Who sent what an envelope holds",
        reason="Tidelog has no principals and no authorizer, so its nodes pass requests on without "
        "saying who sent them from where, and its controller does not look. Kafka refuses an "
        "envelope without a principal (PRINCIPAL_DESERIALIZATION_FAILURE) or without the client's "
        "address (INVALID_REQUEST).",
        cases=("cluster-envelope-without-a-sender-v0",),
        fields=("error_code", "response_data"),
    ),
    Explained(
        title="More error messages",
        reason="Tidelog says in words why a batch was refused where Kafka sends only the code.",
        cases=_WITH_MESSAGES,
        fields=(f"{_PRODUCED}/error_message",),
        only_added=True,
    ),
)


def explanation(difference: Difference) -> Explained | None:
    """The entry that explains a difference, if one does."""
    return next((entry for entry in EXPLAINED if entry.covers(difference)), None)


def unexplained(differences: Iterable[Difference]) -> list[Difference]:
    """The differences that are bugs."""
    return [difference for difference in differences if explanation(difference) is None]
