"""Where the runs of an acks journal begin and end, found in one pass without reading its entries.

A journal is a file of JSON lines (docs/command-line.md): a line that begins a run, a line for each
outcome, a line that ends it. Files are appended to, so one may hold several runs. A run without its
end, or with fewer lines than its end counts, is *cut*: what it was told is true as far as it goes,
and the topic may hold more of it. Entries are left to tasks: the pass only counts their lines and
cuts the file into slices, each of one run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from tidelog.spark.audit.errors import AuditRefused

FORMAT = "tidelog-acks"
VERSION = 1
SLICE_BYTES = 32 * 1024 * 1024
_BEGINS = b'{"journal"'
_ENDS = b'{"end"'
_SHOWN_CHARACTERS = 60


class JournalSlice(NamedTuple):
    """Whole lines of one run: entries only."""

    path: str
    run: int
    start_position: int
    end_position: int
    first_line: int
    """Its number in the file, counted from 1."""


@dataclass(slots=True, kw_only=True)
class JournalRun:
    """One producer's run, as its first line names it."""

    index: int
    path: str
    line: int
    name: str
    topic: str
    topic_id: str | None
    acks: str
    is_idempotent: bool
    is_transactional: bool
    began_ms: int | None
    began_us: int | None
    """The monotonic clock of its entries at `began_ms`; older journals do not say."""
    cut: str | None = "it has no last line"
    """Why it may have written more than it says; None: it is whole."""
    is_mixed: bool = False
    """It has more lines than outcomes: another producer wrote into it at the same time."""
    entries: int = 0
    slices: list[JournalSlice] = field(default_factory=list)

    @property
    def is_cut(self) -> bool:
        return self.cut is not None


def index_journals(paths: list[Path], *, slice_bytes: int = SLICE_BYTES) -> list[JournalRun]:
    """Every run of these files, numbered over all of them. AuditRefused names file and line."""
    runs: list[JournalRun] = []
    for path in paths:
        _Indexing(path, runs, slice_bytes).index()
    return runs


