"""Regular expressions over names, matched in time that grows with the name only.

Clients write these, so no expression may hold a coordinator: Python's `re` backtracks, and a few
characters can keep it busy for hours. Here an expression becomes a small automaton that looks at
every character once. The syntax is RE2's, which Kafka uses: no back-references, no look-around. A
name must match as a whole. Only the characters that names have count, so every class is a small
set: of topic names at most 65, of transactional ids those that occur.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from string import ascii_letters, digits
from typing import Final

from tidelog.core.groups.regex_syntax import (
    ALPHABET,
    Alternation,
    Assertion,
    AssertionKind,
    Characters,
    Concatenation,
    InvalidRegex,
    Node,
    Repetition,
    parse_regex,
)

INSTRUCTIONS_MAX: Final = 1_000
"""Of one automaton; bounds the work for one character."""
TRANSITIONS_MAX: Final = 2_000
"""Remembered of one automaton; beyond, it forgets all and begins anew."""

_WORD: Final = frozenset(ascii_letters + digits + "_")


@dataclass(slots=True)
class _Instruction:
    """Takes one of `characters`, or goes on at once to all of `targets` if `assertion` holds."""

    characters: frozenset[str] | None = None
    assertion: AssertionKind | None = None
    targets: tuple[int, ...] = ()


State = tuple[frozenset[int], str]
"""Where the automaton may be, and the last character; "" at the beginning."""


class TopicRegex:
    """One expression. `step` through a name from `start`, then ask whether it `accepts`."""

    def __init__(self, pattern: str, alphabet: frozenset[str] = ALPHABET) -> None:
        self.pattern = pattern
        self._program: list[_Instruction] = []
        accept = self._emit(_Instruction())
        self._accept = accept
        entry = self._compile(parse_regex(pattern, alphabet), accept)
        self.start: State = (frozenset((entry,)), "")
        self._transitions: dict[tuple[State, str], State] = {}
        self.work = len(self._program)
        """What was done so far, in looks at instructions."""

    def matches(self, name: str) -> bool:
        """A whole name at once."""
        state = self.start
        for character in name:
            state = self.step(state, character)
        return self.accepts(state)

    def step(self, state: State, character: str) -> State:
        """The state after one more character."""
        self.work += 1
        after = self._transitions.get((state, character))
        if after is None:
            after = (frozenset(self._taken(state, character)), character)
            if len(self._transitions) >= TRANSITIONS_MAX:
                self._transitions.clear()
            self._transitions[state, character] = after
        return after

    def accepts(self, state: State) -> bool:
        return self._accept in self._reached(state, "")

    def _taken(self, state: State, character: str) -> Iterator[int]:
        for position in self._reached(state, character):
            instruction = self._program[position]
            if instruction.characters is not None and character in instruction.characters:
                yield from instruction.targets

    def _reached(self, state: State, following: str) -> set[int]:
        """All positions that need no character; `following` is empty at the end of the name."""
        positions, last = state
        reached = set(positions)
        left = list(positions)
        while left:
            instruction = self._program[left.pop()]
            if instruction.characters is not None:
                continue
            if instruction.assertion is None or _holds(instruction.assertion, last, following):
                fresh = [each for each in instruction.targets if each not in reached]
                reached.update(fresh)
                left += fresh
        self.work += len(reached)
        return reached

    # Compilation: each node is compiled before what follows it, so `then` is known.

    def _emit(self, instruction: _Instruction) -> int:
        if len(self._program) >= INSTRUCTIONS_MAX:
            raise InvalidRegex("expression too large")
        self._program.append(instruction)
        return len(self._program) - 1

    def _compile(self, node: Node, then: int) -> int:
        """The position at which the node begins if it goes on at `then`."""
        if isinstance(node, Characters):
            return self._emit(_Instruction(characters=node.allowed, targets=(then,)))
        if isinstance(node, Assertion):
            return self._emit(_Instruction(assertion=node.kind, targets=(then,)))
        if isinstance(node, Concatenation):
            for part in reversed(node.parts):
                then = self._compile(part, then)
            return then
        if isinstance(node, Alternation):
            entries = tuple(self._compile(each, then) for each in node.choices)
            return self._emit(_Instruction(targets=entries))
        return self._compile_repetition(node, then)

    def _compile_repetition(self, node: Repetition, then: int) -> int:
        if node.at_most is None:
            again = self._emit(_Instruction())
            entry = self._compile(node.part, again)
            self._program[again].targets = (entry, then)
            then = again
        else:
            end = then
            for _ in range(node.at_most - node.at_least):
                entry = self._compile(node.part, then)
                then = self._emit(_Instruction(targets=(entry, end)))
        for _ in range(node.at_least):
            entry = self._compile(node.part, then)
            if entry == then:  # it takes nothing, however often
                break
            then = entry
        return then


class AnyNameRegex:
    """One expression over names with any characters; it is compiled again when new ones occur."""

    def __init__(self, pattern: str) -> None:
        self._alphabet = ALPHABET
        self._regex = TopicRegex(pattern)

    def matches(self, name: str) -> bool:
        if not self._alphabet.issuperset(name):
            self._alphabet |= frozenset(name)
            self._regex = TopicRegex(self._regex.pattern, self._alphabet)
        return self._regex.matches(name)


def _holds(kind: AssertionKind, last: str, following: str) -> bool:
    if kind is AssertionKind.BEGINNING:
        return not last
    if kind is AssertionKind.END:
        return not following
    at_boundary = (last in _WORD) != (following in _WORD)
    return at_boundary == (kind is AssertionKind.WORD_BOUNDARY)
