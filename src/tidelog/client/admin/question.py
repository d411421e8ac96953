"""A question to a cluster: the request, which node to ask, and how to read the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Generic, NamedTuple, TypeVar

from tidelog.client.config import Address
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.schema import Message

T = TypeVar("T")


class AnyNode(NamedTuple):
    """Any node that can be reached; brokers forward what only the controller may decide."""


class LeaderOf(NamedTuple):
    """The leader of a partition, and its successor if that has changed."""

    partition: TopicPartition


class TheBroker(NamedTuple):
    """This broker and no other, where the metadata says it is."""

    broker_id: int


class TheNode(NamedTuple):
    """The node at this address: for nodes that metadata does not name, such as fenced brokers."""

    address: Address
    connection_name: str = ""
    """Each name has a connection of its own: answers come in order, so a slow one delays others."""


class GroupCoordinatorOf(NamedTuple):
    """The coordinator of a group, wherever it has moved to."""

    group_id: str


class TransactionCoordinatorOf(NamedTuple):
    """The coordinator of a transactional id, wherever it has moved to."""

    transactional_id: str


RequestTarget = (
    AnyNode | LeaderOf | TheBroker | TheNode | GroupCoordinatorOf | TransactionCoordinatorOf
)


class RetryLater(NamedTuple):
    """There is no answer yet: ask again after a pause."""

    error: ErrorCode


class AdminOutcome(NamedTuple):
    """Whether something was done; if not, why."""

    error: ErrorCode
    message: str | None = None

    @property
    def is_ok(self) -> bool:
        return self.error == ErrorCode.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Generic[T]):
    """A request and its reader. Refusals are part of the answer; only what another try can cure is
    asked again."""

    request: Message
    read: Callable[[Message], T | RetryLater]
    target: RequestTarget = field(default_factory=AnyNode)
    version_max: int | None = None
    version_min: int | None = None

    def to(self, target: RequestTarget) -> Question[T]:
        """The same question to another node."""
        return replace(self, target=target)

    def at_once(self) -> Question[T | None]:
        """The same question without another try: None where it would be asked again."""

        def read(answer: Message) -> T | None:
            result = self.read(answer)
            return None if isinstance(result, RetryLater) else result

        return Question(
            request=self.request,
            read=read,
            target=self.target,
            version_max=self.version_max,
            version_min=self.version_min,
        )


_RETRIED = frozenset({ErrorCode.NOT_CONTROLLER})
_LEADER_MOVED = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE})


def needs_another_try(error: ErrorCode, *, of_leader: bool = False) -> bool:
    return error in _RETRIED or (of_leader and error in _LEADER_MOVED)


def outcome(code: int, message: str | None) -> AdminOutcome | RetryLater:
    error = ErrorCode.from_wire(code)
    return RetryLater(error) if needs_another_try(error) else AdminOutcome(error, message)
