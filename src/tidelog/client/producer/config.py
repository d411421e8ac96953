"""A producer's settings, with Java's rules for the ones that depend on each other."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tidelog.client.config import COMMON_SETTINGS, ClientConfig, read_client_config
from tidelog.client.settings import BOOLEAN, INT, LONG, STRING, ConfigError, Given, Values
from tidelog.core.model.config import Setting
from tidelog.core.model.limits import INT32_MAX, PRODUCER_REQUESTS_IN_FLIGHT_MAX
from tidelog.core.wire.compression import Compression
from tidelog.core.wire.sentinels import ACKS_ALL

_CODECS = {codec.name.lower(): codec for codec in Compression}


class TransactionProtocol(Enum):
    """How a producer and its cluster agree on what belongs to a transaction."""

    CLASSIC = "classic"
    """Partitions and groups are added before they are written to; the producer epoch stays."""
    VERSION_2 = "2"
    """KIP-890: a write adds its partition, and each transaction has its own producer epoch."""


_ANY_PROTOCOL = "auto"

_SETTINGS = (
    Setting("acks", STRING, "all", "who must have it", one_of=("all", "-1", "0", "1")),
    Setting("batch.size", INT, 16_384, "bytes of one batch", at_least=0),
    Setting("linger.ms", LONG, 5, "wait for company", at_least=0),
    Setting("buffer.memory", LONG, 32 * 2**20, "bytes of all batches", at_least=0),
    Setting("max.block.ms", LONG, 60_000, "wait for metadata and room", at_least=0),
    Setting("max.in.flight.requests.per.connection", INT, 5, "unanswered", at_least=1),
    Setting("max.request.size", INT, 2**20, "bytes of one request", at_least=0),
    Setting("retries", INT, INT32_MAX, "attempts after the first", at_least=0, at_most=INT32_MAX),
    Setting("delivery.timeout.ms", INT, 120_000, "from send to outcome", at_least=0),
    Setting("enable.idempotence", BOOLEAN, True, "number the batches"),
    Setting(
        "compression.type",
        STRING,
        "none",
        "how batches are packed",
        one_of=tuple(_CODECS),
    ),
    Setting("transactional.id", STRING, "", "the name of this producer's transactions"),
    Setting("transaction.timeout.ms", INT, 60_000, "longest transaction", at_least=1),
    Setting(
        "tidelog.transaction.protocol",
        STRING,
        _ANY_PROTOCOL,
        "the newest that the cluster has, or the classic one in any case",
        one_of=(_ANY_PROTOCOL, TransactionProtocol.CLASSIC.value),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConfig:
    """All settings of a producer; `client` goes to the Client that it is attached to."""

    client: ClientConfig
    acks: int
    batch_size: int
    linger_ms: int
    buffer_memory: int
    max_block_ms: int
    in_flight_max: int
    request_bytes_max: int
    retries: int
    delivery_timeout_ms: int
    is_idempotent: bool
    compression: Compression
    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000
    only_protocol: TransactionProtocol | None = None
    """None: as the cluster has it."""


def producer_config(given: Given) -> ProducerConfig:
    """ConfigError says which rule the given settings break."""
    values = Values(COMMON_SETTINGS + _SETTINGS, given)
    in_flight_max = values.number("max.in.flight.requests.per.connection")
    acks = ACKS_ALL if values.text("acks") == "all" else int(values.text("acks"))
    is_idempotent = _is_idempotent(values, acks)
    protocol = values.text("tidelog.transaction.protocol")
    return ProducerConfig(
        client=read_client_config(
            values, name="producer", in_flight_max=in_flight_max, creates_topics=True
        ),
        acks=acks,
        batch_size=max(1, values.number("batch.size")),
        linger_ms=min(values.number("linger.ms"), INT32_MAX),
        buffer_memory=values.number("buffer.memory"),
        max_block_ms=values.number("max.block.ms"),
        in_flight_max=in_flight_max,
        request_bytes_max=values.number("max.request.size"),
        retries=values.number("retries"),
        delivery_timeout_ms=_delivery_timeout_ms(values),
        is_idempotent=is_idempotent,
        compression=_CODECS[values.text("compression.type")],
        transactional_id=_transactional_id(values, is_idempotent=is_idempotent),
        transaction_timeout_ms=values.number("transaction.timeout.ms"),
        only_protocol=None if protocol == _ANY_PROTOCOL else TransactionProtocol(protocol),
    )


def _transactional_id(values: Values, *, is_idempotent: bool) -> str | None:
    if not values.was_given("transactional.id"):
        return None
    name = values.text("transactional.id")
    if not name:
        raise ConfigError("transactional.id must not be empty")
    if not is_idempotent:
        raise ConfigError(
            "transactional.id needs enable.idempotence, with acks=all and without retries=0"
        )
    return name


def _is_idempotent(values: Values, acks: int) -> bool:
    """On unless something speaks against it; an error if it was asked for all the same."""
    if not values.flag("enable.idempotence"):
        return False
    requested = values.was_given("enable.idempotence")
    in_flight_max = values.number("max.in.flight.requests.per.connection")
    if values.number("retries") == 0:
        if requested:
            raise ConfigError("retries must not be 0 with enable.idempotence")
        return False
    if acks != ACKS_ALL:
        if requested:
            raise ConfigError("acks must be all with enable.idempotence: less cannot guarantee it")
        return False
    if in_flight_max > PRODUCER_REQUESTS_IN_FLIGHT_MAX:
        raise ConfigError(
            "max.in.flight.requests.per.connection must be at most "
            f"{PRODUCER_REQUESTS_IN_FLIGHT_MAX} with enable.idempotence, not {in_flight_max}"
        )
    return True


def _delivery_timeout_ms(values: Values) -> int:
    """At least one attempt must fit into it; a default gives way, a chosen value does not."""
    needed_ms = min(values.number("linger.ms") + values.number("request.timeout.ms"), INT32_MAX)
    timeout_ms = values.number("delivery.timeout.ms")
    if timeout_ms >= needed_ms:
        return timeout_ms
    if values.was_given("delivery.timeout.ms"):
        raise ConfigError(
            f"delivery.timeout.ms={timeout_ms} must be at least "
            f"linger.ms + request.timeout.ms, which is {needed_ms}"
        )
    return needed_ms
