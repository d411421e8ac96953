"""The settings of replication: how followers fetch, when they are slow, who reads from them."""

from __future__ import annotations

from tidelog.core.model.config import Setting, SettingType

LEADER_SELECTOR = "org.apache.kafka.common.replica.LeaderSelector"
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

REPLICATION = (
    Setting(
        name="replica.fetch.backoff.ms",
        type=SettingType.INT,
        default=1000,
        at_least=0,
        about="The longest pause of a follower whose leader cannot be fetched from.",
    ),
    Setting(
        name="replica.fetch.max.bytes",
        type=SettingType.INT,
        default=1_048_576,
        at_least=0,
        about="Of one partition in one answer to a follower.",
    ),
    Setting(
        name="replica.fetch.min.bytes",
        type=SettingType.INT,
        default=1,
        about="A follower's fetch waits until there is so much.",
    ),
    Setting(
        name="replica.fetch.response.max.bytes",
        type=SettingType.INT,
        default=10_485_760,
        at_least=0,
        about="The largest answer to a follower, unless its first batch is larger.",
    ),
    Setting(
        name="replica.fetch.wait.max.ms",
        type=SettingType.INT,
        default=500,
        about="How long a follower's fetch waits at the leader.",
    ),
    Setting(
        name="replica.lag.time.max.ms",
        type=SettingType.LONG,
        default=30_000,
        about="How long a follower may not be caught up before it leaves the in-sync set.",
    ),
    Setting(
        name="replica.selector.class",
        type=SettingType.STRING,
        default=None,
        one_of=(LEADER_SELECTOR, RACK_AWARE_SELECTOR),
        about="Whether clients are sent to followers in their rack; Kafka's two classes by name.",
    ),
    Setting(
        name="replica.socket.timeout.ms",
        type=SettingType.INT,
        default=30_000,
        about="How long a leader may not answer a follower before it is asked on a new link.",
    ),
)
