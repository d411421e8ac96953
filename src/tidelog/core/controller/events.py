"""What the controller tells the trace: who was fenced and why, who was elected and how."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ElectionKind(StrEnum):
    """Where a new leader came from; the last two may lose committed records."""

    CLEAN = "clean"
    PREFERRED = "preferred"
    ELIGIBLE = "eligible"
    LAST_KNOWN = "last-known"
    UNCLEAN = "unclean"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElected:
    """A partition has a new leader."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    kind: ElectionKind


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderLost:
    """A partition has no leader any more: nobody may be elected."""

    topic: str
    partition: int
    leader_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerAdmitted:
    """A broker process was registered. Unclean: it gave no proof that its predecessor stopped."""

    broker_id: int
    broker_epoch: int
    is_clean: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRefused:
    """A broker process was not registered."""

    broker_id: int
    error: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFenced:
    """A broker leads nothing any more and leaves every in-sync set."""

    broker_id: int
    broker_epoch: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerUnfenced:
    """A broker has caught up with the metadata and may lead."""

    broker_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLeaves:
    """A broker asked to stop; its leaderships were moved first."""

    broker_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrChangeAccepted:
    """A leader's proposal of another in-sync set was accepted."""

    topic: str
    partition: int
    isr: tuple[int, ...]
    partition_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrChangeRefused:
    """A leader's proposal of another in-sync set was refused."""

    topic: str | None
    partition: int
    error: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignmentStarted:
    """A partition moves; the adding ones must come into sync before the removing ones go."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignmentEnded:
    """A partition moves no longer, because it has arrived or because that was cancelled."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerActivated:
    """This node decides from now on."""

    controller_epoch: int
    brokers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerResigned:
    """This node decides no longer."""

    controller_epoch: int
