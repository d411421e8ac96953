"""One table of a pipeline file with the types of its values checked; every mistake is collected."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tidelog.core.model.exceptions import TidelogError
from tidelog.spark.pipeline.file.diagnostics import Diagnostic, did_you_mean, one_of
from tidelog.spark.pipeline.file.keys import BadDuration, Key, Keys, ValueKind, duration_ms
from tidelog.spark.pipeline.file.toml_document import Document, KeyPath, TomlValue, dotted

AVAILABLE_NOW = "available-now"
CONTINUOUS = "continuous"


class _Wrong(TidelogError):
    """The value is not what its key needs."""


@dataclass
class Section:
    """The valid values by key; errors and warnings are added with the line of their key."""

    document: Document
    path: KeyPath
    diagnostics: list[Diagnostic]
    values: dict[str, Any] = field(default_factory=dict)
    given: set[str] = field(default_factory=set)
    """The keys that are present, right or wrong."""

    @property
    def name(self) -> str:
        return self.path[-1]

    def text(self, key: str) -> str | None:
        value = self.values.get(key)
        assert value is None or isinstance(value, str)
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        return tuple(self.values.get(key, ()))

    def error(self, key: str, text: str, *, line: int | None = None) -> None:
        """Add an error about a key of this table; an empty key means the table itself."""
        self._add(key, text, line, is_warning=False)

    def warn(self, key: str, text: str, *, line: int | None = None) -> None:
        self._add(key, text, line, is_warning=True)

    def line_in_text(self, key: str, line: int) -> int | None:
        """The file's line for a line of a string value, counted from 0."""
        entry = self.document.values.get((*self.path, key))
        return None if entry is None or entry.text_line is None else entry.text_line + line

    def _add(self, key: str, text: str, line: int | None, *, is_warning: bool) -> None:
        path = (*self.path, *key.split(".")) if key else self.path
        self.diagnostics.append(
            Diagnostic(
                line=self.document.line_of(path) if line is None else line,
                key=dotted(path),
                text=text,
                is_warning=is_warning,
            )
        )


def read_section(
    document: Document, path: KeyPath, keys: Keys, diagnostics: list[Diagnostic]
) -> Section:
    """Unknown keys and wrong types become errors; the rest is in the section's values."""
    section = Section(document, path, diagnostics)
    unknown: dict[str, None] = {}
    for full, entry in document.values.items():
        if full[: len(path)] != path or len(full) == len(path):
            continue
        key, rest = full[len(path)], full[len(path) + 1 :]
        if key in keys:
            section.given.add(key)
            _take(section, key, keys[key], rest, entry)
        else:
            unknown[key] = None
    for full in document.tables:
        if full[: len(path)] == path and len(full) > len(path):
            key = full[len(path)]
            if key not in keys:
                unknown[key] = None
            else:
                section.given.add(key)
                _check_table(section, key, keys[key])
    for key in unknown:
        near = did_you_mean(key, keys)
        known = "" if near else f"; expected {one_of(sorted(keys))}"
        lines = [
            document.line_of(path)
            for path in (*document.tables, *document.values)
            if path[: len(section.path) + 1] == (*section.path, key)
        ]
        line = min((each for each in lines if each is not None), default=None)
        section.error(key, f"is not known here{near}{known}", line=line)
    return section


def _take(section: Section, key: str, known: Key, rest: KeyPath, entry: TomlValue) -> None:
    try:
        if known.kind is ValueKind.OPTIONS:
            if not rest:
                raise _Wrong(f"expected {known.kind.value}, not {_shown(entry.value)}")
            section.values.setdefault(key, {})[".".join(rest)] = option(entry.value)
        elif known.kind is ValueKind.TABLE:
            if not rest:
                raise _Wrong(f"expected {known.kind.value}, not {_shown(entry.value)}")
        elif rest:
            raise _Wrong(f"expected {known.kind.value}, not a table")
        else:
            section.values[key] = _CHECKS[known.kind](entry.value, known)
    except _Wrong as wrong:
        section.error(".".join((key, *rest)), str(wrong), line=entry.line)


