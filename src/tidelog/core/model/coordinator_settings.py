"""The settings of coordinators: limits of groups and transactions, and their internal topics."""

from __future__ import annotations

from tidelog.core.model.config import Setting, SettingType, Update, Value
from tidelog.core.model.limits import INT32_MAX, MIB

_INT, _SHORT, _LONG = SettingType.INT, SettingType.SHORT, SettingType.LONG


def _setting(
    type_: SettingType,
    name: str,
    default: Value,
    about: str,
    at_least: int | None = None,
    update: Update = Update.READ_ONLY,
) -> Setting:
    return Setting(
        name=name, type=type_, default=default, about=about, at_least=at_least, update=update
    )


COORDINATORS = (
    _setting(
        *(_INT, "group.initial.rebalance.delay.ms", 3000),
        "How long an empty group waits for more members after the first one has joined.",
    ),
    _setting(
        *(_INT, "group.max.session.timeout.ms", 1_800_000),
        "The longest session that a member may ask for.",
    ),
    _setting(
        *(_INT, "group.min.session.timeout.ms", 6000),
        "The shortest session that a member may ask for.",
    ),
    _setting(_INT, "group.max.size", INT32_MAX, "Members of one classic group.", 1),
    _setting(
        *(_INT, "group.consumer.session.timeout.ms", 45_000),
        "How long a member of a KIP-848 group may be silent.",
        1,
    ),
    _setting(
        *(_INT, "group.consumer.heartbeat.interval.ms", 5000),
        "How often members of KIP-848 groups are asked to send heartbeats.",
        1,
    ),
    _setting(_INT, "group.consumer.max.size", INT32_MAX, "Members of one KIP-848 group.", 1),
    _setting(
        *(_INT, "group.consumer.assignment.interval.ms", 1000),
        "How much time passes between two assignments of a KIP-848 group at least.",
        0,
        Update.CLUSTER_WIDE,
    ),
    _setting(
        *(_INT, "group.consumer.min.assignment.interval.ms", 0),
        "The shortest time between two assignments that a single KIP-848 group may be given.",
        0,
    ),
    _setting(
        *(_INT, "group.consumer.max.assignment.interval.ms", 15_000),
        "The longest time between two assignments that a single KIP-848 group may be given.",
        0,
    ),
    _setting(
        *(_INT, "group.consumer.min.heartbeat.interval.ms", 5_000),
        "The shortest time between two heartbeats that a single KIP-848 group may be given.",
        1,
    ),
    _setting(
        *(_INT, "group.consumer.max.heartbeat.interval.ms", 15_000),
        "The longest time between two heartbeats that a single KIP-848 group may be given.",
        1,
    ),
    _setting(
        *(_INT, "group.consumer.min.session.timeout.ms", 45_000),
        "The shortest session that a single KIP-848 group may be given.",
        1,
    ),
    _setting(
        *(_INT, "group.consumer.max.session.timeout.ms", 60_000),
        "The longest session that a single KIP-848 group may be given.",
        1,
    ),
    Setting(
        name="group.consumer.migration.policy",
        type=SettingType.STRING,
        default="bidirectional",
        about="Which way a group of consumers may change its protocol while it has members.",
        one_of=("disabled", "downgrade", "upgrade", "bidirectional"),
        ignores_case=True,
    ),
    _setting(
        *(_INT, "offset.metadata.max.bytes", 4096),
        "What a client may write beside a committed offset, in characters.",
    ),
    _setting(
        *(_INT, "offsets.commit.timeout.ms", 5000),
        "How long a coordinator's answer waits for its records to be replicated.",
        1,
    ),
    _setting(
        *(_INT, "offsets.load.buffer.size", 5 * MIB),
        "Read at once while a coordinator loads; more than 256 KiB are never read in one turn.",
        1,
    ),
    _setting(
        *(_INT, "offsets.retention.minutes", 10_080),
        "How long offsets are kept for a group that is empty, or for a topic that it left.",
        1,
    ),
    _setting(
        *(_LONG, "offsets.retention.check.interval.ms", 600_000),
        "How often expired offsets are looked for.",
        1,
    ),
    _setting(
        *(_INT, "offsets.topic.compression.codec", 0),
        "Codec of the records of coordinators, by Kafka's number; 0: none.",
    ),
    _setting(_INT, "offsets.topic.num.partitions", 50, "Partitions of __consumer_offsets.", 1),
    _setting(
        *(_SHORT, "offsets.topic.replication.factor", 3),
        "Replicas of __consumer_offsets; unless it is set, no more than there are brokers.",
        1,
    ),
    _setting(
        *(_INT, "offsets.topic.segment.bytes", 100 * MIB),
        "Segment size of __consumer_offsets.",
        1,
    ),
    _setting(
        *(_INT, "transaction.abort.timed.out.transaction.cleanup.interval.ms", 10_000),
        "How often transactions that are open for too long are looked for, and aborted.",
        1,
    ),
    _setting(
        *(_INT, "transaction.max.timeout.ms", 900_000),
        "The longest timeout that a transactional producer may ask for.",
        1,
    ),
    Setting(
        name="transaction.partition.verification.enable",
        type=SettingType.BOOLEAN,
        default=True,
        about="Whether leaders ask a transaction's coordinator before its first batch is written.",
        update=Update.CLUSTER_WIDE,
    ),
    _setting(
        *(_INT, "transaction.remove.expired.transaction.cleanup.interval.ms", 3_600_000),
        "How often transactional ids are looked for that nobody has used for long.",
        1,
    ),
    _setting(
        *(_INT, "transaction.state.log.load.buffer.size", 5 * MIB),
        "Read at once while a coordinator loads; more than 256 KiB are never read in one turn.",
        1,
    ),
    _setting(
        *(_INT, "transaction.state.log.min.isr", 2),
        "The minimum of __transaction_state; unless set, 1 in clusters of one or two brokers.",
        1,
    ),
    _setting(
        *(_INT, "transaction.state.log.num.partitions", 50),
        "Partitions of __transaction_state.",
        1,
    ),
    _setting(
        *(_SHORT, "transaction.state.log.replication.factor", 3),
        "Replicas of __transaction_state; unless it is set, no more than there are brokers.",
        1,
    ),
    _setting(
        *(_INT, "transaction.state.log.segment.bytes", 100 * MIB),
        "Segment size of __transaction_state.",
        1,
    ),
    _setting(
        *(_INT, "transactional.id.expiration.ms", 604_800_000),
        "How long a transactional id is remembered that nobody uses.",
        1,
    ),
)
