"""Compares what the simulator does before and after a change that may only have changed words.

    ./dev python -m tests.tidy.compare_traces record --profile replication --seeds 200 BEFORE
    (change the code)
    ./dev python -m tests.tidy.compare_traces record --profile replication --seeds 200 AFTER
    ./dev python -m tests.tidy.compare_traces compare BEFORE AFTER

Two traces are the same but for renamed words if they have as many lines, every number and every
sign is equal, and each name or text of the first is always the same name or text in the second.
What was renamed is printed, so that a reader sees whether these are renamings. An exit code of 1
says that something else than words has changed.
"""

from __future__ import annotations

import argparse
import gzip
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

TOKEN = re.compile(
    r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|0x[0-9a-f]+|\d+(?:\.\d+)?|[A-Za-z_]\w*|\S"
)
NUMBER = re.compile(r"\d+")
MEASURED = re.compile(
    r"\(?[\d,.]+ (?:elections )?per CPU-second\)?|[\d.]+ CPU-seconds?|^digest .*", re.M
)
"""The report says how long the run took, and a digest of all its words."""
DIFFERENCES_SHOWN = 20


def record(profile: str, first: int, count: int, folder: Path) -> None:
    """Keep the trace of each seed as a file."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed in range(first, first + count):
        command = [sys.executable, "-m", "tidelog.worlds.simulator"]
        command += ["--profile", profile, "--replay", str(seed)]
        run = subprocess.run(command, capture_output=True, text=True)
        path = folder / f"{profile}-{seed}.txt.gz"
        path.write_bytes(gzip.compress(run.stdout.encode(), mtime=0))
    print(f"{count} seeds of {profile} from {first} on in {folder}")


def compare(before: Path, after: Path) -> int:
    """The exit code; what was renamed and what differs is printed."""
    renamed: dict[str, str] = {}
    wrong: list[str] = []
    names = sorted(path.name for path in before.glob("*.txt.gz"))
    for name in names:
        wrong += [
            f"{name}: {each}"
            for each in differences(_read(before / name), _read(after / name), renamed)
        ]
    changed = {old: new for old, new in renamed.items() if old != new}
    for old, new in sorted(changed.items()):
        print(f"{old} -> {new}")
    for line in wrong[:DIFFERENCES_SHOWN]:
        print(line)
    print(f"{len(names)} traces, {len(changed)} words renamed, {len(wrong)} differences")
    return 1 if wrong or not names else 0


def differences(before: str, after: str, renamed: dict[str, str]) -> Iterator[str]:
    """Where two traces differ by more than renamed words; `renamed` learns what was renamed."""
    old_lines, new_lines = before.splitlines(), after.splitlines()
    if len(old_lines) != len(new_lines):
        yield f"{len(old_lines)} lines, then {len(new_lines)}"
        return
    for number, (old_line, new_line) in enumerate(zip(old_lines, new_lines, strict=True), start=1):
        old, new = TOKEN.findall(old_line), TOKEN.findall(new_line)
        pairs = zip(old, new, strict=False)
        if len(old) != len(new) or not all(_is_renamed(*pair, renamed) for pair in pairs):
            yield f"line {number}: {old_line[:160]!r}, then {new_line[:160]!r}"


def _is_renamed(old: str, new: str, renamed: dict[str, str]) -> bool:
    """Whether one token became another as it did everywhere before."""
    if not (old[0].isalpha() or old[0] in "_'\""):
        return old == new
    key, value = NUMBER.sub("#", old), NUMBER.sub("#", new)
    is_equal = NUMBER.findall(old) == NUMBER.findall(new)
    return is_equal and renamed.setdefault(key, value) == value


def _read(path: Path) -> str:
    return MEASURED.sub("", gzip.decompress(path.read_bytes()).decode())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    recording = verbs.add_parser("record")
    recording.add_argument("--profile", required=True)
    recording.add_argument("--first", type=int, default=1)
    recording.add_argument("--seeds", type=int, default=200)
    recording.add_argument("folder", type=Path)
    comparing = verbs.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.verb == "record":
        record(given.profile, given.first, given.seeds, given.folder)
        return 0
    return compare(given.before, given.after)


if __name__ == "__main__":
    sys.exit(main())
