"""SQL split into words, names, strings and symbols as in Spark; comments are left out."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from tidelog.core.model.exceptions import TidelogError

Kind = Literal["word", "name", "text", "number", "symbol"]

_SPACE = re.compile(r"\s+")
_LINE_COMMENT = re.compile(r"--[^\n]*")
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_WORD = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[a-zA-Z]*")
_NAME = re.compile(r"`(?:[^`]|``)*`")
_SYMBOL = re.compile(r"<=>|\|>|\|\||->|=>|::|<>|!=|==|<=|>=|<<|>>|.", re.DOTALL)
_TEXT = {
    "'": re.compile(r"'(?:[^'\\]|\\.)*'", re.DOTALL),
    '"': re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL),
}
_RAW_TEXT = {"'": re.compile(r"'[^']*'"), '"': re.compile(r'"[^"]*"')}


class Token(NamedTuple):
    """A piece of SQL; `line` counts from 0. A word is as written, a name without its quotes."""

    kind: Kind
    text: str
    line: int

    def is_word(self, *words: str) -> bool:
        """Words are the same in either case."""
        return self.kind == "word" and self.text.upper() in words

    def is_symbol(self, symbol: str) -> bool:
        return self.kind == "symbol" and self.text == symbol


class BadSql(TidelogError, ValueError):
    """The text cannot be a query; with the line, counted from 0."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line


def tokens_of(sql: str) -> list[Token]:
    """BadSql for a string, name or comment that is never closed."""
    found: list[Token] = []
    at, line = 0, 0
    while at < len(sql):
        end = _after_space(sql, at, line)
        if end == at:
            kind, text, end = _piece(sql, at, line)
            found.append(Token(kind, text, line))
        line += sql.count("\n", at, end)
        at = end
    return found


def _after_space(sql: str, at: int, line: int) -> int:
    """The position after blanks or a comment that begins here."""
    space = _SPACE.match(sql, at) or _LINE_COMMENT.match(sql, at)
    if space is not None:
        return space.end()
    return _after_comment(sql, at, line) if sql.startswith("/*", at) else at


def _after_comment(sql: str, start: int, line: int) -> int:
    """Bracketed comments may contain others."""
    depth, at = 1, start + 2
    while depth:
        edge = _COMMENT_EDGE.search(sql, at)
        if edge is None:
            raise BadSql(line, "the comment that begins here with /* is never closed")
        depth += 1 if edge[0] == "/*" else -1
        at = edge.end()
    return at


def _piece(sql: str, at: int, line: int) -> tuple[Kind, str, int]:
    first = sql[at]
    if first in "rR" and sql[at + 1 : at + 2] in _RAW_TEXT:
        return _text(_RAW_TEXT[sql[at + 1]], sql, at + 1, line)
    if first in _TEXT:
        return _text(_TEXT[first], sql, at, line)
    if first == "`":
        name = _NAME.match(sql, at)
        if name is None:
            raise BadSql(line, "the name that begins here with ` is never closed")
        return "name", name[0][1:-1].replace("``", "`"), name.end()
    word = _WORD.match(sql, at)
    if word is not None:
        return "word", word[0], word.end()
    number = _NUMBER.match(sql, at)
    if number is not None:
        return "number", number[0], number.end()
    symbol = _SYMBOL.match(sql, at)
    assert symbol is not None
    return "symbol", symbol[0], symbol.end()


def _text(form: re.Pattern[str], sql: str, at: int, line: int) -> tuple[Kind, str, int]:
    found = form.match(sql, at)
    if found is None:
        raise BadSql(line, f"the string that begins here with {sql[at]} is never closed")
    return "text", found[0], found.end()
