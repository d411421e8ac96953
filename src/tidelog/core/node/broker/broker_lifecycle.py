"""A broker's membership: it registers, catches up, is let in, says that it lives, and takes leave.

The order is what keeps a restarted broker from acting on what it was before:

  1. It registers: a new incarnation gets a new broker epoch, and the controller takes away, or
     renews with a new leader epoch, whatever the former one led.
  2. It replays the metadata up to its own registration. Only then does it open partitions: before
     that the metadata shows the former incarnation, whose leaderships are not ours.
  3. It says so in a heartbeat, and the controller lets it in.

When it is asked to stop it says that it wants to leave, and stays until its leaderships have moved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidelog.core.controller.topic_ids import new_uuid
from tidelog.core.metadata.features import SUPPORTED
from tidelog.core.model.alarms import Alarm
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.controller.controller_channel import RETRY_MS
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.messages.api_62_broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)
from tidelog.core.wire.messages.api_63_broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from tidelog.core.wire.schema import Message

if TYPE_CHECKING:
    from tidelog.core.node.node import Node

REGISTRATION_VERSION = 4
HEARTBEAT_VERSION = 1
PLAINTEXT_PROTOCOL = 0
UNKNOWN = -1
NEW_CONTROLLER_MS = 10
"""It was elected a moment ago and decides as soon as a majority has its first record."""
WITHOUT_CONTROLLER_MS = 1_000
"""So long a broker that leaves looks for a controller: when all stop at once there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredHere:
    """The controller knows this incarnation; it is not let in yet."""

    broker_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CaughtUp:
    """The metadata shows our own registration: partitions are opened."""

    broker_epoch: int
    end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The controller said no; it is asked again."""

    what: str
    error: str


class BrokerLifecycle:
    """Invariant: `is_caught_up` implies that a broker epoch is known."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.incarnation_id = b""
        self.broker_epoch: int | None = None
        self.is_caught_up = False
        self.is_let_in = False
        self.is_leaving = False
        self.may_stop = False
        self._is_asking = False
        self._next: Alarm | None = None
        self._retry: Act | None = None
        """What waits for a controller to be there."""
        self._left_alone_ms: int | None = None
        settings = node.settings
        self._interval_ms = settings.integer("broker.heartbeat.interval.ms")
        self._session_ms = settings.integer("broker.session.timeout.ms")

    def start(self, now_ms: int) -> None:
        if self._node.settings.is_broker:
            self.incarnation_id = new_uuid(self._node.random)
            self._register(now_ms)

    def leave(self, now_ms: int) -> None:
        """Take leave; `may_stop` tells when. Alone there is nobody to hand anything over to."""
        self.is_leaving = True
        self._left_alone_ms = now_ms + WITHOUT_CONTROLLER_MS
        image, node_id = self._node.image, self._node.settings.node_id
        others = [b for b in image.alive_brokers() if b.broker_id != node_id]
        if self.broker_epoch is None or not self.is_caught_up or not others:
            self.may_stop = True
        else:
            self._beat(now_ms)

    def on_directory_lost(self) -> None:
        """Others must lead what lay there: do not wait for the next heartbeat."""
        if self.is_caught_up:
            self._at(self._node.now_ms, self._beat)

    def on_leader_found(self, now_ms: int) -> None:
        """There is a controller: whoever waits for one need not wait for its next try."""
        retry, self._retry = self._retry, None
        if retry is not None:
            self._at(now_ms, retry)

    def end_of_tick(self, now_ms: int) -> None:
        """Whether the metadata has come as far as our own registration."""
        if self.is_caught_up or self.broker_epoch is None:
            return
        known = self._node.image.brokers.get(self._node.settings.node_id)
        if known is None or known.incarnation_id != self.incarnation_id:
            return
        self.is_caught_up = True
        self._node.trace.emit(
            CaughtUp(
                broker_epoch=self.broker_epoch, end_offset=self._node.metadata.applied_end_offset
            )
        )
        self._node.publish_partitions()
        self._beat(now_ms)

    # Registration

    def _register(self, now_ms: int) -> None:
        node = self._node
        request = BrokerRegistrationRequest(
            broker_id=node.settings.node_id,
            cluster_id=node.metadata.cluster_id,
            incarnation_id=self.incarnation_id,
            listeners=[
                Listener(
                    name=each.name,
                    host=each.host,
                    port=each.port,
                    security_protocol=PLAINTEXT_PROTOCOL,
                )
                for each in node.settings.advertised
            ],
            features=[
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in sorted(SUPPORTED.items())
            ],
            rack=node.settings.rack,
            log_dirs=sorted(node.metadata.identity.directory_ids),
            previous_broker_epoch=self._previous_broker_epoch(),
        )
        node.controller_channel.ask(
            request,
            REGISTRATION_VERSION,
            self._on_registered,
            now_ms=now_ms,
            timeout_ms=self._session_ms,
        )

    def _previous_broker_epoch(self) -> int:
        """Proof that we stopped cleanly: without it our logs may lack what they once had."""
        epochs = {
            directory.clean_broker_epoch for directory in self._node.replica_manager.directories
        }
        known = epochs.pop() if len(epochs) == 1 else None
        return UNKNOWN if known is None else known

    def _on_registered(self, answer: Message | NoAnswer, now_ms: int) -> None:
        if not isinstance(answer, BrokerRegistrationResponse):
            self._try_again(self._register, now_ms)
        elif answer.error_code != ErrorCode.NONE:
            self._refused("registration", answer.error_code, self._register, now_ms)
        else:
            self.broker_epoch = answer.broker_epoch
            self._node.trace.emit(RegisteredHere(broker_epoch=answer.broker_epoch))
            self._at(now_ms + self._interval_ms, self._beat)

    # Heartbeats

    def _beat(self, now_ms: int) -> None:
        """Say that we live, and what we wish; one question at a time."""
        if self._is_asking or self.broker_epoch is None or self.may_stop:
            return
        node = self._node
        self._is_asking = True
        self._cancel()
        request = BrokerHeartbeatRequest(
            broker_id=node.settings.node_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=node.metadata.applied_end_offset - 1,
            want_fence=not self.is_caught_up,
            want_shut_down=self.is_leaving,
            offline_log_dirs=node.replica_manager.offline_directory_ids(),
        )
        told = self._news()

        def then(answer: Message | NoAnswer, now_ms: int) -> None:
            self._is_asking = False
            self._on_heartbeat(answer, told, now_ms)

        node.controller_channel.ask(
            request, HEARTBEAT_VERSION, then, now_ms=now_ms, timeout_ms=self._session_ms
        )

    def _on_heartbeat(
        self, answer: Message | NoAnswer, told: tuple[bool, bool, int], now_ms: int
    ) -> None:
        if not isinstance(answer, BrokerHeartbeatResponse):
            self._try_again(self._beat, now_ms)
            return
        if self.is_leaving:
            self._left_alone_ms = now_ms + WITHOUT_CONTROLLER_MS
        if answer.error_code != ErrorCode.NONE:
            # Without a registration (somebody took us for gone) only a new one helps.
            is_forgotten = answer.error_code == ErrorCode.STALE_BROKER_EPOCH
            again = self._register if is_forgotten and not self.is_leaving else self._beat
            self._refused("heartbeat", answer.error_code, again, now_ms)
            return
        self.is_let_in = not answer.is_fenced
        if answer.should_shut_down and self.is_leaving:
            self.may_stop = True
        elif told != self._news():
            self._beat(now_ms)  # what we wish has changed while we asked
        elif self.is_leaving or (self.is_caught_up and not self.is_let_in):
            self._at(now_ms + RETRY_MS, self._beat)
        else:
            self._at(now_ms + self._interval_ms, self._beat)

    def _news(self) -> tuple[bool, bool, int]:
        """What a heartbeat says besides that we live."""
        lost_count = len(self._node.replica_manager.offline_directory_ids())
        return self.is_caught_up, self.is_leaving, lost_count

    def _try_again(self, act: Act, now_ms: int) -> None:
        """Nobody answered. Who leaves waits only so long for somebody to hand over to."""
        if self._left_alone_ms is not None and now_ms >= self._left_alone_ms:
            self.may_stop = True
            return
        self._at(now_ms + RETRY_MS, act)
        self._retry = act

    def _refused(self, what: str, code: int, again: Act, now_ms: int) -> None:
        error = ErrorCode(code)
        if error == ErrorCode.NOT_CONTROLLER:
            self._at(now_ms + NEW_CONTROLLER_MS, again)
        else:
            self._node.trace.emit(Refused(what=what, error=error.name))
            self._at(now_ms + 2 * RETRY_MS, again)

    def _at(self, deadline_ms: int, act: Act) -> None:
        self._cancel()
        self._retry = None
        self._next = self._node.alarms.at(deadline_ms, act)

    def _cancel(self) -> None:
        if self._next is not None:
            self._next.cancel()


if TYPE_CHECKING:
    from collections.abc import Callable

    Act = Callable[[int], None]
