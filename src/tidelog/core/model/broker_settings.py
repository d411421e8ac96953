"""The settings of a broker that Tidelog acts on, with Kafka's names, types, defaults and limits.

Its own, which begin with `tidelog.`, are in own_settings.py. What Kafka has and Tidelog merely
takes is in accepted_settings.py; how a topic's settings follow from these is in
config_resolution.py.
"""

from __future__ import annotations

from tidelog.core.model.cleaner_settings import CLEANER
from tidelog.core.model.config import Setting, SettingType, Update, Value
from tidelog.core.model.controller_settings import CONTROLLER
from tidelog.core.model.coordinator_settings import COORDINATORS
from tidelog.core.model.limits import (
    BATCH_BYTES_MAX,
    DESCRIBED_PARTITIONS_MAX,
    FETCH_SESSIONS_MAX,
    HEARTBEAT_INTERVAL_MS,
    INT32_MAX,
    INT64_MAX,
    KIB,
    MIB,
    REQUEST_BYTES_MAX,
    SESSION_TIMEOUT_MS,
)
from tidelog.core.model.own_settings import OWN
from tidelog.core.model.quorum_settings import QUORUM
from tidelog.core.model.replication_settings import REPLICATION
from tidelog.core.model.topic_config import (
    CLEANUP_POLICIES,
    CODEC_WORDS,
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    TIMESTAMP_TYPES,
    gzip_level_rule,
)

CLUSTER = Update.CLUSTER_WIDE
_BOOLEAN, _STRING, _INT = SettingType.BOOLEAN, SettingType.STRING, SettingType.INT
_SHORT, _LONG, _DOUBLE, _LIST = (
    SettingType.SHORT,
    SettingType.LONG,
    SettingType.DOUBLE,
    SettingType.LIST,
)


def setting(
    type_: SettingType,
    name: str,
    default: Value,
    about: str,
    at_least: float | None = None,
    update: Update = Update.READ_ONLY,
    *,
    at_most: float | None = None,
) -> Setting:
    """One line of a table."""
    return Setting(
        name=name,
        type=type_,
        default=default,
        about=about,
        at_least=at_least,
        at_most=at_most,
        update=update,
    )


def _whole_retention_rule(value: Value) -> str | None:
    return "must be -1, or at least 1" if value == 0 else None


IDENTITY = (
    setting(_INT, "node.id", None, "This node's number, unique in the cluster. Must be set.", 0),
    setting(_INT, "broker.id", -1, "An older name of node.id; if both are set they must agree."),
    setting(_STRING, "broker.rack", None, "Where this broker stands; replicas spread over racks."),
    Setting(
        name="process.roles",
        type=_LIST,
        default=("broker", "controller"),
        about="What this node is. Tidelog runs both roles in one node unless told otherwise.",
        one_of=("broker", "controller"),
        may_be_empty=False,
    ),
    Setting(
        name="listeners",
        type=_LIST,
        default=("PLAINTEXT://:9092",),
        about="Where to listen, as NAME://host:port; no host means every address.",
        may_be_empty=False,
        update=Update.PER_BROKER,
    ),
    Setting(
        name="advertised.listeners",
        type=_LIST,
        default=None,
        about="Addresses that clients get instead of `listeners`, for example behind a proxy.",
    ),
    Setting(
        name="log.dirs",
        type=_LIST,
        default=None,
        about="Where the logs are: one or more directories; wins over log.dir.",
        may_be_empty=False,
    ),
    Setting(
        name="log.dir",
        type=_LIST,
        default=("/tmp/kafka-logs",),
        about="Where the logs are, if log.dirs is not set.",
        may_be_empty=False,
    ),
    Setting(
        name="controller.quorum.voters",
        type=_LIST,
        default=(),
        about="The nodes that keep the metadata, as id@host:port; a single node needs none.",
    ),
)

