"""Scenarios: whoever claims to show one names a real id, and every required one is shown.

A claim is the marker `@pytest.mark.scenario("D4-O1", ...)` on a test, a name like
`test_d4_o1_...`, or the decorator `@story("D4-O1", ...)` of a story that the lab's book holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import pytest

from tests.tidy.claims import (
    EXPLAINED,
    GUIDE,
    STORIES,
    Claim,
    claims,
    claims_of,
    guide_pages,
)
from tests.tidy.reading import ROOT, Source, text_files
from tests.tidy.scenario_table import INDEX_PATH, TABLE_PATH, index, table
from tests.tidy.scenarios import KNOWN, PARTLY, PROCESS, REQUIRED, TOLD, WAITING, is_known

PROCESSES = ("tests/process/", "tests/compat/")
LINKED = re.compile(r"\(scenarios-shown\.md#([a-z0-9-]+)\)")
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
    """The table itself also names those that wait for something."""
    texts = [page for page in text_files() if page.path.endswith(".md")]
    pages = [page for page in texts if page.path != TABLE_PATH]
    mentioned = {name for page in pages for name in MENTIONED.findall(page.text)}
    found = claims()
    missing = unshown(mentioned, found)
    assert not unshown([scenario.rstrip("abcd") for scenario in missing], found), missing


def test_every_scenario_is_shown_or_says_what_it_waits_for() -> None:
    silent = unshown(KNOWN - WAITING.keys(), claims())
    assert not silent, f"neither shown nor waiting: {silent}"
    waiting = set(unshown(WAITING, claims()))
    assert WAITING.keys() == waiting, f"shown by now: {sorted(WAITING.keys() - waiting)}"
    assert not unshown(PARTLY, claims()), "partly shown means shown"


def test_what_the_guide_explains_it_ties_to_something_shown() -> None:
    """Every explanation names at least one scenario that a story or a test shows."""
    proved = [claim for claim in claims() if not claim.path.startswith(GUIDE)]
    for page in guide_pages():
        pieces = EXPLAINED.split(page.text)[1:]
        for scenario, sentence, rest in zip(*[iter(pieces)] * 3, strict=True):
            named = [name.upper() for name in LINKED.findall(sentence + rest.partition("\n\n")[0])]
            assert named, f"{page.path}: {scenario} names nothing that shows it"
            assert len(unshown(named, proved)) < len(named), f"{page.path}: {scenario}"


def test_the_table_of_scenarios_is_up_to_date() -> None:
    is_current = (ROOT / TABLE_PATH).read_text() == table(claims())
    is_current = is_current and (ROOT / INDEX_PATH).read_text() == index(claims())
    assert is_current, "run ./dev python -m tests.tidy.scenario_table"


def test_the_lists_agree() -> None:
    assert REQUIRED.keys() | TOLD | PROCESS <= KNOWN
    assert (len(TOLD), len(PROCESS)) == (164, 100)
    assert {"D3-S2b-A", "D1-W7", "D3-PS2d"} <= KNOWN
    assert is_known("D3-C3a")
    assert not is_known("D3-C9a")
    assert {"D3-C7b", "D3-R0", "D3-S5", "D5-C1", "N56", "X-46", "D3-T20"} <= KNOWN
    assert not {"D4-O10", "D3-C7", "X-53", "N0"} & KNOWN


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