def _check_table(section: Section, key: str, known: Key) -> None:
    if known.kind not in (ValueKind.TABLE, ValueKind.OPTIONS):
        section.error(key, f"expected {known.kind.value}, not a table")


def option(value: object) -> str:
    """Options are strings for Spark; true and 5 may be written without quotes."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise _Wrong(f"expected a string, a number, true or false, not {_shown(value)}")


def _text(value: object, key: Key) -> str:
    if not isinstance(value, str):
        raise _Wrong(f"expected {ValueKind.TEXT.value}, not {_shown(value)}")
    if not value.strip():
        raise _Wrong(f"is empty; expected {one_of(key.words) if key.words else 'a string'}")
    if key.words and value not in key.words:
        near = did_you_mean(value, key.words)
        raise _Wrong(f"{value!r} is not known; expected {one_of(key.words)}{near}")
    return value


def _texts(value: object, key: Key) -> tuple[str, ...]:
    if isinstance(value, str):
        raise _Wrong(f'expected {ValueKind.TEXTS.value}; write ["{value}"]')
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise _Wrong(f"expected {ValueKind.TEXTS.value}, not {_shown(value)}")
    if not value or not all(each.strip() for each in value):
        raise _Wrong(f"is empty; expected {ValueKind.TEXTS.value}")
    twice = sorted({each for each in value if list(value).count(each) > 1})
    if twice:
        raise _Wrong(f"names {twice[0]!r} twice")
    return tuple(value)


def _integer(value: object, key: Key) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise _Wrong(f"expected {ValueKind.INTEGER.value}, not {_shown(value)}")
    return value


def _flag(value: object, key: Key) -> bool:
    if not isinstance(value, bool):
        raise _Wrong(f"expected {ValueKind.FLAG.value}, not {_shown(value)}")
    return value


def _duration(value: object, key: Key) -> int:
    if not isinstance(value, str):
        raise _Wrong(f"expected {key.kind.value}, not {_shown(value)}")
    try:
        return duration_ms(value)
    except BadDuration as bad:
        raise _Wrong(str(bad)) from None


def _trigger(value: object, key: Key) -> int | None:
    """None for available-now, 0 for continuous."""
    words = {AVAILABLE_NOW: None, CONTINUOUS: 0}
    if isinstance(value, str) and value in words:
        return words[value]
    if isinstance(value, str) and (near := did_you_mean(value.replace("_", "-"), words)):
        raise _Wrong(f"{value!r} is not known; expected {key.kind.value}{near}")
    return _duration(value, key)


def _function(value: object, key: Key) -> Callable[..., Any]:
    if not callable(value):
        raise _Wrong(f"expected {ValueKind.FUNCTION.value}, which only a plan in Python can have")
    return value


def _shown(value: object) -> str:
    """A value as in the file, shortened."""
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


_CHECKS: dict[ValueKind, Callable[[object, Key], object]] = {
    ValueKind.TEXT: _text,
    ValueKind.TEXTS: _texts,
    ValueKind.INTEGER: _integer,
    ValueKind.FLAG: _flag,
    ValueKind.DURATION: _duration,
    ValueKind.TRIGGER: _trigger,
    ValueKind.FUNCTION: _function,
}
assert set(_CHECKS) == set(ValueKind) - {ValueKind.TABLE, ValueKind.OPTIONS}


def read_named(
    document: Document, top: str, keys: Keys, diagnostics: list[Diagnostic]
) -> Iterable[Section]:
    """`[sources.orders]`, `[sources.clicks]`: a section for each, in the order of the file."""
    for (first, *rest), entry in document.values.items():
        if first == top and len(rest) == 1:
            diagnostics.append(
                Diagnostic(
                    line=entry.line,
                    key=f"{top}.{rest[0]}",
                    text=f"is not in a named table; expected it below [{top}.NAME]",
                )
            )
    for name in document.names_below(top):
        yield read_section(document, (top, name), keys, diagnostics)