CONNECTIONS = (
    setting(_INT, "socket.request.max.bytes", REQUEST_BYTES_MAX, "The largest request.", 1),
    setting(_INT, "socket.send.buffer.bytes", 100 * KIB, "Of the kernel; -1: as it likes."),
    setting(_INT, "socket.listen.backlog.size", 50, "Connections that wait to be accepted.", 1),
    setting(_INT, "max.connections", INT32_MAX, "Open connections that are allowed.", 0, CLUSTER),
    setting(_INT, "max.connections.per.ip", INT32_MAX, "The same from one address.", 0, CLUSTER),
    setting(_STRING, "max.connections.per.ip.overrides", "", "As address:count,...", None, CLUSTER),
    setting(
        _LONG,
        "connections.max.idle.ms",
        10 * MINUTE_MS,
        "Silence after which a connection is closed; negative: never.",
    ),
    setting(_INT, "fetch.max.bytes", 55 * MIB, "The largest answer to a Fetch.", 1 * KIB),
    setting(
        _INT,
        "max.incremental.fetch.session.cache.slots",
        FETCH_SESSIONS_MAX,
        "Fetch sessions that are kept.",
        0,
    ),
    Setting(
        name="min.incremental.fetch.session.eviction.ms",
        type=_LONG,
        default=2 * MINUTE_MS,
        about="How long a fetch session must be unused before a new one may replace it.",
        at_least=0,
        is_internal=True,
    ),
    setting(
        _INT,
        "max.request.partition.size.limit",
        DESCRIBED_PARTITIONS_MAX,
        "Partitions in one answer to DescribeTopicPartitions.",
        1,
    ),
)

TOPICS = (
    setting(_INT, "num.partitions", 1, "Of a topic created without a count.", 1),
    setting(_INT, "default.replication.factor", 1, "Of a topic created without a factor."),
    setting(_BOOLEAN, "auto.create.topics.enable", True, "Whether asking for a topic creates it."),
    setting(_BOOLEAN, "delete.topic.enable", True, "Whether topics can be deleted."),
    setting(_INT, "min.insync.replicas", 1, "Default of the topic's setting.", 1, CLUSTER),
    setting(
        _BOOLEAN,
        "unclean.leader.election.enable",
        False,
        "Default of the topic's setting.",
        None,
        CLUSTER,
    ),
)

_OF_TOPICS = "Default of the topic's "

