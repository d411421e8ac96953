"""A consumer's settings."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tidelog.client.config import COMMON_SETTINGS, ClientConfig, read_client_config
from tidelog.client.settings import BOOLEAN, INT, STRING, Given, Values
from tidelog.core.model.config import Setting


class Reset(Enum):
    """Where to begin without a position, or with one that does not exist any more."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"


CONSUMER_SETTINGS = (
    Setting(
        "auto.offset.reset",
        STRING,
        "latest",
        "where to begin without a position",
        one_of=tuple(each.value for each in Reset),
    ),
    Setting(
        "isolation.level",
        STRING,
        "read_uncommitted",
        "whether records of open and aborted transactions are given",
        one_of=("read_uncommitted", "read_committed"),
    ),
    Setting("fetch.min.bytes", INT, 1, "bytes that make a broker answer", at_least=0),
    Setting("fetch.max.bytes", INT, 50 * 2**20, "bytes of one answer", at_least=0),
    Setting("fetch.max.wait.ms", INT, 500, "longest wait for these bytes", at_least=0),
    Setting(
        "max.partition.fetch.bytes", INT, 2**20, "bytes of one partition in an answer", at_least=0
    ),
    Setting("max.poll.records", INT, 500, "records of one poll", at_least=1),
    Setting("check.crcs", BOOLEAN, True, "check what came over the wire"),
    Setting("allow.auto.create.topics", BOOLEAN, True, "asking for a topic may create it"),
    Setting("default.api.timeout.ms", INT, 60_000, "longest wait for offsets", at_least=0),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig:
    """All settings of a consumer; `client` goes to the Client that it is attached to."""

    client: ClientConfig
    reset: Reset
    is_read_committed: bool
    fetch_bytes_min: int
    fetch_bytes_max: int
    fetch_wait_ms: int
    partition_bytes_max: int
    poll_records_max: int
    checks_crcs: bool
    api_timeout_ms: int


def consumer_config(given: Given) -> ConsumerConfig:
    """ConfigError says what is wrong with the given settings."""
    return read_consumer_config(Values(COMMON_SETTINGS + CONSUMER_SETTINGS, given))


def read_consumer_config(values: Values) -> ConsumerConfig:
    """The part of the values that concerns reading."""
    return ConsumerConfig(
        client=read_client_config(
            values, name="consumer", creates_topics=values.flag("allow.auto.create.topics")
        ),
        reset=Reset(values.text("auto.offset.reset")),
        is_read_committed=values.text("isolation.level") == "read_committed",
        fetch_bytes_min=values.number("fetch.min.bytes"),
        fetch_bytes_max=values.number("fetch.max.bytes"),
        fetch_wait_ms=values.number("fetch.max.wait.ms"),
        partition_bytes_max=values.number("max.partition.fetch.bytes"),
        poll_records_max=values.number("max.poll.records"),
        checks_crcs=values.flag("check.crcs"),
        api_timeout_ms=values.number("default.api.timeout.ms"),
    )
