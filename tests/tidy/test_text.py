"""Text: nothing that is committed names one machine's paths or a package index."""

from __future__ import annotations

import re

import pytest

from tests.tidy.plan import FORBIDDEN_TEXT
from tests.tidy.reading import ROOT, Source, text_files

PATTERNS = [(re.compile(pattern), meaning) for pattern, meaning in FORBIDDEN_TEXT.items()]
ANY_PATTERN = re.compile("|".join(f"(?:{pattern})" for pattern in FORBIDDEN_TEXT))
LOCK_LINE = re.compile(
    r"""
      \#.*                                                  # a comment
    | \ {4}\#.*                                             # who wants it
    | [a-z0-9][a-z0-9._-]*==[^\s;]+(\ ;\ [^\\]+)?\ \\       # a pin, which goes on
    | \ {4}--hash=sha256:[0-9a-f]{64}(\ \\)?                # one of its hashes
    """,
    re.VERBOSE,
)


def judge_text(source: Source) -> list[str]:
    """Places of one machine or one network."""
    if not ANY_PATTERN.search(source.text):
        return []
    return [
        f"{source.path}:{number}: {meaning}: {line.strip()[:80]}"
        for number, line in enumerate(source.lines, start=1)
        for pattern, meaning in PATTERNS
        if pattern.search(line)
    ]


def judge_lock(source: Source) -> list[str]:
    """Lines that are neither a pin, its hash nor a comment, and pins without a hash."""
    lines = source.lines
    complaints = [
        f"{source.path}:{number}: {line[:80]}"
        for number, line in enumerate(lines, start=1)
        if not LOCK_LINE.fullmatch(line) or "://" in line
    ]
    for number, line in enumerate(lines, start=1):
        following = lines[number] if number < len(lines) else ""
        if "==" in line and "--hash=" not in following:
            complaints.append(f"{source.path}:{number}: no hash for {line[:80]}")
    return complaints


def test_nothing_names_a_machine_or_an_index() -> None:
    complaints = [text for source in text_files() for text in judge_text(source)]
    assert not complaints, "\n".join(complaints)


def test_the_lock_has_hashes_and_no_index_address() -> None:
    text = (ROOT / "requirements.lock").read_text()
    assert judge_lock(Source("requirements.lock", text)) == []
    assert text.count("==") > 20


@pytest.mark.parametrize(
    "text",
    [
        "see /" + "work/main",
        "log.dirs = '/" + "tmp/mine'",
        "cd /" + "root/x",
        "cat /" + "home/ann/notes",
        "at https://py" + "pi.org/simp" + "le/kio",
        "from repo." + "maven.apache.org",
        "http://mirror:8080/" + "simple/kio",
    ],
)
def test_a_place_is_noticed(text: str) -> None:
    assert len(judge_text(Source("README.md", text))) >= 1


@pytest.mark.parametrize(
    "text",
    [
        "log.dirs defaults to /" + "tmp/kafka-logs",
        "src/tidelog/" + "work/x",
        "{directory}/" + "tmp/x",
        "https://www.apache.org/licenses/LICENSE-2.0",
        "127.0.0.1:9092",
    ],
)
def test_places_that_are_everywhere_are_fine(text: str) -> None:
    assert judge_text(Source("README.md", text)) == []


HASH = "    --hash=sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("text", "complaints"),
    [
        (f"kio==0.6.5 \\\n{HASH} \\\n{HASH}\n    # via tidelog", 0),
        (f"uvloop==1.0 ; sys_platform != 'win32' \\\n{HASH}", 0),
        ("kio==0.6.5 \\\n    # via tidelog", 1),
        (f"kio>=0.6.5 \\\n{HASH}", 1),
        ("--index-url https://mirror/x", 1),
        ("--find-links wheels", 1),
        (f"kio @ https://mirror/kio.whl \\\n{HASH}", 1),
        ("# from https://mirror/x", 1),
    ],
)
def test_a_loose_pin_or_an_address_in_the_lock_is_noticed(text: str, complaints: int) -> None:
    assert len(judge_lock(Source("requirements.lock", text))) == complaints
