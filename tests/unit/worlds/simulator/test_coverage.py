"""The catalogue of events is read from the source, so a forgotten event shows."""

from __future__ import annotations

import ast

from tidelog.worlds.simulator.coverage import catalogue, defined, emitted


def test_events_are_found_where_they_are_emitted() -> None:
    source = """
self.trace.emit(Rolled(a=1))
node._trace.emit(events.Cut(1))
world.emit("source", Killed())
trace.emit(change)
self._emit(Synced())
print(NotMe())
"""
    assert emitted(ast.parse(source)) == {"Rolled", "Cut", "Killed", "Synced"}


def test_a_module_of_events_counts_with_all_its_classes() -> None:
    source = "class Rolled: ...\nclass _Inside: ...\nclass Kind(Enum): ...\nROLLED = 1\n"
    assert defined(ast.parse(source)) == {"Rolled"}


def test_the_catalogue_has_what_each_room_tells() -> None:
    expected = {"LogTruncated", "BecameLeader", "PartitionChanged", "VoteGranted", "BatchRetried"}
    assert expected <= catalogue("replication")


def test_a_profile_is_not_asked_for_what_only_another_can_do() -> None:
    of_several = {"BecameLeader", "LogTruncated", "Wiped"}
    assert of_several <= catalogue("replication") - catalogue("storage")
    assert {"TailCut", "Halted", "Struck"} <= catalogue("replication") & catalogue("storage")
    assert "CoordinatorLoaded" in catalogue("groups") - catalogue("replication")
    assert "BatchRetried" in catalogue("replication") - catalogue("groups")
