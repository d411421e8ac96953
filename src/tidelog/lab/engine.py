"""The engine: the few words that a world must understand for a story to be played in it.

Nodes are numbers, clients are names. Everything that a story learns from a broker it learns by
asking on the wire, so evidence needs no word of its own here, but for two kinds: what lies on a
node's disk, and the trace of the requests that a node served. Which engine understands which word
is a table (`WORDS`); an engine raises `CannotHere` at a word that it does not understand, and the
story is then reported as not playable there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from tidelog.client.group.offset_commits import CommitOutcome
from tidelog.client.group.offset_requests import OffsetAndMetadata
from tidelog.cluster.layout import NodePlan
from tidelog.core.model.exceptions import TidelogError
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.schema import Message
from tidelog.faults.kinds import ENGINES_OF_VERB, EVERYWHERE, OURS
from tidelog.judge.history import HighWatermarkSet

OBSERVER = "observer"
"""The client host that collects evidence. No fault touches it."""

Host = int | str
"""A node by its id, or a client by its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A whole cluster: its nodes, and settings that all of them share, by Kafka's names."""

    nodes: tuple[NodePlan, ...]
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def broker_ids(self) -> tuple[int, ...]:
        return tuple(node.id for node in self.nodes if node.is_broker)

    @property
    def node_ids(self) -> tuple[int, ...]:
        return tuple(node.id for node in self.nodes)


class CannotHere(TidelogError):
    """This engine does not understand a word of the story."""


class StoryTimeout(TidelogError, AssertionError):
    """What a story waited for did not happen in its time."""


class MissingAnswer(NamedTuple):
    """A broker did not answer: "refused", "closed", "reset", "timed out"..."""

    reason: str


class Pending(Protocol):
    """A request that was sent, and its answer once it is there."""

    @property
    def answer(self) -> Message | MissingAnswer | None: ...

    @property
    def answered_us(self) -> int | None: ...


class RequestSeen(NamedTuple):
    """One request that a node was asked, with its answer once it left."""

    at_us: int
    peer: Host
    """Who asked."""
    api_key: int
    version: int
    request: Message
    answer: Message | None
    answered_us: int | None


class Happening(NamedTuple):
    """One event of a node's own trace: its kind is the name, its fields the rest of the line."""

    at_us: int
    kind: str
    fields: Mapping[str, Any]


class Ticket(Protocol):
    """One record given to a producer of the client room."""

    @property
    def is_over(self) -> bool: ...

    @property
    def is_blocked(self) -> bool: ...

    @property
    def outcome(self) -> object: ...

    @property
    def over_us(self) -> int | None: ...


