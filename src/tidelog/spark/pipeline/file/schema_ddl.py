"""A schema in Spark's DDL, `order_id STRING NOT NULL, amount INT`, parsed without Spark.

Each column is read on its own, so one mistake does not hide the next. A full parser was tried
(sqlglot 30.30): it refuses VOID and `amount: DECIMAL(12, 2)`, reads TIME as TIMESTAMP, and accepts
DECIMAL(50) and MAP<INT>.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from tidelog.core.model.exceptions import TidelogError
from tidelog.spark.pipeline.file.diagnostics import did_you_mean

_TOKEN = re.compile(
    r"""(?P<space>\s+)|(?P<word>[^\W\d]\w*)|(?P<quoted>`(?:[^`]|``)*`)|(?P<number>\d+)"""
    r"""|(?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*")|(?P<symbol>[<>(),:])""",
    re.VERBOSE,
)
_PLAIN_NAMES = """
    boolean tinyint byte smallint short int integer bigint long float real double date timestamp
    timestamp_ntz timestamp_ltz string binary void variant
"""
_PLAIN = tuple(_PLAIN_NAMES.split())
_MEASURED = {
    "decimal": 2,
    "dec": 2,
    "numeric": 2,
    "char": 1,
    "character": 1,
    "varchar": 1,
    "time": 1,
}
_MEASURE_NEEDED = ("char", "character", "varchar")
_NESTED = ("array", "map", "struct")
_INTERVAL_UNITS = ("year", "month", "day", "hour", "minute", "second")
_KNOWN = (*_PLAIN, *_MEASURED, *_NESTED, "interval")
_DECIMAL_DIGITS_MAX = 38


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaColumn:
    """One column: its name without quotes, its type in Spark's words, whether it is NOT NULL."""

    name: str
    type: str
    is_required: bool

    @property
    def quoted_name(self) -> str:
        return "`" + self.name.replace("`", "``") + "`"


class Mistake(NamedTuple):
    """The line, counted from 0, and the message."""

    line: int
    text: str


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


class _Bad(TidelogError):
    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.mistake = Mistake(line, text)


def read_ddl(text: str) -> tuple[list[SchemaColumn], list[Mistake]]:
    """The valid columns, and the mistakes in the others."""
    try:
        tokens = _tokens(text)
    except _Bad as bad:
        return [], [bad.mistake]
    if not tokens:
        return [], [Mistake(0, "is empty; expected columns like 'order_id STRING, amount INT'")]
    columns: list[SchemaColumn] = []
    mistakes: list[Mistake] = []
    names: set[str] = set()
    for part, line in _parts(tokens):
        try:
            column = _Parser(part, line).column()
        except _Bad as bad:
            mistakes.append(bad.mistake)
            continue
        if column.name.lower() in names:
            mistakes.append(Mistake(part[0].line, f"there are two columns {column.name!r}"))
        names.add(column.name.lower())
        columns.append(column)
    return columns, mistakes


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at, line = 0, 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise _Bad(line, f"{text[at : at + 10]!r} is not understood in a schema")
        if found.lastgroup != "space":
            assert found.lastgroup is not None
            tokens.append(_Token(found.lastgroup, found[0], line))
        line += found[0].count("\n")
        at = found.end()
    return tokens


def _parts(tokens: list[_Token]) -> list[tuple[list[_Token], int]]:
    """The parts between commas outside of brackets; each with its last line."""
    parts: list[tuple[list[_Token], int]] = []
    current: list[_Token] = []
    depth = 0
    for token in tokens:
        depth += (token.text in ("<", "(")) - (token.text in (">", ")"))
        if token.text == "," and depth <= 0:
            parts.append((current, token.line))
            current = []
        else:
            current.append(token)
    return [*parts, (current, tokens[-1].line)]


