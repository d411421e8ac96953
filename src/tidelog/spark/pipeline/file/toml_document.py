"""TOML read statement by statement, so that every value has its line and one mistake does not hide
the next.

tomllib gives no positions. But each statement of a file (`key = value`, `[table]`) is a small TOML
document of its own: lines are collected until they are one, and tomllib reads them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tidelog.spark.pipeline.file.diagnostics import Diagnostic

KeyPath = tuple[str, ...]
_UNFINISHED = "(at end of document)"
_QUOTES = ('"""', "'''")


class TomlValue(NamedTuple):
    """A value, the line of its key, and the line on which a text of several lines begins."""

    value: object
    line: int | None
    text_line: int | None


@dataclass
class Document:
    """All values by their full key, inline tables flattened; and the tables that were opened."""

    values: dict[KeyPath, TomlValue] = field(default_factory=dict)
    tables: dict[KeyPath, int | None] = field(default_factory=dict)
    first_line: int | None = None

    def names_below(self, section: str) -> list[str]:
        """The tables of a section, `valid` of `[steps.valid]`, in the order of the file."""
        given = [(given.line, path) for path, given in self.values.items() if len(path) > 2]
        opened = [(line, path) for path, line in self.tables.items() if len(path) > 1]
        positions = sorted([*opened, *given], key=lambda each: each[0] or 0)
        return list(dict.fromkeys(path[1] for _, path in positions if path[0] == section))

    def line_of(self, path: KeyPath) -> int | None:
        """Of a value or a table, or of the first key in it; else of the nearest table around it."""
        for length in range(len(path), 0, -1):
            part = path[:length]
            if part in self.tables:
                return self.tables[part]
            for known, given in self.values.items():
                if known[:length] == part:
                    return given.line
        return self.first_line


def dotted(path: KeyPath) -> str:
    """As it is written in a message."""
    return ".".join(path)


def read_document(text: str) -> tuple[Document, list[Diagnostic]]:
    """All values that can be read, and an error for each statement that cannot."""
    reader = _Reader(text.replace("\r\n", "\n").split("\n"))
    reader.read()
    return reader.document, reader.diagnostics


def document_of(plan: Mapping[str, object]) -> Document:
    """The same from nested mappings, which have no lines."""
    document = Document()
    for path, value in _flatten(plan):
        if isinstance(value, Mapping):
            document.tables[path] = None
        else:
            document.values[path] = TomlValue(value, None, None)
            for length in range(1, len(path)):
                document.tables.setdefault(path[:length], None)
    return document


class _Reader:
    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.document = Document(first_line=1)
        self.diagnostics: list[Diagnostic] = []
        self._table: KeyPath = ()

    def read(self) -> None:
        start = 0
        while start < len(self.lines):
            end, parsed, error = self._statement(start)
            if error is None:
                self._add_statement(start, end, parsed)
                start = end
            elif error.endswith(_UNFINISHED):
                self._error(start + 1, "", f"is not TOML: {_reason(error)}")
                start = self._next_table(start + 1)
            else:
                self._error(start + 1, "", f"is not TOML: {_reason(error)}")
                start += 1

    def _statement(self, start: int) -> tuple[int, dict[str, object], str | None]:
        """As many lines as make a statement; returns (end, values, error)."""
        end = start + 1
        parsed, error = _parse(self.lines[start:end])
        while error is not None and error.endswith(_UNFINISHED) and end < len(self.lines):
            end += 1
            parsed, error = _parse(self.lines[start:end])
        return end, parsed, error

    def _next_table(self, start: int) -> int:
        """After a statement that never ends, continue with the next line that opens a table."""
        for index in range(start, len(self.lines)):
            line = self.lines[index].strip()
            if line.startswith("[") and _parse([line])[1] is None:
                return index
        return len(self.lines)

    def _add_statement(self, start: int, end: int, parsed: dict[str, object]) -> None:
        line = start + 1
        header = self.lines[start].strip()
        if header.startswith("[["):
            name = header.strip("[] ")
            self._error(line, name, f"lists of tables are not supported here, write [{name}.NAME]")
        elif header.startswith("["):
            self._open_table(line, next(path for path, _ in _flatten(parsed)))
        else:
            opening = self.lines[start].rstrip().endswith(_QUOTES)
            text_line = line + 1 if end - start > 1 and opening else line
            for path, value in _flatten(parsed):
                self._add_value(self._table + path, TomlValue(value, line, text_line))

    def _open_table(self, line: int, path: KeyPath) -> None:
        self._table = path
        first = self.document.tables.get(path)
        if first is not None:
            self._error(line, dotted(path), f"this table was already opened at line {first}")
            return
        self.document.tables[path] = line
        for length in range(1, len(path)):
            if path[:length] in self.document.values:
                where = self.document.values[path[:length]].line
                self._error(
                    line, dotted(path), f"{dotted(path[:length])} is a value, at line {where}"
                )

    def _add_value(self, path: KeyPath, given: TomlValue) -> None:
        if isinstance(given.value, dict):  # an empty inline table
            self.document.tables.setdefault(path, given.line)
            return
        if path in self.document.values:
            first = self.document.values[path].line
            self._error(given.line, dotted(path), f"was already set at line {first}")
            return
        self.document.values[path] = given

    def _error(self, line: int | None, key: str, text: str) -> None:
        self.diagnostics.append(Diagnostic(line=line, key=key, text=text))


def _parse(lines: list[str]) -> tuple[dict[str, object], str | None]:
    try:
        return tomllib.loads("\n".join(lines)), None
    except tomllib.TOMLDecodeError as error:
        return {}, str(error)


def _reason(error: str) -> str:
    """Without the position, which is within the statement: the diagnostic has the line."""
    return error.partition(" (at ")[0]


def _flatten(table: Mapping[str, object], prefix: KeyPath = ()) -> Iterator[tuple[KeyPath, object]]:
    """Every value with its path; an empty table is a value of its own."""
    for key, value in table.items():
        path = (*prefix, str(key))
        if isinstance(value, Mapping) and value:
            yield from _flatten(value, path)
        else:
            yield path, value
