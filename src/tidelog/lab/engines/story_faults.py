"""The network faults of a story on processes: what a story does in one breath happens at once.

A word like `isolate` cuts many ways. Told to the fault gates one by one it would take long enough
for the cluster to live through every stage of it, so the ways of one word are one fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from tidelog.cluster.fault_injector import Fault
from tidelog.cluster.rules import RuleFields
from tidelog.lab.engine import Host

Way = tuple[str, Host, Host]
"""A kind of fault, from whom, to whom."""


class Injector(Protocol):
    """What gives rules to the fault gates of a cluster: see tidelog.cluster.fault_injector."""

    def inject(self, what: str, text: str, rules: Sequence[RuleFields]) -> Fault: ...


class StoryFaults:
    """Which ways are disturbed now, and by which fault of the cluster."""

    def __init__(self, injector: Injector) -> None:
        self._injector = injector
        self._groups: list[tuple[Fault, dict[Way, RuleFields]]] = []

    def begin(self, what: str, ways: Iterable[Way], **fields: object) -> None:
        """The same on each way; those that are disturbed so already stay as they are."""
        known = {way for _, group in self._groups for way in group}
        wanted: dict[Way, RuleFields] = {
            way: {"what": what, "from": _host(way[1]), "to": _host(way[2]), **fields}
            for way in ways
            if way not in known
        }
        if wanted:
            self._add(wanted)

    def end(self, ways: Iterable[Way]) -> None:
        """Nothing disturbs these any more; where nothing did, nothing happens."""
        gone = set(ways)
        for entry in list(self._groups):
            fault, group = entry
            left = {way: rule for way, rule in group.items() if way not in gone}
            if len(left) < len(group):
                if left:
                    self._add(left)
                self._groups.remove(entry)
                fault.undo()

    def _add(self, wanted: dict[Way, RuleFields]) -> None:
        text = ", ".join(f"{kind} {source} -> {target}" for kind, source, target in wanted)
        fault = self._injector.inject("story", text, list(wanted.values()))
        self._groups.append((fault, wanted))


def _host(host: Host) -> Host:
    return host if isinstance(host, int) else f"client:{host}"
