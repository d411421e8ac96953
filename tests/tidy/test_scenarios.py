"""Scenarios: whoever claims to show one names a real id, and every required one is shown.

A claim is the marker `@pytest.mark.scenario("D4-O1", ...)` on a test, a name like
`test_d4_o1_...`, or the decorator `@story("D4-O1", ...)` of a story that the lab's book holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import pytest

from tests.tidy.claims import STORIES, Claim, claims, claims_of
from tests.tidy.reading import ROOT, Source, text_files
from tests.tidy.scenario_table import TABLE_PATH, table
from tests.tidy.scenarios import KNOWN, PROCESS, REQUIRED, TOLD, is_known

PROCESSES = ("tests/process/", "tests/compat/")
MENTIONED = re.compile(r"\b(?:D[1-5]-[A-Z]{1,2}\d+[a-d]?(?:-[AB])?|X-\d+)\b")


def unknown_claims(found: Sequence[Claim]) -> list[str]:
    """Claims of something that does not exist."""
    return [f"{each.path}:{each.line}: {each.id}" for each in found if not is_known(each.id)]


def unshown(wanted: Iterable[str], found: Sequence[Claim]) -> list[str]:
    """Those that nobody claims; a variant shows its scenario."""
    shown = {each.id.upper() for each in found}
    shown |= {scenario[:-1] for scenario in shown if scenario[-1] in "ABCD"}
    return sorted(scenario for scenario in wanted if scenario.upper() not in shown)


def test_every_claimed_scenario_exists() -> None:
    complaints = unknown_claims(claims())
    assert not complaints, "\n".join(complaints)


def test_every_required_scenario_is_shown_by_a_test() -> None:
    missing = unshown(REQUIRED, claims())
    assert not missing, "\n".join(f"{scenario}: {REQUIRED[scenario]}" for scenario in missing)


def test_the_heart_of_the_cluster_is_told_in_stories() -> None:
    told = [claim for claim in claims() if claim.path.startswith(STORIES)]
    assert not unshown(TOLD, told)


def test_real_processes_show_what_they_must() -> None:
    shown = [claim for claim in claims() if claim.path.startswith(PROCESSES)]
    assert not unshown(PROCESS, shown)


def test_pages_mention_only_scenarios_that_are_shown() -> None:
    pages = [page for page in text_files() if page.path.endswith(".md")]
    mentioned = {name for page in pages for name in MENTIONED.findall(page.text)}
    found = claims()
    missing = unshown(mentioned, found)
    assert not unshown([scenario.rstrip("abcd") for scenario in missing], found), missing


def test_the_table_of_scenarios_is_up_to_date() -> None:
    is_current = (ROOT / TABLE_PATH).read_text() == table(claims())
    assert is_current, "run ./dev python -m tests.tidy.scenario_table"


def test_the_lists_agree() -> None:
    assert REQUIRED.keys() | TOLD | PROCESS <= KNOWN
    assert (len(TOLD), len(PROCESS)) == (149, 86)
    assert {"D3-S2b-A", "D1-W7", "D3-PS2d"} <= KNOWN
    assert is_known("D3-C3a")
    assert not is_known("D3-C9a")
    assert {"D3-C7b", "D3-R0", "D3-S5", "D5-C1", "N56", "X-46", "D3-T20"} <= KNOWN
    assert not {"D4-O10", "D3-C7", "X-47", "N0"} & KNOWN


PLANTED = """
pytestmark = pytest.mark.scenario("D4-O1")

@pytest.mark.scenario("X-22", "X-23")
def test_one(): ...

def test_d4_i2_a_retry_gives_one_copy(): ...

@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.scenario("D4-O2"))])
async def test_x_31(x): ...
"""


def test_claims_are_found_wherever_they_stand() -> None:
    found = list(claims_of(Source("tests/x.py", PLANTED)))
    ids = {each.id for each in found}
    assert ids == {"D4-O1", "D4-O2", "D4-I2", "X-22", "X-23", "X-31"}
    assert unshown(REQUIRED, found) == sorted(REQUIRED.keys() - ids)
    assert unshown(["D4-O1", "D3-C3"], [*found, found[0]._replace(id="D3-C3b")]) == []


STORY = """
@story("D2-S5", "D3-C3b")
def c_is_elected(lab):
    '''With replicas [A, C, B] the controller takes C.

    And more.
    '''
    lab.step("D2-S5", "N12", "C leads, though B has more")
"""


def test_a_story_claims_the_ids_of_its_decorator_with_the_words_of_its_steps() -> None:
    found = list(claims_of(Source("src/tidelog/lab/stories/x.py", STORY)))
    assert [(each.id, each.text) for each in found] == [
        ("D2-S5", "C leads, though B has more"),
        ("D3-C3b", "With replicas [A, C, B] the controller takes C."),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "@pytest.mark.scenario('D4-O99')\ndef test(): ...",
        "@pytest.mark.scenario(IDS[0])\ndef test(): ...",
        "def test_d9_o1_something(): ...",
        "def test_x_470_something(): ...",
    ],
)
def test_a_claim_of_nothing_is_noticed(text: str) -> None:
    assert len(unknown_claims(list(claims_of(Source("tests/x.py", text))))) == 1
