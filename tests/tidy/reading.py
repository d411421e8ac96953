"""Reads the house for its judges: every file that is or could be committed, and its syntax tree."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEFT_OUT = {".git", ".venv", "build", "dist", "__pycache__"}


@dataclass(frozen=True)
class Source:
    """One text file; a planted one has any path it likes."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def module(self) -> str | None:
        """The dotted name without `tidelog.`: `core.wire.varint`; None outside the packages."""
        if not self.path.startswith("src/") or not self.path.endswith(".py"):
            return None
        inside = self.path.removeprefix("src/").removeprefix("tidelog/")
        parts = inside.removesuffix(".py").split("/")
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def all_paths() -> list[str]:
    """Tracked files and new ones that are not ignored, sorted."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listing.returncode == 0:
        names = set(filter(None, listing.stdout.split("\0")))
    else:  # an unpacked archive without git
        found = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
        names = {path.as_posix() for path in found if not LEFT_OUT & set(path.parts)}
    return sorted(name for name in names if (ROOT / name).is_file())


@cache
def nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """Every node of a file: a dozen judges walk the same trees."""
    return tuple(ast.walk(tree))


@cache
def text_files() -> tuple[Source, ...]:
    """Everything that is text."""
    return tuple(_read_text(all_paths()))


def python_files(*folders: str) -> list[Source]:
    """The Python below the given folders; without any, all of it and the script `dev`."""
    everything = [file for file in text_files() if file.path.endswith(".py") or file.path == "dev"]
    if not folders:
        return everything
    return [file for file in everything if file.path.startswith(tuple(f"{f}/" for f in folders))]


def _read_text(paths: list[str]) -> Iterator[Source]:
    for path in paths:
        content = (ROOT / path).read_bytes()
        if b"\0" in content:
            continue
        try:
            yield Source(path, content.decode("utf-8"))
        except UnicodeDecodeError:
            continue
