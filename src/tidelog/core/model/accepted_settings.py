"""Settings of Kafka that Tidelog takes without acting on them: a broker's file for Kafka loads.

Some belong to what Kafka does in its own way (threads, buffers, purgatories, quotas), some to what
Tidelog does not do yet. What would be dangerous to pass over in silence (encryption, access
control, policies, tiered storage) is not here: it is refused like any unknown name.
"""

from __future__ import annotations

from tidelog.core.model.config import Setting, SettingType, Update, Value
from tidelog.core.model.limits import INT32_MAX, INT64_MAX

BOOLEAN, STRING, INT = SettingType.BOOLEAN, SettingType.STRING, SettingType.INT
SHORT, LONG, DOUBLE = SettingType.SHORT, SettingType.LONG, SettingType.DOUBLE
LIST = SettingType.LIST
CLUSTER = Update.CLUSTER_WIDE

_THROTTLE = "Bytes per second that a reassignment may take; Tidelog does not throttle."
REPLICATION_THROTTLES = tuple(
    Setting(
        name=name,
        type=LONG,
        default=INT64_MAX,
        at_least=0,
        update=CLUSTER,
        about=_THROTTLE,
        has_effect=False,
    )
    for name in (
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    )
)
"""As in Kafka, they are for running brokers: a file does not have them."""

_LATER = "Taken, with Kafka's default and limits; Tidelog does not act on it yet."
_IGNORED = "Taken so that a configuration for Kafka loads; Tidelog has nothing that it would steer."


def _later(
    type_: SettingType,
    name: str,
    default: Value,
    at_least: int | None = None,
    update: Update = Update.READ_ONLY,
) -> Setting:
    return _taken(_LATER, type_, name, default, at_least, update)


def _ignored(
    type_: SettingType,
    name: str,
    default: Value,
    at_least: int | None = None,
    update: Update = Update.READ_ONLY,
) -> Setting:
    return _taken(_IGNORED, type_, name, default, at_least, update)


def _taken(
    about: str,
    type_: SettingType,
    name: str,
    default: Value,
    at_least: int | None,
    update: Update,
) -> Setting:
    return Setting(
        name=name,
        type=type_,
        default=default,
        about=about,
        at_least=at_least,
        update=update,
        has_effect=False,
    )


NOT_YET = (
    _later(INT, "add.partitions.to.txn.retry.backoff.max.ms", 100, 0),
    _later(INT, "add.partitions.to.txn.retry.backoff.ms", 20, 1),
    _later(BOOLEAN, "controlled.shutdown.enable", True),
    _later(LIST, "controller.listener.names", None),
    _later(INT, "controller.quorum.append.linger.ms", 25, 0),
    _later(BOOLEAN, "controller.quorum.auto.join.enable", False),
    _later(LIST, "controller.quorum.bootstrap.servers", ()),
    _later(INT, "controller.quota.window.num", 11, 1),
    _later(INT, "controller.quota.window.size.seconds", 1, 1),
    _later(INT, "controller.socket.timeout.ms", 30_000),
    _later(LIST, "group.consumer.assignors", ("uniform", "range")),
    _later(INT, "group.coordinator.append.linger.ms", -1, -1),
    _later(INT, "group.coordinator.background.threads", 2, 1),
    _later(INT, "group.coordinator.cached.buffer.max.bytes", 1_048_588, 524288, CLUSTER),
    Setting(
        name="group.coordinator.rebalance.protocols",
        type=LIST,
        default=("classic", "consumer", "streams"),
        about=_LATER,
        one_of=("consumer", "classic", "share", "streams"),
        has_effect=False,
    ),
    _later(INT, "group.coordinator.threads", 4, 1),
    _later(INT, "initial.broker.registration.timeout.ms", 60_000),
    _later(STRING, "inter.broker.listener.name", None),
    _later(INT, "num.replica.alter.log.dirs.threads", None),
    _later(INT, "num.replica.fetchers", 1, 1, CLUSTER),
    _later(INT, "replica.socket.receive.buffer.bytes", 65_536),
    _later(INT, "replication.quota.window.num", 11, 1),
    _later(INT, "replication.quota.window.size.seconds", 1, 1),
)

OF_KAFKA_ALONE = (
    Setting(
        name="authorizer.class.name",
        type=STRING,
        default="",
        about="Tidelog has no access control yet, so only no authorizer is taken.",
        one_of=("",),
    ),
    _ignored(INT, "background.threads", 10, 1, CLUSTER),
    _ignored(INT, "delete.records.purgatory.purge.interval.requests", 1),
    _ignored(INT, "fetch.purgatory.purge.interval.requests", 1000),
    Setting(
        name="listener.security.protocol.map",
        type=STRING,
        default="SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        about="The protocol of each listener's name; so far all of them must be PLAINTEXT.",
        update=Update.PER_BROKER,
    ),
    _ignored(INT, "log.cleaner.threads", 1, 0, CLUSTER),
    _ignored(LONG, "log.dir.failure.timeout.ms", 30_000, 1),
    _ignored(LONG, "log.local.retention.bytes", -2, -2, CLUSTER),
    _ignored(LONG, "log.local.retention.ms", -2, -2, CLUSTER),
    _ignored(BOOLEAN, "log.preallocate", False, None, CLUSTER),
    _ignored(INT, "max.connection.creation.rate", INT32_MAX, 0, CLUSTER),
    _ignored(STRING, "metadata.log.dir", None),
    _ignored(LONG, "metadata.log.max.snapshot.interval.ms", 3_600_000, 0),
    _ignored(INT, "metadata.log.segment.bytes", 1_073_741_824, 8388608),
    _ignored(LONG, "metadata.log.segment.ms", 604_800_000),
    _ignored(INT, "metadata.max.idle.interval.ms", 500, 0),
    _ignored(LONG, "metadata.max.retention.bytes", 104_857_600),
    _ignored(LONG, "metadata.max.retention.ms", 604_800_000),
    _ignored(INT, "metrics.num.samples", 2, 1),
    _ignored(STRING, "metrics.recording.level", "INFO"),
    _ignored(LONG, "metrics.sample.window.ms", 30_000, 1),
    _ignored(INT, "num.io.threads", 8, 1, CLUSTER),
    _ignored(INT, "num.network.threads", 3, 1, CLUSTER),
    _ignored(INT, "num.recovery.threads.per.data.dir", 2, 1, CLUSTER),
    _ignored(INT, "producer.purgatory.purge.interval.requests", 1000),
    _ignored(LONG, "queued.max.request.bytes", -1),
    _ignored(INT, "queued.max.requests", 500, 1),
    _ignored(INT, "quota.window.num", 11, 1),
    _ignored(INT, "quota.window.size.seconds", 1, 1),
    _ignored(INT, "request.timeout.ms", 30_000),
    Setting(
        name="security.inter.broker.protocol",
        type=STRING,
        default="PLAINTEXT",
        about="How brokers talk to each other: so far without encryption.",
        one_of=("PLAINTEXT",),
    ),
    _ignored(LONG, "socket.connection.setup.timeout.max.ms", 30_000),
    _ignored(LONG, "socket.connection.setup.timeout.ms", 10_000),
    _ignored(INT, "socket.receive.buffer.bytes", 102_400),
    _ignored(INT, "telemetry.max.bytes", 1_048_576, 1),
)

ACCEPTED = NOT_YET + OF_KAFKA_ALONE
