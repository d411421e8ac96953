"""Faults of a story: the ways of one word are one fault, and single ways can be healed again."""

from __future__ import annotations

from collections.abc import Sequence

from tidelog.cluster.fault_injector import Fault
from tidelog.cluster.fault_registry import ActiveFault
from tidelog.cluster.rules import RuleFields
from tidelog.lab.engines.story_faults import StoryFaults


class RecordingInjector:
    """Writes down the whole table of rules after each change, as gates would be given it."""

    def __init__(self) -> None:
        self.active: dict[str, list[RuleFields]] = {}
        self.tables: list[set[tuple[object, object, object]]] = []

    def inject(self, what: str, text: str, rules: Sequence[RuleFields]) -> Fault:
        fault_id = f"f{len(self.tables)}"
        self.active[fault_id] = list(rules)
        self._changed()
        return Fault(ActiveFault(id=fault_id, what=what, text=text), self.undo)

    def undo(self, fault_id: str) -> None:
        del self.active[fault_id]
        self._changed()

    def _changed(self) -> None:
        rules = [rule for group in self.active.values() for rule in group]
        self.tables.append({(rule["what"], rule["from"], rule["to"]) for rule in rules})


def faults() -> tuple[RecordingInjector, StoryFaults]:
    injector = RecordingInjector()
    return injector, StoryFaults(injector)


def test_many_ways_are_told_at_once_and_once() -> None:
    injector, story = faults()
    ways: list[tuple[str, int | str, int | str]]
    ways = [("cut", 1, 2), ("cut", 2, 1), ("cut", "reader", 1)]
    story.begin("cut", ways)
    assert injector.tables == [{("cut", 1, 2), ("cut", 2, 1), ("cut", "client:reader", 1)}]
    story.begin("cut", ways)
    assert len(injector.tables) == 1
    story.end(ways)
    assert injector.tables[1:] == [set()]
    story.end(ways)
    assert len(injector.tables) == 2


def test_what_is_not_healed_is_disturbed_all_the_time() -> None:
    injector, story = faults()
    story.begin("cut", [("cut", 1, 2), ("cut", 2, 1)])
    story.begin("hold", [("replica", 1, 2)], purpose="replica")
    story.end([("cut", 2, 1)])
    left = {("cut", 1, 2), ("hold", 1, 2)}
    assert all(left <= table for table in injector.tables[1:])
    assert injector.tables[-1] == left
    story.end([("replica", 1, 2), ("cut", 1, 2)])
    assert injector.tables[-1] == set()
