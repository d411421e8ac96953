"""Where Tidelog answers otherwise than Apache Kafka on purpose, each with its reason.

`docs/differences-from-kafka.md` tells the same to users; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tests.golden.compare import ABSENT, Difference


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One kind of difference. `paths` and `cases` are patterns; `*` matches anything."""

    title: str
    """The heading in the documentation."""
    reason: str
    cases: Sequence[str]
    paths: Sequence[str] = ("*",)
    only_missing: bool = False
    """Whether it explains only that Tidelog has less."""
    only_added: bool = False
    """Whether it explains only that Tidelog says something where Kafka says null."""

    def covers(self, difference: Difference) -> bool:
        return (
            any(fnmatchcase(difference.case, pattern) for pattern in self.cases)
            and any(fnmatchcase(difference.path, pattern) for pattern in self.paths)
            and (not self.only_missing or difference.tidelog == ABSENT)
            and (not self.only_added or difference.kafka is None)
        )


EXPLAINED: tuple[Explained, ...] = (
    Explained(
        title="Fewer APIs",
        reason="Tidelog advertises only the APIs that it serves, Kafka also those for groups, "
        "transactions, security and tiered storage.",
        cases=("api-versions-*",),
        paths=("*/api_keys/api_key=*",),
        only_missing=True,
    ),
    Explained(
        title="Fewer features",
        reason="Tidelog has no share groups and no streams groups, so it does not offer their "
        "feature levels.",
        cases=("api-versions-*",),
        paths=("*/name=share.version", "*/name=streams.version"),
        only_missing=True,
    ),
    Explained(
        title="Fewer broker settings",
        reason="Tidelog tells the broker settings that it accepts; Kafka has many more, for "
        "security, groups, quotas and tiered storage.",
        cases=("describe-configs-of-the-broker-*",),
        paths=("*/configs/name=*",),
        only_missing=True,
    ),
    Explained(
        title="Settings of the controller's role",
        reason="A Tidelog node is broker and controller without being told so, and reaches its "
        "controller without a listener of its own: these settings keep their defaults.",
        cases=("describe-configs-of-the-broker-v4",),
        paths=(
            "*/configs/name=controller.listener.names/*",
            "*/configs/name=controller.quorum.bootstrap.servers/*",
            "*/configs/name=process.roles/config_source",
        ),
    ),
    Explained(
        title="One listener for all",
        reason="A Tidelog node has one listener, for clients, brokers and controllers alike; a "
        "Kafka controller has one of its own, with another name.",
        cases=("describe-quorum-of-the-metadata-v2", "cluster-describe-quorum-of-three-voters-v2"),
        paths=("*/nodes/*/listeners/*",),
    ),
    Explained(
        title="Settings of its own",
        reason="Settings that begin with `tidelog.` do not exist in Kafka.",
        cases=("describe-configs-of-the-broker-v4",),
        paths=("*/configs/name=tidelog.*",),
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
        paths=("0/answer",),
    ),
    Explained(
        title="Null in place of records",
        reason="Tidelog refuses a Produce with null records (INVALID_RECORD); Kafka fails inside "
        "and never answers.",
        cases=("produce-null-records-*",),
        paths=("0/answer",),
    ),
    Explained(
        title="One partition twice in a Produce",
        reason="Tidelog appends both batches, in order, and answers both; Kafka silently drops the "
        "first one and answers as if there had been one.",
        cases=("produce-one-partition-twice-*",),
    ),
    Explained(
        title="Batches stay closed",
        reason="Tidelog checks a batch's header and checksum and stores its records as they came; "
        "Kafka also opens each batch, and so finds records that contradict their header or a "
        "compressed part that is none. Readers find these in Tidelog. Where a topic's settings "
        "demand a look at single records (compaction, another compression), Tidelog looks, too.",
        cases=(
            "produce-count-and-offsets-agree-on-too-few-v13",
            "produce-not-really-gzip-v13",
            "produce-not-really-zstd-v13",
            "produce-offset-deltas-with-a-gap-in-a-compressed-batch-v13",
            "produce-record-length-*",
            "produce-value-length-too-large-v13",
        ),
    ),
    Explained(
        title="A broker that was forgotten",
        reason="UnregisterBroker also takes the broker out of the eligible leader replicas: when "
        "it comes back it is trusted no more than any newcomer. Kafka leaves it among them.",
        cases=("cluster-unregister-broker-that-is-away-v0",),
        paths=("*/eligible_leader_replicas/0",),
        only_missing=True,
    ),
    Explained(
        title="Snapshots that cannot be had",
        reason="FetchSnapshot says for the partition why there is nothing to fetch; Kafka fails on "
        "its own refusal and answers nothing but UNKNOWN_SERVER_ERROR.",
        cases=(
            "cluster-fetch-snapshot-of-something-else-*",
            "cluster-fetch-snapshot-that-does-not-exist-*",
        ),
        paths=("*/answer/error_code", "*/answer/topics/*", "*/answer/node_endpoints/*"),
    ),
    Explained(
        title="Who sent what an envelope holds",
        reason="Tidelog has no principals and no authorizer, so its nodes pass requests on without "
        "saying who sent them from where, and its controller does not look. Kafka refuses an "
        "envelope without a principal (PRINCIPAL_DESERIALIZATION_FAILURE) or without the client's "
        "address (INVALID_REQUEST).",
        cases=("cluster-envelope-without-a-sender-v0",),
        paths=("*/answer/error_code", "*/answer/response_data"),
    ),
    Explained(
        title="More error messages",
        reason="Tidelog says in words why a batch was refused where Kafka sends only the code.",
        cases=("produce-*",),
        paths=("*/error_message",),
        only_added=True,
    ),
)


def explanation(difference: Difference) -> Explained | None:
    """The entry that explains a difference, if one does."""
    return next((entry for entry in EXPLAINED if entry.covers(difference)), None)


def unexplained(differences: Iterable[Difference]) -> list[Difference]:
    """The differences that are bugs."""
    return [difference for difference in differences if explanation(difference) is None]
