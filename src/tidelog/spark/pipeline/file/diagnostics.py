"""What is wrong with a pipeline file: each mistake with its line, its key, and what is expected."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from tidelog.core.model.exceptions import TidelogError


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One error or warning; a plan made in Python has no lines."""

    line: int | None
    key: str
    text: str
    is_warning: bool = False

    def as_line(self, file: str) -> str:
        """`orders.toml:7: steps.valid.sql: reads 'ordres', ...`, as editors understand it."""
        location = file if self.line is None else f"{file}:{self.line}"
        kind = "warning: " if self.is_warning else ""
        return (
            f"{location}: {self.key}: {kind}{self.text}"
            if self.key
            else f"{location}: {kind}{self.text}"
        )


class BadPlan(TidelogError):
    """The plan has errors and was not started; each is one line of the text."""

    def __init__(self, file: str, diagnostics: Iterable[Diagnostic]) -> None:
        self.file = file
        self.diagnostics = in_file_order(diagnostics)
        super().__init__("\n".join(each.as_line(file) for each in self.diagnostics))


def in_file_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Sorted by line; those without a line come last, and duplicates are removed."""
    unique = dict.fromkeys(diagnostics)
    return sorted(unique, key=lambda each: (each.line is None, each.line or 0))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'orders'?` or nothing, for the end of a message."""
    near = get_close_matches(name.lower(), {each.lower(): each for each in known}, n=1, cutoff=0.6)
    if not near:
        return ""
    meant = next(each for each in known if each.lower() == near[0])
    return f"; did you mean {meant!r}?"


def one_of(known: Iterable[str]) -> str:
    """`a, b or c`."""
    names = list(known)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
