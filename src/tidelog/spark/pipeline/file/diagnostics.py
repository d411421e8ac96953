"""What is wrong with a pipeline file: each mistake with its line, its key, and what is expected."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from tidelog.core.model.exceptions import TidelogError


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One mistake, or something to be warned of; a plan made in Python has no lines."""

    line: int | None
    key: str
    text: str
    is_warning: bool = False

    def told(self, file: str) -> str:
        """`orders.toml:7: steps.valid.sql: reads 'ordres', ...`, as editors understand it."""
        place = file if self.line is None else f"{file}:{self.line}"
        kind = "warning: " if self.is_warning else ""
        return (
            f"{place}: {self.key}: {kind}{self.text}" if self.key else f"{place}: {kind}{self.text}"
        )


class BadPlan(TidelogError):
    """Nothing was started; each complaint is one line."""

    def __init__(self, file: str, complaints: Iterable[Diagnostic]) -> None:
        self.file = file
        self.complaints = in_file_order(complaints)
        super().__init__("\n".join(each.told(file) for each in self.complaints))


def in_file_order(complaints: Iterable[Diagnostic]) -> list[Diagnostic]:
    """As the file goes; what has no line comes last, and nothing is said twice."""
    unique = dict.fromkeys(complaints)
    return sorted(unique, key=lambda each: (each.line is None, each.line or 0))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'orders'?` or nothing, for the end of a complaint."""
    near = get_close_matches(name.lower(), {each.lower(): each for each in known}, n=1, cutoff=0.6)
    if not near:
        return ""
    meant = next(each for each in known if each.lower() == near[0])
    return f"; did you mean {meant!r}?"


def one_of(known: Iterable[str]) -> str:
    """`a, b or c`."""
    names = list(known)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
