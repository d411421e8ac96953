"""The table of faults: the Python verbs, the commands, the engines and the pages agree with it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from tests.tidy.reading import ROOT
from tidelog.cli.cluster.fault import app
from tidelog.cluster.cluster import Cluster
from tidelog.faults.fields import REQUIRED
from tidelog.faults.kinds import FAULTS, LAB_FAULTS, RULE_FIELDS, FaultKind, Parameter, Value
from tidelog.lab.engine import Engine
from tidelog.worlds.runtime import fault_gate, fault_table

FAULTS_PAGE = ROOT / "docs" / "faults.md"
GATE_PAGE = ROOT / "docs" / "fault-gate.md"


def names(parameter: Parameter) -> list[str]:
    """As the Python verb has them."""
    if parameter.value is Value.TARGETS:
        return [f"*{parameter.name}"]
    if parameter.value is Value.PARTITION:
        return ["topic", parameter.name]
    return [parameter.name]


@pytest.mark.parametrize("kind", FAULTS, ids=lambda kind: kind.name)
def test_the_python_verb_has_the_parameters_of_the_row(kind: FaultKind) -> None:
    signature = inspect.signature(getattr(Cluster, kind.verb))
    found = [
        f"*{each.name}" if each.kind is inspect.Parameter.VAR_POSITIONAL else each.name
        for each in signature.parameters.values()
    ]
    wanted = [name for each in kind.parameters for name in names(each)]
    assert found == ["self", *wanted, "for_s"]
    for each in kind.parameters:
        if each.option is not None:
            found_default = signature.parameters[each.name].default
            wanted_default = inspect.Parameter.empty if each.default is REQUIRED else each.default
            assert found_default == wanted_default


def test_every_row_with_a_command_has_one() -> None:
    commands = {each.name for each in app.registered_commands}
    assert commands >= {kind.name for kind in FAULTS if kind.has_command}


def test_the_lab_engines_have_the_verbs_of_the_rows() -> None:
    verbs = [verb for kind in (*FAULTS, *LAB_FAULTS) for verb in kind.engine_verbs]
    assert len(verbs) == len(set(verbs))
    assert all(callable(getattr(Engine, verb)) for verb in verbs)


@pytest.mark.parametrize("name", RULE_FIELDS)
def test_a_gate_does_something_for_every_rule(name: str) -> None:
    sources = [Path(str(each.__file__)).read_text() for each in (fault_table, fault_gate)]
    assert any(f'"{name}"' in each for each in sources)


# The pages.


def usage(kind: FaultKind) -> str:
    """`delay TARGET OTHER --by 200ms [--jitter 50ms] [--one-way]`."""
    words = [kind.name]
    for each in kind.parameters:
        word = " ".join(filter(None, (each.option, each.metavar)))
        is_needed = each.option is None or each.default is REQUIRED
        words.append(word if is_needed else f"[{word}]")
    return " ".join(words)


def call(kind: FaultKind) -> str:
    """`delay(source, target, ms, jitter_ms=0, one_way=False)`."""
    words = []
    for each in kind.parameters:
        suffix = "" if each.default is REQUIRED else f"={each.default!r}"
        words += [f"{name}{suffix}" for name in names(each)]
    return f"{kind.verb}({', '.join(words)})"


def row(kind: FaultKind) -> str:
    command = f"`{usage(kind)}`" if kind.has_command else ""
    python = f"`{call(kind)}`" if kind.has_verb else ""
    return f"| {kind.name} | {command} | {python} | {kind.does} | {', '.join(kind.engines)} |"


def test_the_page_about_faults_has_the_table() -> None:
    wanted = [row(kind) for kind in (*FAULTS, *LAB_FAULTS)]
    lines = FAULTS_PAGE.read_text().splitlines()
    header = "| fault | command line | Python | what happens | engines |"
    start = lines.index(header) + 2
    found = lines[start : start + len(wanted)]
    assert found == wanted, "docs/faults.md should have:\n" + "\n".join(wanted)


def test_the_page_about_gates_has_the_fields_of_every_rule() -> None:
    found = {
        match[1]: set(re.findall(r"`(\w+)`", match[2]))
        for match in re.finditer(r"^\| `([\w-]+)` \| ([^|]*) \|", GATE_PAGE.read_text(), re.M)
        if match[1] in RULE_FIELDS
    }
    assert found == {name: set(fields) - {"until_ms"} for name, fields in RULE_FIELDS.items()}
