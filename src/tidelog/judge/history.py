"""A history: what clients asked and were answered, and what was done to the broker, as data.

Operations stand in the order of their completion. A write has one of three outcomes: `ok` (answered
with its offset), `refused` (known not to have happened) and `unknown` (nobody knows, it may be in
the log once or not at all). Payloads are unique names: the same payload twice is a duplicate.

What lets records go is given to the judge apart from the history: see excuses.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class CallOutcome(Enum):
    """What a client knows about its call."""

    OK = "ok"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class WriteAcks(Enum):
    """Who holds a record when its write is answered with ok."""

    NONE = "0"
    LEADER = "1"
    ALL = "all"


class Sequence32(NamedTuple):
    """Who numbered a record, and how."""

    producer_id: int
    producer_epoch: int
    sequence: int


class Seen(NamedTuple):
    """A record as a reader got it."""

    offset: int
    payload: str
    numbered: Sequence32 | None = None
    leader_epoch: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrote:
    """One batch for one partition. `partition` names one life of it (topic id, index)."""

    at_us: int
    invoked_us: int
    partition: str
    payloads: tuple[str, ...]
    outcome: CallOutcome
    base_offset: int | None = None
    error: str | None = None
    writer: str = "?"
    acks: WriteAcks = WriteAcks.ALL
    order: int | None = None
    """Its place among this writer's writes to this partition, if the writer promises an order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsRead:
    """One answer to a reader, complete batches only."""

    at_us: int
    invoked_us: int
    partition: str
    start_offset: int
    records: tuple[Seen, ...]
    high_watermark: int
    """As the answer says; where it is not known, the end of what was given."""
    log_start_offset: int
    corrupt_offset: int | None = None
    """The base offset of a batch whose checksum was wrong; reading stopped before it."""
    reader: str = "?"
    known_leader_epoch: int | None = None
    """What the reader told the broker about the leadership that it knows."""
    served_leader_epoch: int | None = None
    """In which leadership the broker answered, where somebody could see it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A reader goes on elsewhere than where it was: it began, sought or was reset."""

    at_us: int
    reader: str
    partition: str
    offset: int
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndOffsetListed:
    """A client asked where the log ends, which is where its readers stop: the high watermark."""

    at_us: int
    invoked_us: int
    reader: str
    partition: str
    end_offset: int
    leader_epoch: int | None = None
    """In which leadership the broker answered."""
    known_leader_epoch: int | None = None
    """What the client told the broker about the leadership that it knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HighWatermarkSet:
    """A leader began with this high watermark, or moved it there: recorded by whoever can see it.

    Where a partition has none in the history, nobody looked.
    """

    at_us: int
    partition: str
    leader_epoch: int
    high_watermark: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadDeleted:
    """Somebody may remove records below this offset from now on; None: as many as it likes."""

    at_us: int
    partition: str
    below_offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalLog:
    """Everything that can be read from a partition after all faults are over."""

    at_us: int
    partition: str
    log_start_offset: int
    end_offset: int
    records: tuple[Seen, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdGiven:
    """A broker gave a producer its id."""

    at_us: int
    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRequested:
    """A topic was to be created or deleted."""

    at_us: int
    invoked_us: int
    topic: str
    is_creation: bool
    outcome: CallOutcome
    topic_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsListed:
    """All topics that a broker knows: pairs of name and id."""

    at_us: int
    invoked_us: int
    topics: tuple[tuple[str, str], ...]


Operation = (
    Wrote
    | RecordsRead
    | Moved
    | EndOffsetListed
    | HighWatermarkSet
    | HeadDeleted
    | FinalLog
    | ProducerIdGiven
    | TopicRequested
    | TopicsListed
)
History = Sequence[Operation]