LOGS = (
    setting(_INT, "log.segment.bytes", 2**30, _OF_TOPICS + "segment.bytes.", 1 * MIB, CLUSTER),
    setting(_LONG, "log.roll.ms", None, _OF_TOPICS + "segment.ms.", 1, CLUSTER),
    setting(_INT, "log.roll.hours", 168, "The same in hours, if log.roll.ms is not set.", 1),
    setting(_LONG, "log.roll.jitter.ms", None, _OF_TOPICS + "segment.jitter.ms.", 0, CLUSTER),
    setting(_INT, "log.roll.jitter.hours", 0, "In hours, if log.roll.jitter.ms is not set.", 0),
    setting(
        _INT, "log.index.size.max.bytes", 10 * MIB, _OF_TOPICS + "segment.index.bytes.", 4, CLUSTER
    ),
    setting(
        _INT, "log.index.interval.bytes", 4096, _OF_TOPICS + "index.interval.bytes.", 0, CLUSTER
    ),
    setting(
        _LONG,
        "log.segment.delete.delay.ms",
        1 * MINUTE_MS,
        _OF_TOPICS + "file.delete.delay.ms.",
        0,
        CLUSTER,
    ),
    setting(
        _LONG,
        "log.flush.interval.messages",
        INT64_MAX,
        _OF_TOPICS + "flush.messages.",
        1,
        CLUSTER,
    ),
    setting(_LONG, "log.flush.interval.ms", None, _OF_TOPICS + "flush.ms.", None, CLUSTER),
    setting(
        _LONG,
        "log.flush.scheduler.interval.ms",
        INT64_MAX,
        "The same, if log.flush.interval.ms is not set.",
    ),
    Setting(
        name="log.retention.ms",
        type=_LONG,
        default=None,
        about=_OF_TOPICS + "retention.ms; negative: no limit.",
        rule=_whole_retention_rule,
        update=CLUSTER,
    ),
    Setting(
        name="log.retention.minutes",
        type=_INT,
        default=None,
        about="The same in minutes, if log.retention.ms is not set.",
        rule=_whole_retention_rule,
    ),
    Setting(
        name="log.retention.hours",
        type=_INT,
        default=168,
        about="The same in hours, if neither of the other two is set.",
        rule=_whole_retention_rule,
    ),
    setting(_LONG, "log.retention.bytes", -1, _OF_TOPICS + "retention.bytes.", None, CLUSTER),
    setting(
        _LONG, "log.retention.check.interval.ms", 5 * MINUTE_MS, "How often retention looks.", 1
    ),
    Setting(
        name="log.cleanup.policy",
        type=_LIST,
        default=("delete",),
        about=_OF_TOPICS + "cleanup.policy.",
        one_of=CLEANUP_POLICIES,
        update=CLUSTER,
    ),
    setting(
        _INT, "message.max.bytes", BATCH_BYTES_MAX, _OF_TOPICS + "max.message.bytes.", 0, CLUSTER
    ),
    Setting(
        name="log.message.timestamp.type",
        type=_STRING,
        default="CreateTime",
        about=_OF_TOPICS + "message.timestamp.type.",
        one_of=TIMESTAMP_TYPES,
        update=CLUSTER,
    ),
    setting(
        _LONG,
        "log.message.timestamp.before.max.ms",
        INT64_MAX,
        _OF_TOPICS + "message.timestamp.before.max.ms.",
        0,
        CLUSTER,
    ),
    setting(
        _LONG,
        "log.message.timestamp.after.max.ms",
        1 * HOUR_MS,
        _OF_TOPICS + "message.timestamp.after.max.ms.",
        0,
        CLUSTER,
    ),
    setting(
        _INT,
        "log.flush.offset.checkpoint.interval.ms",
        1 * MINUTE_MS,
        "How often the recovery points are written down.",
        0,
    ),
    setting(
        _INT,
        "log.flush.start.offset.checkpoint.interval.ms",
        1 * MINUTE_MS,
        "How often the log start offsets are written down.",
        0,
    ),
    setting(
        _LONG,
        "replica.high.watermark.checkpoint.interval.ms",
        5_000,
        "How often the high watermarks are written down.",
    ),
    setting(
        _INT,
        "producer.id.expiration.ms",
        1 * DAY_MS,
        "Time without a write after which a producer is forgotten.",
        1,
        CLUSTER,
    ),
    Setting(
        name="producer.id.expiration.check.interval.ms",
        type=_INT,
        default=10 * MINUTE_MS,
        about="How often idle producers are looked for.",
        at_least=1,
        is_internal=True,
    ),
)

COMPRESSION = (
    Setting(
        name="compression.type",
        type=_STRING,
        default="producer",
        about="Default of the topic's setting.",
        one_of=CODEC_WORDS,
        update=CLUSTER,
    ),
    Setting(
        name="compression.gzip.level",
        type=_INT,
        default=-1,
        about="Default of the topic's setting.",
        at_least=-1,
        at_most=9,
        rule=gzip_level_rule,
        update=CLUSTER,
    ),
    setting(
        _INT,
        "compression.lz4.level",
        9,
        "Default of the topic's setting.",
        1,
        CLUSTER,
        at_most=17,
    ),
    setting(
        _INT,
        "compression.zstd.level",
        3,
        "Default of the topic's setting.",
        -131072,
        CLUSTER,
        at_most=22,
    ),
)

MEMBERSHIP = (
    setting(
        _INT,
        "broker.heartbeat.interval.ms",
        HEARTBEAT_INTERVAL_MS,
        "Time between two heartbeats of a broker to the controller.",
    ),
    setting(
        _INT,
        "broker.session.timeout.ms",
        SESSION_TIMEOUT_MS,
        "Time without a heartbeat after which the controller fences a broker.",
    ),
)

ACTED_ON = (
    *(IDENTITY + CONNECTIONS + TOPICS + LOGS + COMPRESSION + MEMBERSHIP),
    *(QUORUM + CONTROLLER + REPLICATION + CLEANER + COORDINATORS + OWN),
)
