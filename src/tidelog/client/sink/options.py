"""What a sink is given, checked once, before anything slow begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tidelog.client.config import client_config
from tidelog.client.settings import ConfigError
from tidelog.client.sink.errors import SinkRefused
from tidelog.core.model.topic_name import refuse_topic_name
from tidelog.core.wire.compression import Compression

BATCH_BYTES = 900_000
"""Before compression: below Kafka's default of `max.message.bytes` with room for the header."""
ATTEMPTS = 3
GROUP_PREFIX = "tidelog-sink-"
_ID_CHARACTERS_MAX = 200
_COMPRESSIONS = tuple(codec.name.lower() for codec in Compression)


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """Where rows go, and how. SinkRefused, which says what would be right, for what cannot be."""

    bootstrap: str
    sink_id: str
    topic: str | None = None
    """The one topic of all rows; None: each row names one of `topics`."""
    topics: Sequence[str] = ()
    compression: str = "none"
    batch_bytes: int = BATCH_BYTES
    writers: int | None = None
    """Number of tasks that write; None: as many as Spark runs at a time."""
    order_by: str | Sequence[str] = ()
    attempts: int = ATTEMPTS
    """How often a batch is begun before the query fails."""
    transaction_timeout_ms: int | None = None
    resume_at: int | None = None
    """For a sink whose marker was lost: everything before this batch counts as published."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Kafka's, for every client."""

    def __post_init__(self) -> None:
        self._check_topics()
        if (
            not self.sink_id
            or len(self.sink_id) > _ID_CHARACTERS_MAX
            or not self.sink_id.isprintable()
        ):
            raise SinkRefused(
                f"a sink id is 1 to {_ID_CHARACTERS_MAX} printable characters, not {self.sink_id!r}"
            )
        if self.compression not in _COMPRESSIONS:
            raise SinkRefused(
                f"compression {self.compression!r} is not one of {', '.join(_COMPRESSIONS)}"
            )
        for name in ("batch_bytes", "attempts", "writers", "transaction_timeout_ms"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise SinkRefused(f"{name}={number} must be at least 1")
        if self.resume_at is not None and self.resume_at < 0:
            raise SinkRefused(f"resume_at={self.resume_at} is no batch id")
        try:
            client_config(self.client_settings)
        except ConfigError as error:
            raise SinkRefused(str(error)) from None

    def _check_topics(self) -> None:
        if (self.topic is None) == (not self.topics):
            raise SinkRefused(
                "a sink needs either topic=..., for all rows, or topics=[...], of which each row"
                " names one in its column topic"
            )
        for name in self.topic_names:
            refusal = refuse_topic_name(name)
            if refusal is not None:
                raise SinkRefused(refusal)

    @property
    def group(self) -> str:
        """The group that holds the sink's marker, and its transactional id."""
        return GROUP_PREFIX + self.sink_id

    @property
    def topic_names(self) -> tuple[str, ...]:
        """All topics that the sink may write, each once."""
        return (self.topic,) if self.topic is not None else tuple(dict.fromkeys(self.topics))

    @property
    def order_columns(self) -> tuple[str, ...]:
        return (self.order_by,) if isinstance(self.order_by, str) else tuple(self.order_by)

    @property
    def client_settings(self) -> dict[str, str]:
        """For drivers and tasks alike."""
        given = {"client.id": self.group, **self.settings}
        return {**given, "bootstrap.servers": self.bootstrap}
