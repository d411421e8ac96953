"""The rules that fault gates are given for a fault: pure tables.

A gate acts on what its own node sends and receives, so every node is given every rule, and each
applies what concerns it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidelog.cluster.targets import Target
from tidelog.faults.hosts import CLIENTS

RuleFields = dict[str, object]
"""As the gates' sockets want it, without its id."""
Direction = tuple[Target, Target]
"""From whom to whom."""


def directions(
    sources: Sequence[Target], targets: Sequence[Target], *, one_way: bool
) -> list[Direction]:
    """From each source to each target, and back unless it is one way; none to oneself."""
    there = [(source, target) for source in sources for target in targets if source != target]
    back = [] if one_way else [(target, source) for source, target in there]
    return list(dict.fromkeys([*there, *back]))


def isolation(
    nodes: Sequence[Target], all_nodes: Iterable[Target], *, clients: bool
) -> list[Direction]:
    """Between these nodes and all others, both directions; not among themselves."""
    others: list[Target] = [each for each in all_nodes if each not in nodes]
    if clients:
        others.append(CLIENTS)
    return directions(nodes, others, one_way=False)


def rules_for(what: str, found: Iterable[Direction], **fields: object) -> list[RuleFields]:
    """The same fault in each direction."""
    return [{"what": what, "from": source, "to": target, **fields} for source, target in found]


def numbered(fault_id: str, rules: Sequence[RuleFields], until_ms: int | None) -> list[RuleFields]:
    """With ids that name the fault they belong to, and with their end."""
    return [
        {"id": f"{fault_id}.{number}", **rule, "until_ms": until_ms}
        for number, rule in enumerate(rules, start=1)
    ]


def listed(hosts: Iterable[Target]) -> str:
    """For sentences: `1, 2 and clients`."""
    words = [str(each) for each in hosts]
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"
