"""A broker's lifecycle: it registers, catches up, is unfenced, sends heartbeats, and shuts down.

The order is what keeps a restarted broker from acting on what it was before:

  1. It registers: a new incarnation gets a new broker epoch, and the controller takes away, or
     renews with a new leader epoch, whatever the former one led.
  2. It replays the metadata up to its own registration. Only then does it open partitions: before
     that the metadata shows the former incarnation, whose leaderships are not ours.
  3. It says so in a heartbeat, and the controller unfences it.

When it is asked to stop it says so in its heartbeats, and serves until its leaderships have moved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from tidelog.core.controller.topic_ids import new_uuid
from tidelog.core.metadata.features import SUPPORTED
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.model.alarms import Alarm, Alarms
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.trace import Trace
from tidelog.core.node.broker.session_watch import SessionWatch
from tidelog.core.node.controller.controller_channel import RETRY_MS, ControllerChannel
from tidelog.core.node.metadata.metadata_log import MetadataLog
from tidelog.core.node.ports import EventClock
from tidelog.core.node.settings import NodeSettings
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
from tidelog.core.wire.sentinels import UNKNOWN_BROKER_EPOCH

Act = Callable[[int], None]

REGISTRATION_VERSION = 4
HEARTBEAT_VERSION = 1
PLAINTEXT_PROTOCOL = 0
NEW_CONTROLLER_MS = 10
"""It was elected a moment ago and decides as soon as a majority has its first record."""
WITHOUT_CONTROLLER_MS = 1_000
"""How long a broker that leaves looks for a controller: when all stop at once there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredHere:
    """The controller knows this incarnation; it is still fenced."""

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


class LogDirectories(Protocol):
    """What the controller must know of this broker's log directories."""

    def clean_broker_epoch(self) -> int | None:
        """Of the process that stopped cleanly before this one, if all directories agree."""

    def offline_directory_ids(self) -> Sequence[bytes]: ...


