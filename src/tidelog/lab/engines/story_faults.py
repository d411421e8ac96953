"""The network faults of a story on processes: what a story does in one breath happens at once.

A word like `isolate` cuts many ways. Told to the fault gates one by one it would take long enough
for the cluster to live through every stage of it, so the ways of one word are one fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidelog.cluster.cluster import Cluster
from tidelog.cluster.fault_book import FaultNote
from tidelog.cluster.rules import Rule, numbered
from tidelog.lab.engine import Host

Way = tuple[str, Host, Host]
"""A kind of fault, from whom, to whom."""


class StoryFaults:
    """Which ways are disturbed now, and by which fault of the cluster's book."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._groups: dict[str, dict[Way, Rule]] = {}

    def begin(self, what: str, ways: Iterable[Way], **fields: object) -> None:
        """The same on each way; those that are disturbed so already stay as they are."""
        known = {way for group in self._groups.values() for way in group}
        wanted: dict[Way, Rule] = {
            way: {"what": what, "from": _host(way[1]), "to": _host(way[2]), **fields}
            for way in ways
            if way not in known
        }
        if wanted:
            self._add(wanted)

    def end(self, ways: Iterable[Way]) -> None:
        """Nothing disturbs these any more; where nothing did, nothing happens."""
        gone = set(ways)
        for fault_id, group in list(self._groups.items()):
            left = {way: rule for way, rule in group.items() if way not in gone}
            if len(left) < len(group):
                if left:
                    self._add(left)
                del self._groups[fault_id]
                self._cluster.undo(fault_id)

    def _add(self, wanted: Mapping[Way, Rule]) -> None:
        with self._cluster.book.open() as book:
            fault_id = book.new_id()
            rules = tuple(numbered(fault_id, list(wanted.values()), None))
            text = ", ".join(f"{kind} {source} -> {target}" for kind, source, target in wanted)
            book.notes.append(FaultNote(id=fault_id, what="story", text=text, rules=rules))
            self._cluster.gates.replace(book.rules)
        self._groups[fault_id] = dict(wanted)


def _host(host: Host) -> Host:
    return host if isinstance(host, int) else f"client:{host}"
