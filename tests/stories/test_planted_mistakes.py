"""Stories about disks, connections and failovers notice a mistake that is planted for them.

Each mistake removes one rule of the brokers from outside; the story that lives by this rule must
then say what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tidelog.lab.stories  # noqa: F401 - opens the book
from tidelog.core.node.connections import liveness_probes
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


def nobody_is_too_slow(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Partition, "propose_shrinking", lambda *_: None)


def rack_a_is_trusted(patch: pytest.MonkeyPatch) -> None:
    """Sessions never end: whoever is silent keeps its leaderships."""

    def prolong(controller: Any, now_ms: int) -> None:
        controller.sessions.prolong(now_ms)
        controller._arm_sessions()

    patch.setattr(ActiveController, "_end_sessions", prolong)


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
        (nobody_is_too_slow, "answers_come_16_seconds_late", "X-39", "seconds is"),
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