class BrokerLifecycle:
    """Invariant: `is_caught_up` implies that a broker epoch is known."""

    def __init__(
        self,
        *,
        settings: NodeSettings,
        image: ClusterImage,
        metadata: MetadataLog,
        directories: LogDirectories,
        channel: ControllerChannel,
        session_watch: SessionWatch,
        on_caught_up: Callable[[int], None],
        alarms: Alarms,
        clock: EventClock,
        trace: Trace,
        random: Random,
    ) -> None:
        self._settings = settings
        self._image = image
        self._metadata = metadata
        self._directories = directories
        self._channel = channel
        self._session_watch = session_watch
        self._on_caught_up = on_caught_up
        self._alarms = alarms
        self._clock = clock
        self._trace = trace
        self._random = random
        self.incarnation_id = b""
        self.broker_epoch: int | None = None
        self.is_caught_up = False
        self.is_unfenced = False
        self.is_leaving = False
        self.may_stop = False
        self._is_asking = False
        self._next: Alarm | None = None
        self._retry: Act | None = None
        """What waits for a controller to be there."""
        self._give_up_ms: int | None = None
        self._interval_ms = settings.integer("broker.heartbeat.interval.ms")
        self._session_ms = settings.integer("broker.session.timeout.ms")

    def start(self, now_ms: int) -> None:
        if self._settings.is_broker:
            self.incarnation_id = new_uuid(self._random)
            self._register(now_ms)

    def leave(self, now_ms: int) -> None:
        """Ask for a shutdown; `may_stop` says when. A broker alone has nobody to hand over to."""
        self.is_leaving = True
        self._give_up_ms = now_ms + WITHOUT_CONTROLLER_MS
        image, node_id = self._image, self._settings.node_id
        others = [b for b in image.alive_brokers() if b.broker_id != node_id]
        if self.broker_epoch is None or not self.is_caught_up or not others:
            self.may_stop = True
        else:
            self._beat(now_ms)

    def on_directory_lost(self) -> None:
        """Others must lead what lay there: do not wait for the next heartbeat."""
        if self.is_caught_up:
            self._at(self._clock.now_ms, self._beat)

    def on_paused(self, now_ms: int) -> None:
        """Our session may have ended: ask. If a heartbeat is under way, another follows it."""
        self._beat(now_ms)

    def on_leader_found(self, now_ms: int) -> None:
        """There is a controller: whoever waits for one need not wait for its next try."""
        retry, self._retry = self._retry, None
        if retry is not None:
            self._at(now_ms, retry)

    def end_of_tick(self, now_ms: int) -> None:
        """Whether the metadata has come as far as our own registration."""
        if self.is_caught_up or self.broker_epoch is None:
            return
        known = self._image.brokers.get(self._settings.node_id)
        if known is None or known.incarnation_id != self.incarnation_id:
            return
        self.is_caught_up = True
        self._trace.emit(
            CaughtUp(broker_epoch=self.broker_epoch, end_offset=self._metadata.applied_end_offset)
        )
        self._on_caught_up(now_ms)
        self._beat(now_ms)

    # Registration

    def _register(self, now_ms: int) -> None:
        settings, metadata = self._settings, self._metadata
        previous = self._directories.clean_broker_epoch()
        request = BrokerRegistrationRequest(
            broker_id=settings.node_id,
            cluster_id=metadata.cluster_id,
            incarnation_id=self.incarnation_id,
            listeners=[
                Listener(
                    name=each.name,
                    host=each.host,
                    port=each.port,
                    security_protocol=PLAINTEXT_PROTOCOL,
                )
                for each in settings.advertised
            ],
            features=[
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in sorted(SUPPORTED.items())
            ],
            rack=settings.rack,
            log_dirs=sorted(metadata.identity.directory_ids),
            previous_broker_epoch=UNKNOWN_BROKER_EPOCH if previous is None else previous,
        )
        self._channel.ask(
            request,
            REGISTRATION_VERSION,
            self._on_registered,
            now_ms=now_ms,
            timeout_ms=self._session_ms,
        )

    def _on_registered(self, answer: Message | NoAnswer, now_ms: int) -> None:
        if not isinstance(answer, BrokerRegistrationResponse):
            self._try_again(self._register, now_ms)
        elif answer.error_code != ErrorCode.NONE:
            self._refused("registration", answer.error_code, self._register, now_ms)
        else:
            self.broker_epoch = answer.broker_epoch
            self._trace.emit(RegisteredHere(broker_epoch=answer.broker_epoch))
            self._at(now_ms + self._interval_ms, self._beat)

    # Heartbeats

    def _beat(self, now_ms: int) -> None:
        """Say that we live, and what we ask for; one request at a time."""
        if self._is_asking or self.broker_epoch is None or self.may_stop:
            return
        self._is_asking = True
        self._cancel()
        request = BrokerHeartbeatRequest(
            broker_id=self._settings.node_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self._metadata.applied_end_offset - 1,
            want_fence=not self.is_caught_up,
            want_shut_down=self.is_leaving,
            offline_log_dirs=list(self._directories.offline_directory_ids()),
        )
        reported, sent_ms = self._reported(), now_ms

        def then(answer: Message | NoAnswer, now_ms: int) -> None:
            self._is_asking = False
            self._on_heartbeat(answer, reported, sent_ms, now_ms)

        self._channel.ask(
            request, HEARTBEAT_VERSION, then, now_ms=now_ms, timeout_ms=self._session_ms
        )

    def _on_heartbeat(
        self,
        answer: Message | NoAnswer,
        reported: tuple[bool, bool, int],
        sent_ms: int,
        now_ms: int,
    ) -> None:
        if not isinstance(answer, BrokerHeartbeatResponse):
            self._try_again(self._beat, now_ms)
            return
        if self.is_leaving:
            self._give_up_ms = now_ms + WITHOUT_CONTROLLER_MS
        if answer.error_code != ErrorCode.NONE:
            # Without a registration (somebody took us for gone) only a new one helps.
            is_forgotten = answer.error_code == ErrorCode.STALE_BROKER_EPOCH
            again = self._register if is_forgotten and not self.is_leaving else self._beat
            self._refused("heartbeat", answer.error_code, again, now_ms)
            return
        self.is_unfenced = not answer.is_fenced
        watch = self._session_watch
        if self.is_unfenced:
            watch.on_heartbeat_answered(sent_ms=sent_ms, now_ms=now_ms)
        if answer.should_shut_down and self.is_leaving:
            self.may_stop = True
        elif reported != self._reported():
            self._beat(now_ms)  # it has changed while we asked
        elif (
            self.is_leaving
            or (self.is_caught_up and not self.is_unfenced)
            or not watch.is_confirmed
        ):
            self._at(now_ms + RETRY_MS, self._beat)
        else:
            self._at(now_ms + self._interval_ms, self._beat)

    def _reported(self) -> tuple[bool, bool, int]:
        """What a heartbeat says besides that we live."""
        lost_count = len(self._directories.offline_directory_ids())
        return self.is_caught_up, self.is_leaving, lost_count

    def _try_again(self, act: Act, now_ms: int) -> None:
        """No answer. Who leaves waits only a limited time for a controller to hand over to."""
        if self._give_up_ms is not None and now_ms >= self._give_up_ms:
            self.may_stop = True
            return
        self._at(now_ms + RETRY_MS, act)
        self._retry = act

    def _refused(self, what: str, code: int, again: Act, now_ms: int) -> None:
        error = ErrorCode(code)
        if error == ErrorCode.NOT_CONTROLLER:
            self._at(now_ms + NEW_CONTROLLER_MS, again)
        else:
            self._trace.emit(Refused(what=what, error=error.name))
            self._at(now_ms + 2 * RETRY_MS, again)

    def _at(self, deadline_ms: int, act: Act) -> None:
        self._cancel()
        self._retry = None
        self._next = self._alarms.at(deadline_ms, act)

    def _cancel(self) -> None:
        if self._next is not None:
            self._next.cancel()

    def check(self) -> None:
        """A broker takes part only with an epoch of its own registration."""
        assert self.broker_epoch is not None or not (self.is_caught_up or self.is_unfenced)
        assert not self.is_unfenced or self.is_caught_up, "a broker that knows too little serves"
        assert not self.may_stop or self.is_leaving, "nobody asked it to stop"
        if self.is_caught_up:
            assert self._metadata.applied_end_offset > 0, "it has not seen its own registration"
