"""What a sink is given, checked before Spark is asked for anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tidelog.client.config import client_config
from tidelog.client.settings import ConfigError
from tidelog.client.sink.errors import SinkRefused
from tidelog.core.model.topic_name import refuse_topic_name
from tidelog.spark.columns.encode import COMPRESSIONS

BATCH_BYTES = 900_000
"""Before compression: below Kafka's default of `max.message.bytes` with room for the header."""
ATTEMPTS = 3
_ID_CHARACTERS_MAX = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkPlan:
    """Where rows go, and how."""

    bootstrap: str
    sink_id: str
    topics: tuple[str, ...]
    topic: str | None
    """The one topic of all rows; None: each row names its own."""
    compression: str = "none"
    batch_bytes: int = BATCH_BYTES
    writers: int | None = None
    order_by: tuple[str, ...] = ()
    attempts: int = ATTEMPTS
    transaction_timeout_ms: int | None = None
    resume_at: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def client_settings(self) -> dict[str, str]:
        """For drivers and tasks alike."""
        given = {"client.id": f"tidelog-sink-{self.sink_id}", **self.settings}
        return {**given, "bootstrap.servers": self.bootstrap}


def sink_plan(
    bootstrap: str,
    sink_id: str,
    *,
    topic: str | None = None,
    topics: Sequence[str] = (),
    compression: str = "none",
    batch_bytes: int = BATCH_BYTES,
    writers: int | None = None,
    order_by: str | Sequence[str] = (),
    attempts: int = ATTEMPTS,
    transaction_timeout_ms: int | None = None,
    resume_at: int | None = None,
    settings: Mapping[str, str] | None = None,
) -> SinkPlan:
    """SinkRefused, which says what would be right, for everything that cannot be."""
    names = _topics(topic, topics)
    _check_id(sink_id)
    if compression not in COMPRESSIONS:
        raise SinkRefused(f"compression {compression!r} is not one of {', '.join(COMPRESSIONS)}")
    for label, number in (("batch_bytes", batch_bytes), ("attempts", attempts)):
        _check_positive(label, number)
    for label, wish in (("writers", writers), ("transaction_timeout_ms", transaction_timeout_ms)):
        _check_positive(label, 1 if wish is None else wish)
    if resume_at is not None and resume_at < 0:
        raise SinkRefused(f"resume_at={resume_at} is no batch id")
    plan = SinkPlan(
        bootstrap=bootstrap,
        sink_id=sink_id,
        topics=names,
        topic=topic,
        compression=compression,
        batch_bytes=batch_bytes,
        writers=writers,
        order_by=(order_by,) if isinstance(order_by, str) else tuple(order_by),
        attempts=attempts,
        transaction_timeout_ms=transaction_timeout_ms,
        resume_at=resume_at,
        settings=dict(settings or {}),
    )
    try:
        client_config(plan.client_settings)
    except ConfigError as error:
        raise SinkRefused(str(error)) from None
    return plan


def _topics(topic: str | None, topics: Sequence[str]) -> tuple[str, ...]:
    if (topic is None) == (not topics):
        raise SinkRefused(
            "a sink needs either topic=..., for all rows, or topics=[...], of which each row names"
            " one in its column topic"
        )
    names = (topic,) if topic is not None else tuple(dict.fromkeys(topics))
    for name in names:
        trouble = refuse_topic_name(name)
        if trouble is not None:
            raise SinkRefused(trouble)
    return names


def _check_id(sink_id: str) -> None:
    if not sink_id or len(sink_id) > _ID_CHARACTERS_MAX or not sink_id.isprintable():
        raise SinkRefused(
            f"a sink id is 1 to {_ID_CHARACTERS_MAX} printable characters, not {sink_id!r}"
        )


def _check_positive(label: str, number: int) -> None:
    if number < 1:
        raise SinkRefused(f"{label}={number} must be at least 1")
