"""RE2's syntax, as a tree over the characters that names can have."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from string import (
    ascii_letters,
    ascii_lowercase,
    ascii_uppercase,
    digits,
    hexdigits,
    punctuation,
)
from typing import Final, NoReturn
from unicodedata import category
from unicodedata import name as character_name

from tidelog.core.model.exceptions import TidelogError

ALPHABET: Final = frozenset(ascii_letters + digits + "._-")
"""All characters that a topic name may have."""
PATTERN_LENGTH_MAX: Final = 4_096
REPETITIONS_MAX: Final = 1_000
"""RE2's limit."""
DEPTH_MAX: Final = 50
"""Groups within groups."""


class InvalidRegex(TidelogError):
    """The expression is not one; the message says why, in RE2's words where it has any."""


class AssertionKind(Enum):
    """What may be demanded of a place between characters."""

    BEGINNING = "beginning"
    END = "end"
    WORD_BOUNDARY = "word boundary"
    NO_WORD_BOUNDARY = "no word boundary"


@dataclass(frozen=True, slots=True)
class Characters:
    """One character of these."""

    allowed: frozenset[str]


@dataclass(frozen=True, slots=True)
class Assertion:
    """No character."""

    kind: AssertionKind


@dataclass(frozen=True, slots=True)
class Concatenation:
    """One after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """One of them."""

    choices: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    """Again and again; `at_most` None: without end."""

    part: Node
    at_least: int
    at_most: int | None


Node = Characters | Assertion | Concatenation | Alternation | Repetition

_PERL: Final = {
    "d": frozenset(digits),
    "w": frozenset(ascii_letters + digits + "_"),
    "s": frozenset("\t\n\f\r "),
}
_PRINTED: Final = frozenset(ascii_letters + digits + punctuation)
_POSIX: Final = {
    "alnum": frozenset(ascii_letters + digits),
    "alpha": frozenset(ascii_letters),
    "ascii": frozenset(map(chr, range(128))),
    "blank": frozenset("\t "),
    "cntrl": frozenset(map(chr, (*range(32), 127))),
    "digit": frozenset(digits),
    "graph": _PRINTED,
    "lower": frozenset(ascii_lowercase),
    "print": _PRINTED | {" "},
    "punct": frozenset(punctuation),
    "space": frozenset("\t\n\v\f\r "),
    "upper": frozenset(ascii_uppercase),
    "word": _PERL["w"],
    "xdigit": frozenset(hexdigits),
}
_ASSERTIONS: Final = {
    "^": AssertionKind.BEGINNING,
    "$": AssertionKind.END,
    "A": AssertionKind.BEGINNING,
    "z": AssertionKind.END,
    "b": AssertionKind.WORD_BOUNDARY,
    "B": AssertionKind.NO_WORD_BOUNDARY,
}
_CONTROLS: Final = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
_REPEAT: Final = re.compile(r"\{([0-9]{1,9})(,([0-9]{1,9})?)?\}")
_POSIX_CLASS: Final = re.compile(r"\[:(\^?)([a-z]+):\]")
_PROPERTY: Final = re.compile(r"\\([pP])(?:([A-Za-z])|\{(\^?)([A-Za-z_]+)\})")
_HEX: Final = re.compile(r"\\x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,6})\})")
_OCTAL: Final = re.compile(r"\\([1-7][0-7]{1,2}|0[0-7]{0,2})")
_GROUP: Final = re.compile(r"\(\?(?:P?<([A-Za-z0-9_]+)>|([imsU]*)(-[imsU]+)?([:)]))")


def parse_regex(pattern: str, alphabet: frozenset[str] = ALPHABET) -> Node:
    """The tree of an expression, over names that have no other characters than these."""
    if len(pattern) > PATTERN_LENGTH_MAX:
        raise InvalidRegex("expression too large")
    return _Parser(pattern, alphabet).parse()


class _Parser:
    """Reads from left to right. `_at` is the next character, `_flags` are those in force."""

    def __init__(self, pattern: str, alphabet: frozenset[str]) -> None:
        self._pattern = pattern
        self._alphabet = alphabet
        self._at = 0
        self._depth = 0
        self._flags: frozenset[str] = frozenset()
        self._names: set[str] = set()

    def parse(self) -> Node:
        node = self._alternation()
        if self._at < len(self._pattern):
            self._refuse("unexpected )")
        return node

    @property
    def _next(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _refuse(self, why: str) -> NoReturn:
        raise InvalidRegex(f"{why}: `{self._pattern}`")

    def _take(self, wanted: re.Pattern[str]) -> re.Match[str] | None:
        found = wanted.match(self._pattern, self._at)
        if found is not None:
            self._at = found.end()
        return found

    def _alternation(self) -> Node:
        choices = [self._concatenation()]
        while self._next == "|":
            self._at += 1
            choices.append(self._concatenation())
        return choices[0] if len(choices) == 1 else Alternation(tuple(choices))

    def _concatenation(self) -> Node:
        parts: list[Node] = []
        while self._next not in ("", "|", ")"):
            if self._pattern.startswith("\\Q", self._at):
                quoted = self._quoted()
                parts += quoted[:-1] + [self._repeated(last) for last in quoted[-1:]]
                continue
            node = self._atom()
            if node is not None:
                parts.append(self._repeated(node))
        return Concatenation(tuple(parts))

    def _quoted(self) -> list[Node]:
        end = self._pattern.find("\\E", self._at)
        text = self._pattern[self._at + 2 : end if end >= 0 else None]
        self._at = end + 2 if end >= 0 else len(self._pattern)
        return [self._literal(character) for character in text]

    def _repeated(self, node: Node) -> Node:
        """All repetitions that follow, of which a second one has to be one of laziness."""
        is_repeated = False
        while True:
            bounds = self._bounds()
            if bounds is None:
                return node
            if is_repeated:
                self._refuse("invalid nested repetition operator")
            is_repeated = True
            at_least, at_most = bounds
            if max(at_least, at_most or 0) > REPETITIONS_MAX:
                self._refuse("invalid repeat count")
            if at_most is not None and at_most < at_least:
                self._refuse("invalid repeat count")
            if self._next == "?":  # lazy: the same names match
                self._at += 1
            node = Repetition(node, at_least, at_most)

    def _bounds(self) -> tuple[int, int | None] | None:
        simple = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(self._next)
        if simple is not None:
            self._at += 1
            return simple
        found = self._take(_REPEAT)
        if found is None:
            return None
        least = int(found[1])
        return least, (int(found[3]) if found[3] else None) if found[2] else least

    def _atom(self) -> Node | None:
        """None: flags, which are no part of a name."""
        character = self._next
        if character == "(":
            return self._group()
        if character == "[":
            return Characters(self._class())
        if character in "*+?":
            self._refuse("missing argument to repetition operator")
        if character == "\\":
            return self._escape()
        self._at += 1
        if character in _ASSERTIONS and character in "^$":
            return Assertion(_ASSERTIONS[character])
        if character != ".":
            return self._literal(character)
        return Characters(self._alphabet if "s" in self._flags else self._alphabet - {"\n"})

    def _literal(self, character: str) -> Characters:
        return Characters(self._folded({character}))

    def _folded(self, characters: set[str] | frozenset[str]) -> frozenset[str]:
        if "i" in self._flags:
            characters = {form for it in characters for form in (it.lower(), it.upper())}
        return self._alphabet & characters

    def _group(self) -> Node | None:
        before = self._flags
        if not self._pattern.startswith("(?", self._at):
            self._at += 1
        else:
            found = self._take(_GROUP)
            if found is None:
                self._refuse("invalid or unsupported Perl syntax")
            if found[1] is not None:
                if found[1] in self._names:
                    self._refuse("duplicate capture group name")
                self._names.add(found[1])
            else:
                self._flags = (before | {*found[2]}) - {*(found[3] or "")}
                if found[4] == ")":
                    return None
        self._depth += 1
        if self._depth > DEPTH_MAX:
            self._refuse("expression nests too deeply")
        node = self._alternation()
        if self._next != ")":
            self._refuse("missing closing )")
        self._at += 1
        self._depth -= 1
        self._flags = before
        return node

    def _escape(self) -> Node:
        letter = self._pattern[self._at + 1 : self._at + 2]
        if letter in _ASSERTIONS and letter.isalpha():
            self._at += 2
            return Assertion(_ASSERTIONS[letter])
        return Characters(self._class_escape())

    def _class_escape(self) -> frozenset[str]:
        """What stands after a backslash, in a class or outside."""
        letter = self._pattern[self._at + 1 : self._at + 2]
        if not letter:
            self._refuse("trailing backslash at end of expression")
        if letter.lower() in _PERL:
            self._at += 2
            allowed = _PERL[letter.lower()]
            return self._alphabet & allowed if letter.islower() else self._alphabet - allowed
        if letter == "C":
            self._at += 2
            return self._alphabet
        if (found := self._take(_PROPERTY)) is not None:
            return self._property(found)
        return self._folded({self._escaped_character(letter)})

    def _property(self, found: re.Match[str]) -> frozenset[str]:
        name = found[2] or found[4]
        known = {category(each) for each in map(chr, range(0x250))} | {"Latin", "Greek", "Any"}
        if name not in known | {each[0] for each in known if len(each) == 2}:
            self._refuse("invalid character class range")
        if name == "Any":
            allowed = self._alphabet
        elif name in ("Latin", "Greek"):
            prefix = f"{name.upper()} "
            allowed = frozenset(
                each for each in self._alphabet if character_name(each, "").startswith(prefix)
            )
        else:
            allowed = frozenset(each for each in self._alphabet if category(each).startswith(name))
        is_negated = (found[1] == "P") != bool(found[3])
        return self._alphabet - allowed if is_negated else allowed

    def _escaped_character(self, letter: str) -> str:
        if (found := self._take(_HEX)) is not None:
            code = int(found[1] or found[2], 16)
            return chr(code) if code < 0x110000 else self._refuse("invalid escape sequence")
        if (found := self._take(_OCTAL)) is not None:
            return chr(int(found[1], 8))
        self._at += 2
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter.isalnum() and letter.isascii():
            self._refuse("invalid escape sequence")
        return letter

    def _class(self) -> frozenset[str]:
        self._at += 1
        is_negated = self._next == "^"
        self._at += is_negated
        allowed: set[str] = set()
        is_first = True
        while is_first or self._next != "]":
            if not self._next:
                self._refuse("missing closing ]")
            is_first = False
            allowed |= self._class_item()
        self._at += 1
        return self._alphabet - allowed if is_negated else self._alphabet & allowed

    def _class_item(self) -> frozenset[str]:
        """A named class, an escaped one, a character or a range."""
        if (found := self._take(_POSIX_CLASS)) is not None:
            if found[2] not in _POSIX:
                self._refuse("invalid character class range")
            named = _POSIX[found[2]]
            return self._alphabet - named if found[1] else self._alphabet & named
        letter = self._pattern[self._at + 1 : self._at + 2]
        if self._next == "\\" and letter.lower() in (*_PERL, "p"):
            return self._class_escape()
        low = self._class_character()
        is_range = self._next == "-" and self._pattern[self._at + 1 : self._at + 2] not in ("]", "")
        if not is_range:
            return self._folded({low})
        self._at += 1
        high = self._class_character()
        if high < low:
            self._refuse("invalid character class range")
        forms = {form for it in self._alphabet for form in (it, it.lower(), it.upper())}
        return self._folded({each for each in forms if low <= each <= high})

    def _class_character(self) -> str:
        if self._next == "\\":
            letter = self._pattern[self._at + 1 : self._at + 2]
            if not letter:
                self._refuse("trailing backslash at end of expression")
            return self._escaped_character(letter)
        self._at += 1
        return self._pattern[self._at - 1]
