"""Faults of a story: the ways of one word are one fault, and single ways can be healed again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from tidelog.cluster.cluster import Cluster
from tidelog.cluster.fault_book import OpenBook
from tidelog.cluster.rules import Rule
from tidelog.lab.engines.story_faults import StoryFaults


class PaperCluster:
    """A fault book and gates that write down what they are told."""

    def __init__(self) -> None:
        self.pages = OpenBook(0, [])
        self.told: list[set[tuple[object, object, object]]] = []
        self.book = self.gates = self

    @contextmanager
    def open(self) -> Iterator[OpenBook]:
        yield self.pages

    def replace(self, rules: list[Rule]) -> None:
        self.told.append({(rule["what"], rule["from"], rule["to"]) for rule in rules})

    def undo(self, fault_id: str) -> None:
        self.pages.remove(lambda note: note.id == fault_id)
        self.replace(self.pages.rules)


def faults() -> tuple[PaperCluster, StoryFaults]:
    cluster = PaperCluster()
    return cluster, StoryFaults(cast("Cluster", cluster))


def test_many_ways_are_told_at_once_and_once() -> None:
    cluster, story = faults()
    ways = [("cut", 1, 2), ("cut", 2, 1), ("cut", "reader", 1)]
    story.begin("cut", ways)
    assert cluster.told == [{("cut", 1, 2), ("cut", 2, 1), ("cut", "client:reader", 1)}]
    story.begin("cut", ways)
    assert len(cluster.told) == 1
    story.end(ways)
    assert cluster.told[1:] == [set()]
    story.end(ways)
    assert len(cluster.told) == 2


def test_what_is_not_healed_is_disturbed_all_the_time() -> None:
    cluster, story = faults()
    story.begin("cut", [("cut", 1, 2), ("cut", 2, 1)])
    story.begin("hold", [("replica", 1, 2)], purpose="replica")
    story.end([("cut", 2, 1)])
    left = {("cut", 1, 2), ("hold", 1, 2)}
    assert all(left <= told for told in cluster.told[1:])
    assert cluster.told[-1] == left
    story.end([("replica", 1, 2), ("cut", 1, 2)])
    assert cluster.told[-1] == set()