class ProducerHandle(Protocol):
    """A Kafka producer on a client host."""

    def send(self, topic: str, index: int, value: bytes) -> Ticket: ...

    def flush(self) -> None: ...

    @property
    def pending(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Consumed:
    """A record as a consumer got it."""

    at_us: int
    topic: str
    index: int
    offset: int
    leader_epoch: int | None
    value: bytes | None


class ConsumerHandle(Protocol):
    """A Kafka consumer on a client host, with its partitions assigned by hand."""

    def assign(self, partitions: Sequence[tuple[str, int]]) -> None: ...

    def seek(self, topic: str, index: int, offset: int, *, leader_epoch: int | None) -> None: ...

    def position(self, topic: str, index: int) -> int | None: ...

    def poll(self) -> list[Consumed]:
        """What there is now, or the exception that Java's poll would raise."""


class MemberAssigned(NamedTuple):
    """A group gave a member its partitions."""

    at_us: int
    generation: int
    member_id: str
    partitions: tuple[TopicPartition, ...]


class CommitHandle(Protocol):
    """One commit of a member, and what became of it."""

    @property
    def offsets(self) -> Mapping[TopicPartition, OffsetAndMetadata]: ...

    @property
    def outcome(self) -> CommitOutcome | None:
        """None while nobody knows."""

    @property
    def over_us(self) -> int | None: ...


class MemberHandle(Protocol):
    """A Kafka consumer on a client host that is a member of a group.

    It sends its heartbeats by itself, also while its program does not poll. It commits only when
    it is told to, so not when partitions are revoked either.
    """

    @property
    def assignments(self) -> Sequence[MemberAssigned]:
        """All that it was ever given, oldest first."""

    @property
    def owned(self) -> tuple[TopicPartition, ...] | None:
        """What it may read now; None while the group rebalances."""

    def position(self, partition: TopicPartition) -> int | None: ...

    def poll(self, records_max: int | None = None) -> list[Consumed]: ...

    def commit(self, offsets: Mapping[TopicPartition, int] | None, metadata: str) -> CommitHandle:
        """These offsets, or where it stands in all that it owns; don't wait."""

    def leave(self) -> None:
        """It says goodbye; don't wait."""

    def kill(self) -> None:
        """SIGKILL: its sockets are closed, nothing is said."""

    def pause(self) -> None:
        """SIGSTOP: no heartbeat leaves, what it is told to do waits."""

    def resume(self) -> None: ...


class Engine(Protocol):
    """One world in which one cluster lives through one story."""

    name: str

    # A cluster and its clients

    def begin(self, layout: Layout) -> None:
        """Start every node; return when all brokers are registered and unfenced."""

    def ask(
        self,
        node: int,
        request: Message,
        version: int,
        *,
        client: str,
        timeout_ms: int,
        as_member: bool = False,
    ) -> Pending:
        """Send a request on a connection of its own, and don't wait.

        As a member it proves first, with the secret of the cluster, to be one of the nodes.
        """

    def tell(self, node: int, request: Message, version: int, *, client: str) -> None:
        """Send a request that is never answered: Produce with acks=0."""

    def producer(self, name: str, config: Mapping[str, str]) -> ProducerHandle: ...

    def consumer(self, name: str, config: Mapping[str, str]) -> ConsumerHandle: ...

    def member(
        self, name: str, config: Mapping[str, str], topics: Sequence[str]
    ) -> MemberHandle: ...

    # Time, in the story's milliseconds

    @property
    def now_us(self) -> int: ...

    @property
    def pace(self) -> float:
        """How many of the story's milliseconds go by in one of the cluster's."""

    def stretched(self, at_least_ms: float, at_most_ms: float) -> tuple[float, float]:
        """The limits within which a duration counts as this long: these, where time is virtual."""

    def patience_ms(self, within_ms: float) -> float:
        """How long to wait for what should come within this time: so long, where it is virtual."""

    def wall_ms(self) -> int:
        """The wall clock of the clients, which nobody moves."""

    def pass_ms(self, duration_ms: int) -> None:
        """Let time go by, whatever happens in it."""

    def wait(self, condition: Callable[[], bool], *, within_ms: int) -> bool:
        """Until a condition holds that asks nobody (an answer is there); whether it came true."""

    # Processes

    def kill(self, node: int) -> None:
        """SIGKILL: the kernel closes its sockets, its page cache survives."""

    def stop(self, node: int) -> None:
        """SIGTERM, and wait for the end."""

    def start(self, node: int) -> None:
        """Start it again over what its disk holds; don't wait."""

    def pause(self, node: int) -> None:
        """SIGSTOP."""

    def resume(self, node: int) -> None:
        """SIGCONT."""

    def is_running(self, node: int) -> bool: ...

    def lose_power(self, nodes: Sequence[int], *, keeps: str) -> None:
        """The plug is pulled. Of unsynced data nothing is kept, everything, or what chance says."""

    def wipe(self, node: int) -> None:
        """A new, empty disk in a node that does not run."""

    def fill_disk(self, node: int, *, bytes_left: int) -> None: ...

    def free_disk(self, node: int) -> None: ...

    def delete_file(self, node: int, topic: str, index: int, *, suffix: str) -> None:
        """A partition's files of this kind are removed while the node does not run."""

    def flip_bit(self, node: int, topic: str, index: int, *, offset: int) -> None:
        """The medium decays inside the batch that holds this offset."""

    def tear(self, node: int, topic: str, index: int, *, bytes_off: int) -> None:
        """The last batch of a node that does not run loses its end."""

    def move_clock(self, node: int, *, by_ms: int) -> None:
        """The wall clock jumps; the monotonic clock knows nothing of it."""

    # The network

    def cut(self, *ways: tuple[Host, Host]) -> None:
        """On each way nothing that the one sends reaches the other: silence, never a refusal."""

    def heal(self, *ways: tuple[Host, Host]) -> None: ...

    def delay(self, source: Host, target: Host, *, delay_ms: int) -> None: ...

    def refuse_connections(self, node: int) -> None:
        """Whoever wants a new connection to this node is refused, though its process lives."""

    def accept_connections(self, node: int) -> None: ...

    def reset_connections(self, node: int) -> None:
        """Something on the way resets every connection of this node, for both of its sides."""

    def hold(self, purpose: str, *ways: tuple[int, int]) -> None:
        """Withhold what the one sends to the other on their links of one purpose: "replica"
        (follower and leader), "quorum" (voters), "controller" (broker and active controller)."""

    def release(self, purpose: str, *ways: tuple[int, int]) -> None: ...

    # Evidence

    def log_files(self, node: int, topic: str, index: int) -> dict[str, bytes]:
        """The files in a partition's directory, by name; of a dead node, too."""

    def requests(
        self, node: int, api_key: int, *, since_us: int, peer: Host | None
    ) -> list[RequestSeen]:
        """What the node was asked of this kind since then, by anybody or by one; oldest first."""

    def happenings(self, node: int, kind: str) -> list[Happening]:
        """What the node wrote to its own trace, of one kind, oldest first."""

    def high_watermarks(self) -> Sequence[HighWatermarkSet]:
        """What every leader had committed at which time; nothing where nobody can see it."""


WORDS: dict[str, tuple[str, ...]] = {
    "begin": EVERYWHERE,
    "ask": EVERYWHERE,
    "tell": EVERYWHERE,
    "producer": EVERYWHERE,
    "consumer": EVERYWHERE,
    "member": EVERYWHERE,
    "now_us": EVERYWHERE,
    "pace": EVERYWHERE,
    "stretched": EVERYWHERE,
    "patience_ms": EVERYWHERE,
    "wall_ms": EVERYWHERE,
    "pass_ms": EVERYWHERE,
    "wait": EVERYWHERE,
    "is_running": EVERYWHERE,
    **ENGINES_OF_VERB,
    "log_files": EVERYWHERE,
    "requests": OURS,
    "happenings": OURS,
    "high_watermarks": EVERYWHERE,
}
"""Which engines understand which word; those of faults come from the table of faults."""
