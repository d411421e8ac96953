"""Fresh seeds: new ones for new code, the same ones for the same code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaign_extent import CampaignExtent
from tests.seeds.fresh import first_fresh_seed, seed_of


def tree(root: Path, **files: str) -> Path:
    for name, content in files.items():
        (root / name).mkdir(parents=True)
        (root / name / "room.py").write_text(content)
    return root


def test_the_same_code_has_the_same_seeds_wherever_it_stands(tmp_path: Path) -> None:
    here = tree(tmp_path / "here", core="a = 1\n", client="b = 2\n")
    there = tree(tmp_path / "there", client="b = 2\n", core="a = 1\n")
    (there / "core" / "notes.txt").write_text("no code")

    assert seed_of(here) == seed_of(there)


@pytest.mark.parametrize(
    "files",
    [
        {"core": "a = 1\n"},
        {"core": "a = 1\n", "client": "b = 3\n"},
        {"core": "b = 2\n", "client": "a = 1\n"},
    ],
)
def test_other_code_has_other_seeds(tmp_path: Path, files: dict[str, str]) -> None:
    here = tree(tmp_path / "here", core="a = 1\n", client="b = 2\n")

    assert seed_of(tree(tmp_path / "there", **files)) != seed_of(here)


def test_code_that_no_simulated_world_has_changes_nothing(tmp_path: Path) -> None:
    here = tree(tmp_path / "here", core="a = 1\n", client="b = 2\n")
    there = tree(tmp_path / "there", core="a = 1\n", client="b = 2\n", spark="c = 3\n")
    tree(there / "client", sink="d = 4\n", shells="e = 5\n")

    assert seed_of(here) == seed_of(there)


def test_code_of_any_room_changes_the_number_of_all_code(tmp_path: Path) -> None:
    here = tree(tmp_path / "here", core="a = 1\n", spark="c = 3\n")
    there = tree(tmp_path / "there", core="a = 1\n", spark="c = 4\n")

    assert seed_of(here) == seed_of(there)
    everything = [seed_of(each, rooms=("",), left_out=()) for each in (here, there)]
    assert everything[0] != everything[1]


@pytest.mark.parametrize("parts", [1, 2, 3, 4])
def test_a_campaign_of_other_code_has_another_part_and_all_of_them_are_the_whole(
    parts: int,
) -> None:
    steps = list(range(11))
    shares = [
        CampaignExtent(is_whole=False, number=number).share(steps, parts=parts)
        for number in range(5, 5 + parts)
    ]

    assert sorted(step for share in shares for step in share) == steps
    whole = CampaignExtent(is_whole=True, number=5)
    assert whole.share(steps, parts=parts) == steps
    assert whole.size(4, whole=9) == 9
    assert CampaignExtent(is_whole=False, number=5).size(4, whole=9) == 4


def test_a_given_first_seed_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDELOG_FIRST_SEED", "77")
    first_fresh_seed.cache_clear()
    try:
        assert first_fresh_seed() == 77
    finally:
        first_fresh_seed.cache_clear()
