"""The fault registry: written by one process, read by another; what is over leaves it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidelog.cluster.directory import ClusterDirectory
from tidelog.cluster.errors import ClusterError
from tidelog.cluster.fault_registry import ActiveFault, FaultRegistry


def fault(fault_id: str, what: str = "cut", **fields: object) -> ActiveFault:
    return ActiveFault(id=fault_id, what=what, text=f"{what}!", **fields)  # type: ignore[arg-type]


def test_what_one_writes_another_reads(tmp_path: Path) -> None:
    with FaultRegistry(ClusterDirectory(tmp_path)).edit() as edit:
        first = fault(edit.new_id(), rules=({"id": "f1.1", "what": "cut"},))
        edit.faults.append(first)
    with FaultRegistry(ClusterDirectory(tmp_path)).edit() as edit:
        second = fault(edit.new_id(), "pause", nodes=(2, 3))
        edit.faults.append(second)
    again = FaultRegistry(ClusterDirectory(tmp_path))
    assert again.active() == [first, second]
    assert [each.id for each in again.active()] == ["f1", "f2"]


def test_ids_are_not_given_twice_even_when_the_registry_is_empty_again(tmp_path: Path) -> None:
    registry = FaultRegistry(ClusterDirectory(tmp_path))
    with registry.edit() as edit:
        edit.faults.append(fault(edit.new_id()))
    with registry.edit() as edit:
        edit.remove(lambda each: True)
    with registry.edit() as edit:
        assert edit.new_id() == "f2"


def test_a_fault_whose_time_is_over_is_no_longer_there(tmp_path: Path) -> None:
    registry = FaultRegistry(ClusterDirectory(tmp_path))
    with registry.edit() as edit:
        edit.faults += [fault("f1", until_ms=1), fault("f2", until_ms=2**60), fault("f3")]
    assert [each.id for each in registry.active()] == ["f2", "f3"]


def test_an_exception_leaves_the_registry_as_it_was(tmp_path: Path) -> None:
    registry = FaultRegistry(ClusterDirectory(tmp_path))

    def change_and_fail() -> None:
        with registry.edit() as edit:
            edit.faults.append(fault("f1"))
            raise ClusterError("no")

    with pytest.raises(ClusterError, match="no"):
        change_and_fail()
    assert registry.active() == []


def test_nodes_that_are_back_leave_their_faults_and_the_last_one_ends_it(tmp_path: Path) -> None:
    with FaultRegistry(ClusterDirectory(tmp_path)).edit() as edit:
        edit.faults += [fault("f1", "kill", nodes=(1, 2)), fault("f2", "pause", nodes=(1,))]
        edit.release_nodes((1,), "kill", "stop")
        assert [(each.id, each.nodes) for each in edit.faults] == [("f1", (2,)), ("f2", (1,))]
        edit.release_nodes((1, 2), "kill", "pause")
        assert edit.faults == []


def test_a_damaged_registry_is_named(tmp_path: Path) -> None:
    (tmp_path / "faults.json").write_text("{")
    with pytest.raises(ClusterError, match=r"faults\.json cannot be read"):
        FaultRegistry(ClusterDirectory(tmp_path)).active()
