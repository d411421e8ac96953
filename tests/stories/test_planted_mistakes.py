"""Stories about disks, connections and failovers notice a mistake that is planted for them.

Each mistake removes one rule of the brokers from outside; the story that lives by this rule must
then say what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tidelog.lab.stories  # noqa: F401 - opens the book
from tidelog.core.node.broker.session_watch import SessionWatch
from tidelog.core.node.connections import liveness_probes
from tidelog.core.node.connections.request import Request
from tidelog.core.node.controller.active_controller import ActiveController
from tidelog.core.node.replicas.directory_reports import DirectoryReports
from tidelog.core.replication.partition import Partition
from tidelog.core.replication.replica_fetcher import ReplicaFetcher
from tidelog.core.storage import log_append
from tidelog.core.storage.producers import ProducerStates
from tidelog.lab.engines.simulator import SimulatorEngine
from tidelog.lab.story import BOOK, play

Plant = Callable[[pytest.MonkeyPatch], None]


def followers_trust_checksums(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(log_append, "crc_is_valid", lambda *_: True)


def followers_count_before_they_synced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReplicaFetcher, "_request_next", lambda fetcher: fetcher.link.include(fetcher))


def one_refusal_is_a_proof(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(liveness_probes, "REFUSALS", 1)


def nobody_knocks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ActiveController, "_probe", lambda *_: None)


def directories_are_not_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DirectoryReports, "consider", lambda *_, **__: None)


def producers_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerStates, "decide", lambda *_: None)


def leaders_do_not_return(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ActiveController, "_balance", lambda *_: None)


def records_are_believed(patch: pytest.MonkeyPatch) -> None:
    """A leader asks for the checksum, and for nothing that only the records can tell."""
    patch.setattr(log_append, "checked_records", lambda _view, header, _config, _wall_ms: header)


def nobody_is_too_slow(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Partition, "propose_shrinking", lambda *_: None)


def rack_a_is_trusted(patch: pytest.MonkeyPatch) -> None:
    """Sessions never end: whoever is silent keeps its leaderships."""

    def prolong(controller: Any, now_ms: int) -> None:
        controller.sessions.prolong(now_ms)
        controller._arm_sessions()

    patch.setattr(ActiveController, "_end_sessions", prolong)


def nobody_has_to_prove_anything(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Request, "is_from_member", True)


def paused_leaders_go_on(patch: pytest.MonkeyPatch) -> None:
    on_paused = SessionWatch.on_paused

    def go_on(watch: SessionWatch, now_ms: int) -> None:
        on_paused(watch, now_ms)
        watch.is_confirmed = True

    patch.setattr(SessionWatch, "on_paused", go_on)


def a_heartbeat_is_enough(patch: pytest.MonkeyPatch) -> None:
    """The controller may fence a broker and let it in again before it answers."""

    def confirm(watch: SessionWatch, *, sent_ms: int, now_ms: int) -> None:
        if not watch.is_confirmed and sent_ms >= watch._resumed_ms:
            watch._confirm(now_ms)

    patch.setattr(SessionWatch, "on_heartbeat_answered", confirm)


def controllers_answer_for_themselves(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ActiveController, "on_paused", lambda *_: None)


@pytest.mark.parametrize(
    ("plant", "name", "scenario", "evidence"),
    [
        (
            followers_trust_checksums,
            "a_flipped_bit_is_not_copied",
            "X-33",
            "the log of 3 ends at 4",
        ),
        (
            followers_count_before_they_synced,
            "power_fails_everywhere_with_group_commit",
            "X-34",
            "every replica has what was acknowledged",
        ),
        (one_refusal_is_a_proof, "a_listener_is_opened_anew", "X-41", "one refusal is no proof"),
        (
            nobody_knocks,
            "the_phases_when_a_dead_process_is_noticed",
            "D3-T20",
            "crash to fenced",
        ),
        (directories_are_not_told, "one_directory_of_two_is_given_up", "X-31", "node 2 leads"),
        (producers_are_forgotten, "ten_failovers_under_load", "D1-V4", "records is"),
        (leaders_do_not_return, "a_rolling_restart_under_load", "X-46", "they returned"),
        (records_are_believed, "a_batch_lies_about_its_records", "X-48", "one counted"),
        (nobody_is_too_slow, "answers_come_16_seconds_late", "X-39", "seconds is"),
        (paused_leaders_go_on, "a_paused_leader_asks_first", "X-47", "the answers is"),
        (a_heartbeat_is_enough, "a_paused_leader_waits_for_the_metadata", "X-47", "the answers is"),
        (
            controllers_answer_for_themselves,
            "a_paused_controller_does_not_answer_for_itself",
            "X-47",
            "the answers is",
        ),
        (nobody_has_to_prove_anything, "a_stranger_speaks_as_a_node", "X-49", "Vote is"),
        (rack_a_is_trusted, "rack_a_is_cut_off", "D5-R12", "rack b leads"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_the_story_notices(
    plant: Plant, name: str, scenario: str, evidence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)

    reason = play(BOOK[name], SimulatorEngine(seed=1)).why_not(scenario)

    assert reason is not None, f"{name} did not notice it"
    assert evidence in reason