class _Indexing:
    def __init__(self, path: Path, runs: list[JournalRun], slice_bytes: int) -> None:
        self._path = path
        self._runs = runs
        self._slice_bytes = slice_bytes
        self._open: JournalRun | None = None
        self._line = 1
        self._has_any = False

    def index(self) -> None:
        try:
            with self._path.open("rb") as file:
                for position, block in _blocks(file, self._slice_bytes):
                    self._has_any = True
                    self._take(position, block)
        except OSError as error:
            raise AuditRefused(f"{self._path} cannot be read: {error.strerror}") from None
        if not self._has_any:
            raise AuditRefused(f"{self._path} is empty: not even a run's first line")

    def _take(self, position: int, block: bytes) -> None:
        """One block of whole lines: special lines cut it into slices of entries."""
        at = 0
        for start, end in _special_lines(block):
            self._entries(position + at, block[at:start])
            line = block[start:end]
            if not line.endswith(b"\n") and not _is_json(line):
                self._be_cut_within(line, line=self._line)
            elif line.startswith(_BEGINS):
                self._has_begun(line)
            else:
                self._has_ended(line)
            self._line += 1
            at = end
        self._entries(position + at, block[at:])

    def _entries(self, position: int, lines: bytes) -> None:
        if not lines:
            return
        if self._open is None:
            if not lines.isspace():
                strange = _strange(lines, is_first=not self._runs_here())
                raise self._refusal(self._line, strange)
            self._line += lines.count(b"\n")
            return
        torn = lines.rfind(b"\n") + 1
        if torn < len(lines):  # its writer was ended while it wrote; a later one may go on there
            self._be_cut_within(lines[torn:], line=self._line + lines.count(b"\n"))
            lines = lines[:torn]
        count = lines.count(b"\n")
        if count == 0:
            return
        end = position + len(lines)
        self._open.slices.append(
            JournalSlice(str(self._path), self._open.index, position, end, self._line)
        )
        self._open.entries += count
        self._line += count

    def _be_cut_within(self, torn: bytes, *, line: int) -> None:
        if self._open is None:
            if torn.startswith(_BEGINS):
                return  # a run that never began
            raise self._refusal(line, _strange(torn, is_first=not self._runs_here()))
        self._open.cut = f"line {line} is cut"

    def _has_begun(self, line: bytes) -> None:
        fields = self._parsed(line)
        if fields.get("journal") != FORMAT:
            raise self._refusal(
                self._line, f"a journal of {fields.get('journal')!r}, not {FORMAT!r}"
            )
        if fields.get("version") != VERSION:
            raise self._refusal(
                self._line, f"version {fields.get('version')!r}; this release knows {VERSION}"
            )
        try:
            run = _run(fields, index=len(self._runs), path=str(self._path), line=self._line)
        except (KeyError, TypeError, ValueError) as error:
            raise self._refusal(self._line, f"a first line of a run without {error}") from None
        self._runs.append(run)
        self._open = run

    def _has_ended(self, line: bytes) -> None:
        if self._open is None:
            raise self._refusal(
                self._line,
                "a run ends that has not begun: did two producers write one journal at a time?",
            )
        counts: Any = self._parsed(line).get("end")
        try:
            outcomes = sum([int(counts[word]) for word in ("ok", "refused", "unknown")])
        except (KeyError, TypeError, ValueError):
            raise self._refusal(self._line, "a last line of a run without its counts") from None
        is_whole = outcomes == self._open.entries or self._open.is_transactional
        self._open.cut = (
            None if is_whole else f"it has {self._open.entries} lines for {outcomes} outcomes"
        )
        self._open.is_mixed = not is_whole and self._open.entries > outcomes
        self._open = None

    def _parsed(self, line: bytes) -> dict[str, Any]:
        try:
            fields = json.loads(line)
        except ValueError as error:
            raise self._refusal(self._line, f"no JSON ({error})") from None
        assert isinstance(fields, dict), "it begins with a brace"
        return fields

    def _runs_here(self) -> bool:
        return bool(self._runs) and self._runs[-1].path == str(self._path)

    def _refusal(self, line: int, reason: str) -> AuditRefused:
        return AuditRefused(f"{self._path}:{line}: {reason}")


def _run(fields: dict[str, Any], *, index: int, path: str, line: int) -> JournalRun:
    acks = str(fields["acks"])
    return JournalRun(
        index=index,
        path=path,
        line=line,
        name=str(fields["run"]),
        topic=str(fields["topic"]),
        topic_id=fields.get("topic_id"),
        acks="all" if acks == "-1" else acks,
        is_idempotent=bool(fields["idempotence"]),
        is_transactional=fields.get("transactional_id") is not None,
        began_ms=fields.get("began_ms"),
        began_us=fields.get("began_us"),
    )


def _blocks(file: BinaryIO, size_bytes: int) -> Iterator[tuple[int, bytes]]:
    """The file in pieces that end with a line; the position of each."""
    position = 0
    while block := file.read(size_bytes):
        if not block.endswith(b"\n"):
            block += file.readline()
        yield position, block
        position += len(block)


def _special_lines(block: bytes) -> list[tuple[int, int]]:
    """Start and end of each line that begins or ends a run, in order.

    A run may begin behind a line that was never finished. In a string of JSON its first characters
    would be escaped, so they mean what they say wherever they stand.
    """
    starts = list(_positions(block, _BEGINS))
    starts += [at + 1 for at in _positions(block, b"\n" + _ENDS)]
    starts += [0] if block.startswith(_ENDS) else []
    found = []
    for start in sorted(starts):
        end = block.find(b"\n", start) + 1
        found.append((start, end or len(block)))
    return found


def _positions(block: bytes, word: bytes) -> Iterator[int]:
    at = block.find(word)
    while at >= 0:
        yield at
        at = block.find(word, at + 1)


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _strange(lines: bytes, *, is_first: bool) -> str:
    text = lines.split(b"\n", 1)[0][:_SHOWN_CHARACTERS].decode(errors="replace")
    if is_first:
        return f"no acks journal: it begins with {text!r}, not with {_BEGINS.decode()!r}"
    return f"an entry behind the end of its run: {text!r}"
