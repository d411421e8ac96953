"""Plain columns for people: as wide as they must be, the same in a terminal and in a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

GAP = "  "
NOTHING = "-"


def columns(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A header and one line for each row; empty cells show a dash."""
    lines = [list(header), *([cell(each) for each in row] for row in rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(header))]
    return "\n".join(
        GAP.join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def cell(value: object) -> str:
    """None and empty lists as a dash, lists with commas."""
    if value is None:
        return NOTHING
    if isinstance(value, list | tuple | frozenset):
        return ",".join(str(each) for each in value) or NOTHING
    return str(value) or NOTHING
