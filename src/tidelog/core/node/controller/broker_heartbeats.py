"""Heartbeats at the active controller: each touches a session and may change a standing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidelog.core.controller.broker_fencing import (
    decide_directories_lost,
    decide_fencing,
    decide_leaving,
    decide_unfencing,
)
from tidelog.core.controller.heartbeat import Beat, Standing, next_standing
from tidelog.core.controller.liveness import Session

if TYPE_CHECKING:
    from tidelog.core.node.controller.active_controller import ActiveController


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """What a broker says; its broker epoch has been checked."""

    broker_id: int
    broker_epoch: int
    metadata_end_offset: int
    wants_fence: bool
    wants_stop: bool
    lost_directories: tuple[bytes, ...]
    connection: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatOutcome:
    """The answer to a heartbeat."""

    standing: Standing
    is_caught_up: bool


class BrokerHeartbeats:
    """The rules are in controller/heartbeat.py; here they meet sessions and the image."""

    def __init__(self, controller: ActiveController) -> None:
        self._controller = controller

    def take(self, beat: Heartbeat, now_ms: int) -> HeartbeatOutcome:
        controller = self._controller
        session = controller.sessions.touch(
            beat.broker_id, beat.broker_epoch, connection=beat.connection, now_ms=now_ms
        )
        session.metadata_end_offset = beat.metadata_end_offset
        before = self._standing(session)
        is_caught_up = beat.metadata_end_offset > beat.broker_epoch
        after = next_standing(
            Beat(
                standing=before,
                wants_fence=beat.wants_fence,
                wants_stop=beat.wants_stop,
                is_caught_up=is_caught_up,
                leads_any=controller.image.index.leads_any(beat.broker_id),
                is_known_to_leave=self._is_known_to_leave(session),
            )
        )
        if after is not before:
            self._become(after, beat.broker_id, now_ms)
        if after is Standing.LEAVING and session.leaves_at_offset is None:
            session.leaves_at_offset = controller.next_offset
        elif after.is_fenced:
            session.leaves_at_offset = None
        if beat.lost_directories:
            self._lose_directories(beat, now_ms)
        return HeartbeatOutcome(standing=after, is_caught_up=is_caught_up)

    def _standing(self, session: Session) -> Standing:
        if session.leaves_at_offset is not None:
            return Standing.LEAVING
        is_fenced = self._controller.image.brokers[session.broker_id].is_fenced
        return Standing.FENCED if is_fenced else Standing.UNFENCED

    def _is_known_to_leave(self, session: Session) -> bool:
        """To the others, and to itself: who does not know that it is no leader says no such thing
        to its clients. Kafka does not ask for the latter."""
        if session.leaves_at_offset is None:
            return False
        if session.metadata_end_offset < session.leaves_at_offset:
            return False
        controller = self._controller
        controller.on_metadata_read(*controller.own_reading)
        read_by_all = controller.sessions.read_by_all(controller.image.brokers.values())
        return read_by_all is None or read_by_all >= session.leaves_at_offset

    def _become(self, standing: Standing, broker_id: int, now_ms: int) -> None:
        controller = self._controller
        image, settings = controller.image, controller.settings
        if standing is Standing.UNFENCED:
            changes = decide_unfencing(image, settings, broker_id=broker_id)
        elif standing is Standing.LEAVING:
            changes = decide_leaving(image, settings, broker_id=broker_id)
        else:
            reason = "it stops" if standing is Standing.GONE else "it asked for it"
            changes = decide_fencing(image, settings, broker_ids=(broker_id,), reason=reason)
        controller.write(changes, now_ms)

    def _lose_directories(self, beat: Heartbeat, now_ms: int) -> None:
        controller = self._controller
        changes = decide_directories_lost(
            controller.image,
            controller.settings,
            broker_id=beat.broker_id,
            lost=beat.lost_directories,
        )
        controller.write(changes, now_ms)