class _Parser:
    """Reads one column from left to right."""

    def __init__(self, tokens: list[_Token], line: int) -> None:
        self._tokens = tokens
        self._line = line
        self._at = 0

    def column(self) -> SchemaColumn:
        if not self._tokens:
            raise _Bad(self._line, "a column is missing between two commas or after the last one")
        name = self._name("a column's name")
        self._skip(":")
        kind = self._type(name)
        is_required = self._endings(name)
        if self._at < len(self._tokens):
            raise _Bad(
                self._tokens[self._at].line,
                f"column {name!r}: {self._tokens[self._at].text!r} is not understood after"
                f" {kind}; expected a comma, NOT NULL or COMMENT 'text'",
            )
        return SchemaColumn(name=name, type=kind, is_required=is_required)

    def _type(self, column: str) -> str:
        token = self._next(f"column {column!r} has no type; expected one like STRING")
        kind = token.text.lower()
        if token.kind != "word" or kind not in _KNOWN:
            near = did_you_mean(kind, _KNOWN)
            raise _Bad(token.line, f"column {column!r}: {token.text!r} is not a Spark type{near}")
        if kind == "array":
            self._expect("<", column, kind)
            inside = self._type(column)
            self._expect(">", column, kind)
            return f"ARRAY<{inside}>"
        if kind == "map":
            self._expect("<", column, kind)
            key = self._type(column)
            self._expect(",", column, kind)
            value = self._type(column)
            self._expect(">", column, kind)
            return f"MAP<{key}, {value}>"
        if kind == "struct":
            return self._struct(column)
        if kind == "interval":
            return self._interval()
        if kind in _MEASURED:
            return kind.upper() + self._measures(kind, column, token.line)
        return kind.upper()

    def _struct(self, column: str) -> str:
        self._expect("<", column, "struct")
        fields: list[str] = []
        while not self._skip(">"):
            if fields:
                self._expect(",", column, "struct")
            name = self._name(f"a field's name in struct {column!r}")
            self._skip(":")
            kind = self._type(f"{column}.{name}")
            if self._endings(f"{column}.{name}"):
                message = f"field {column}.{name}: NOT NULL is only checked for whole columns"
                raise _Bad(self._tokens[self._at - 1].line, message)
            fields.append(f"`{name.replace('`', '``')}`: {kind}")
        return f"STRUCT<{', '.join(fields)}>"

    def _interval(self) -> str:
        words = ["INTERVAL"]
        while self._peek() in (*_INTERVAL_UNITS, "to"):
            words.append(self._next("").text.upper())
        return " ".join(words)

    def _measures(self, kind: str, column: str, line: int) -> str:
        if not self._skip("("):
            if kind in _MEASURE_NEEDED:
                raise _Bad(line, f"column {column!r}: {kind.upper()} needs a length: {kind}(10)")
            return ""
        numbers: list[int] = []
        while not self._skip(")"):
            if numbers:
                self._expect(",", column, kind)
            token = self._next(f"column {column!r}: {kind.upper()}( is not closed")
            if token.kind != "number":
                raise _Bad(token.line, f"column {column!r}: {token.text!r} is not a number")
            numbers.append(int(token.text))
        if not 1 <= len(numbers) <= _MEASURED[kind]:
            raise _Bad(
                line, f"column {column!r}: {kind.upper()} does not take {len(numbers)} numbers"
            )
        if _MEASURED[kind] == 2 and (
            not 1 <= numbers[0] <= _DECIMAL_DIGITS_MAX or numbers[-1] > numbers[0]
        ):
            raise _Bad(line, f"column {column!r}: a decimal has 1 to 38 digits in total")
        return "(" + ", ".join(map(str, numbers)) + ")"

    def _endings(self, column: str) -> bool:
        """NOT NULL, COMMENT 'text' and COLLATE name, in any order."""
        is_required = False
        while (word := self._peek()) in ("not", "comment", "collate"):
            token = self._next("")
            if word == "not":
                if self._peek() != "null":
                    raise _Bad(token.line, f"column {column!r}: expected NULL after NOT")
                self._at += 1
                is_required = True
            elif word == "comment":
                if self._next(f"column {column!r}: COMMENT needs a string").kind != "text":
                    raise _Bad(token.line, f"column {column!r}: COMMENT needs a string in quotes")
            else:
                self._name(f"a collation for column {column!r}")
        return is_required

    def _name(self, what: str) -> str:
        token = self._next(f"{what} is missing")
        if token.kind == "quoted":
            return token.text[1:-1].replace("``", "`")
        if token.kind != "word":
            raise _Bad(token.line, f"expected {what}, not {token.text!r}")
        return token.text

    def _next(self, message: str) -> _Token:
        if self._at == len(self._tokens):
            raise _Bad(self._line, message)
        self._at += 1
        return self._tokens[self._at - 1]

    def _peek(self) -> str | None:
        return self._tokens[self._at].text.lower() if self._at < len(self._tokens) else None

    def _skip(self, symbol: str) -> bool:
        found = self._peek() == symbol
        self._at += found
        return found

    def _expect(self, symbol: str, column: str, kind: str) -> None:
        message = f"column {column!r}: {kind.upper()} needs {symbol!r} here"
        token = self._next(message)
        if token.text != symbol:
            raise _Bad(token.line, f"{message}, not {token.text!r}")
