"""How a case is declared: a function that talks, its docstring the one sentence that says why.

    @case("Produce", 3, 13)
    def to_a_missing_partition(talk: Talk, version: int) -> None:
        \"\"\"A partition index that the topic does not have is unknown.\"\"\"

makes the cases `produce-to-a-missing-partition-v3` and `-v13`. Without versions there is one case
and the function takes the talk alone. `cluster_case` does the same for conversations with three
nodes, `group_case` for those with a broker that coordinates groups, `coordinated_case` for those
with one that coordinates groups and transactions, `transaction_case` for those of transactions;
their names begin with `cluster-`, `groups-`, `coordinated-` and `transactions-`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.golden.plain import KEYS

CLUSTER, GROUPS = "cluster-", "groups-"
COORDINATED, TRANSACTIONS = "coordinated-", "transactions-"
KINDS = (CLUSTER, GROUPS, COORDINATED, TRANSACTIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One named conversation about one API."""

    name: str
    api: str
    description: str
    run: Callable[[Any], Any]

    @property
    def file(self) -> str:
        """Where its recording is kept."""
        kind = next((each for each in KINDS if self.name.startswith(each)), "")
        return f"{kind}{self.api}"


CASES: dict[str, Case] = {}
CLUSTER_CASES: dict[str, Case] = {}
GROUP_CASES: dict[str, Case] = {}
COORDINATED_CASES: dict[str, Case] = {}
TRANSACTION_CASES: dict[str, Case] = {}

Function = Callable[..., Any]


def case(api: str, *versions: int) -> Callable[[Function], Function]:
    """Declare a case, or one for each version."""
    return functools.partial(_declare, CASES, _kebab(api), api, versions)


def cluster_case(api: str, *versions: int) -> Callable[[Function], Function]:
    """The same for a conversation with a cluster."""
    return functools.partial(_declare, CLUSTER_CASES, f"{CLUSTER}{_kebab(api)}", api, versions)


def group_case(api: str, *versions: int) -> Callable[[Function], Function]:
    """The same for a conversation with a broker that coordinates groups."""
    return functools.partial(_declare, GROUP_CASES, f"{GROUPS}{_kebab(api)}", api, versions)


def coordinated_case(api: str, *versions: int) -> Callable[[Function], Function]:
    """The same for a conversation with a broker that has its internal topics."""
    prefix = f"{COORDINATED}{_kebab(api)}"
    return functools.partial(_declare, COORDINATED_CASES, prefix, api, versions)


def transaction_case(api: str, *versions: int) -> Callable[[Function], Function]:
    """The same for a conversation with a broker that coordinates transactions."""
    prefix = f"{TRANSACTIONS}{_kebab(api)}"
    return functools.partial(_declare, TRANSACTION_CASES, prefix, api, versions)


def _declare(
    cases: dict[str, Case], prefix: str, api: str, versions: Sequence[int], function: Function
) -> Function:
    assert api in KEYS, api
    assert function.__doc__, f"{function.__name__} needs a sentence"
    description = " ".join(function.__doc__.split())
    stem = f"{prefix}-{function.__name__.replace('_', '-')}"
    runs: dict[str, Function] = {stem: function}
    if versions:
        runs = {f"{stem}-v{v}": functools.partial(function, version=v) for v in versions}
    for name, run in runs.items():
        assert name not in cases, f"two cases are called {name}"
        cases[name] = Case(name=name, api=api, description=description, run=run)
    return function


def _kebab(api: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", api).lower()
