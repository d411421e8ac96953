"""How a case is declared: a function that talks, its docstring the one sentence that says why.

    @case("Produce", 3, 13)
    def to_a_missing_partition(talk: Talk, version: int) -> None:
        \"\"\"A partition index that the topic does not have is unknown.\"\"\"

makes the cases `produce-to-a-missing-partition-v3` and `-v13`. Without versions there is one case
and the function takes the talk alone. `cluster_case` does the same for conversations with three
nodes; their names begin with `cluster-`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.golden.plain import API_KEYS

CLUSTER = "cluster-"


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
        return f"{CLUSTER}{self.api}" if self.name.startswith(CLUSTER) else self.api


CASES: dict[str, Case] = {}
CLUSTER_CASES: dict[str, Case] = {}

Function = Callable[..., Any]


def case(api: str, *versions: int) -> Callable[[Function], Function]:
    """Declare a case, or one for each version."""
    return functools.partial(_declare, CASES, _kebab(api), api, versions)


def cluster_case(api: str, *versions: int) -> Callable[[Function], Function]:
    """The same for a conversation with a cluster."""
    return functools.partial(_declare, CLUSTER_CASES, f"{CLUSTER}{_kebab(api)}", api, versions)


def _declare(
    cases: dict[str, Case], prefix: str, api: str, versions: Sequence[int], function: Function
) -> Function:
    assert api in API_KEYS, api
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
