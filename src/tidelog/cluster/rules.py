"""What a fault gate must be told for a fault: pure tables of rules.

A gate acts on what its own node sends and receives, so every node is given every rule, and each
applies what concerns it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidelog.cluster.targets import CLIENTS, Target

Rule = dict[str, object]
"""As the gates' sockets want it, without its id."""


def ways(
    sources: Sequence[Target], targets: Sequence[Target], *, one_way: bool
) -> list[tuple[Target, Target]]:
    """Every way from the ones to the others, and back unless it is one way; none to oneself."""
    there = [(source, target) for source in sources for target in targets if source != target]
    back = [] if one_way else [(target, source) for source, target in there]
    return list(dict.fromkeys([*there, *back]))


def isolation(
    nodes: Sequence[Target], everybody: Iterable[Target], *, clients: bool
) -> list[tuple[Target, Target]]:
    """The ways between these nodes and all others, in both directions; not among themselves."""
    others: list[Target] = [each for each in everybody if each not in nodes]
    if clients:
        others.append(CLIENTS)
    return ways(nodes, others, one_way=False)


def along(what: str, found: Iterable[tuple[Target, Target]], **fields: object) -> list[Rule]:
    """The same fault on each way."""
    return [{"what": what, "from": source, "to": target, **fields} for source, target in found]


def numbered(fault_id: str, rules: Sequence[Rule], until_ms: int | None) -> list[Rule]:
    """With ids that tell which fault they belong to, and with their end."""
    return [
        {"id": f"{fault_id}.{number}", **rule, "until_ms": until_ms}
        for number, rule in enumerate(rules, start=1)
    ]


def told_hosts(hosts: Iterable[Target]) -> str:
    """For sentences: `1, 2 and clients`."""
    words = [str(each) for each in hosts]
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"
