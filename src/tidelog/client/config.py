"""Settings that all clients share: the first brokers to ask, timeouts and pauses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tidelog.client.settings import INT, LIST, LONG, STRING, ConfigError, Given, Values
from tidelog.core.model.config import Setting
from tidelog.core.model.limits import INT32_MAX

CONSUMER_REQUESTS_IN_FLIGHT_MAX = 100


class Address(NamedTuple):
    """Where a broker can be reached."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


COMMON_SETTINGS = (
    Setting("bootstrap.servers", LIST, (), "brokers to ask first"),
    Setting("client.id", STRING, "", "the name in the broker's logs"),
    Setting("client.rack", STRING, "", "the rack of this client"),
    Setting("request.timeout.ms", INT, 30_000, "wait for an answer", at_least=0),
    Setting("retry.backoff.ms", LONG, 100, "first pause before a retry", at_least=0),
    Setting("retry.backoff.max.ms", LONG, 1_000, "longest pause before a retry", at_least=0),
    Setting("reconnect.backoff.ms", LONG, 50, "first pause before a reconnect", at_least=0),
    Setting("reconnect.backoff.max.ms", LONG, 1_000, "longest such pause", at_least=0),
    Setting("socket.connection.setup.timeout.ms", LONG, 10_000, "wait for a connection"),
    Setting("socket.connection.setup.timeout.max.ms", LONG, 30_000, "longest such wait"),
    Setting("metadata.max.age.ms", LONG, 300_000, "longest time between two refreshes", at_least=0),
    Setting(
        "metadata.recovery.strategy",
        STRING,
        "rebootstrap",
        "what to do when no known broker can be reached",
        one_of=("none", "rebootstrap"),
        ignores_case=True,
    ),
    Setting(
        "metadata.recovery.rebootstrap.trigger.ms",
        LONG,
        300_000,
        "time without metadata after which the first list is tried again",
        at_least=0,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """The part of a client's settings that concerns connections and metadata."""

    bootstrap: tuple[Address, ...]
    client_id: str = "tidelog"
    client_rack: str = ""
    request_timeout_ms: int = 30_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    connection_setup_timeout_ms: int = 10_000
    connection_setup_timeout_max_ms: int = 30_000
    metadata_max_age_ms: int = 300_000
    rebootstraps: bool = True
    rebootstrap_trigger_ms: int = 300_000
    in_flight_max: int = CONSUMER_REQUESTS_IN_FLIGHT_MAX
    creates_topics: bool = False
    """Whether asking for the metadata of a topic may create it."""


def client_config(given: Given) -> ClientConfig:
    """For an admin, which needs nothing else."""
    return read_client_config(Values(COMMON_SETTINGS, given), name="adminclient")


def read_client_config(
    values: Values,
    *,
    name: str,
    in_flight_max: int = CONSUMER_REQUESTS_IN_FLIGHT_MAX,
    creates_topics: bool = False,
) -> ClientConfig:
    """The common part; `name` is the client id of a program that gives none."""
    return ClientConfig(
        bootstrap=_addresses(values.items("bootstrap.servers")),
        client_id=values.text("client.id") or name,
        client_rack=values.text("client.rack"),
        request_timeout_ms=values.number("request.timeout.ms"),
        retry_backoff_ms=values.number("retry.backoff.ms"),
        retry_backoff_max_ms=values.number("retry.backoff.max.ms"),
        reconnect_backoff_ms=values.number("reconnect.backoff.ms"),
        reconnect_backoff_max_ms=values.number("reconnect.backoff.max.ms"),
        connection_setup_timeout_ms=values.number("socket.connection.setup.timeout.ms"),
        connection_setup_timeout_max_ms=values.number("socket.connection.setup.timeout.max.ms"),
        metadata_max_age_ms=values.number("metadata.max.age.ms"),
        rebootstraps=values.text("metadata.recovery.strategy").lower() == "rebootstrap",
        rebootstrap_trigger_ms=values.number("metadata.recovery.rebootstrap.trigger.ms"),
        in_flight_max=min(in_flight_max, INT32_MAX),
        creates_topics=creates_topics,
    )


def _addresses(texts: tuple[str, ...]) -> tuple[Address, ...]:
    if not texts:
        raise ConfigError("bootstrap.servers must name at least one host:port")
    return tuple(_address(text) for text in texts)


def _address(text: str) -> Address:
    host, _, port = text.strip().rpartition(":")
    host = host.rpartition("//")[2].removeprefix("[").removesuffix("]")
    if not host or not port.isdigit() or not 0 < int(port) < 2**16:
        raise ConfigError(f"bootstrap.servers: {text!r} is not host:port")
    return Address(host, int(port))
