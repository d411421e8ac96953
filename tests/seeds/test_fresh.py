"""Fresh seeds: new ones for new code, the same ones for the same code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.seeds.fresh import first_fresh_seed, seed_of


def tree(root: Path, **files: str) -> Path:
    for name, content in files.items():
        (root / name).mkdir(parents=True)
        (root / name / "room.py").write_text(content)
    return root


def test_the_same_code_has_the_same_seeds_wherever_it_stands(tmp_path: Path) -> None:
    here = tree(tmp_path / "here", one="a = 1\n", two="b = 2\n")
    there = tree(tmp_path / "there", two="b = 2\n", one="a = 1\n")
    (there / "one" / "notes.txt").write_text("no code")

    assert seed_of(here) == seed_of(there)


@pytest.mark.parametrize(
    "files",
    [
        {"one": "a = 1\n"},
        {"one": "a = 1\n", "two": "b = 3\n"},
        {"one": "b = 2\n", "two": "a = 1\n"},
    ],
)
def test_other_code_has_other_seeds(tmp_path: Path, files: dict[str, str]) -> None:
    here = tree(tmp_path / "here", one="a = 1\n", two="b = 2\n")

    assert seed_of(tree(tmp_path / "there", **files)) != seed_of(here)


def test_a_given_first_seed_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDELOG_FIRST_SEED", "77")
    first_fresh_seed.cache_clear()
    try:
        assert first_fresh_seed() == 77
    finally:
        first_fresh_seed.cache_clear()
