"""Links: what a page of the documentation links to is there."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Collection

import pytest

from tests.tidy.reading import Source, all_paths, nodes, python_files, text_files

LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
REFERENCE = re.compile(r"^\[[^\]]+\]:\s*(\S+)", re.MULTILINE)
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:")
"""A scheme: another site, which is not asked."""


def judge_links(source: Source, paths: Collection[str], texts: dict[str, str]) -> list[str]:
    """Links of a page to files that do not exist, or to headings that their pages do not have."""
    folder = posixpath.dirname(source.path)
    prose = CODE.sub("", source.text)
    complaints = []
    for link in [*LINK.findall(prose), *REFERENCE.findall(prose)]:
        if ELSEWHERE.match(link):
            continue
        name, _, anchor = link.partition("#")
        target = posixpath.normpath(posixpath.join(folder, name)) if name else source.path
        is_folder = any(path.startswith(f"{target.rstrip('/')}/") for path in paths)
        if target not in paths and not is_folder:
            complaints.append(f"{source.path}: {link} leads nowhere")
        elif anchor and target.endswith(".md") and anchor not in anchors(texts[target]):
            complaints.append(f"{source.path}: {link}: no such heading")
    return complaints


def anchors(text: str) -> set[str]:
    """The names under which headings can be linked to, as GitHub makes them, and marked places."""
    found = set(re.findall(r'<a id="([^"]+)">', text))
    for heading in HEADING.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.add(re.sub(r"[^\w\- ]", "", words).replace(" ", "-"))
    return found


def test_every_link_of_the_documentation_leads_to_a_file() -> None:
    texts = {source.path: source.text for source in text_files()}
    pages = [source for source in text_files() if source.path.endswith(".md")]
    assert len(pages) > 10
    paths = frozenset(all_paths())
    complaints = [text for page in pages for text in judge_links(page, paths, texts)]
    assert not complaints, "\n".join(complaints)


PATHS = ("README.md", "docs/lab.md", "docs/other.md", "src/x.py")
TEXTS = {"docs/lab.md": "# The lab\n\n## What it does, and why\n", "README.md": ""}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("README.md", "see [the lab](docs/laboratory.md)"),
        ("docs/other.md", "see [the lab](docs/lab.md)"),
        ("docs/other.md", "see [the lab](lab.md#how)"),
        ("README.md", 'see [the lab](docs/laboratory.md "a title")'),
        ("README.md", "[the lab]: docs/laboratory.md"),
        ("docs/lab.md", "[below](#nothing)"),
    ],
)
def test_a_link_that_leads_nowhere_is_noticed(path: str, text: str) -> None:
    assert len(judge_links(Source(path, text), PATHS, TEXTS)) == 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("README.md", "see [the lab](docs/lab.md) and [code](src/x.py) in [docs](docs/)"),
        ("docs/other.md", "see [the lab](lab.md#what-it-does-and-why), [home](../README.md)"),
        ("README.md", "[Kafka](https://kafka.apache.org), `[not](a.link)`"),
        ("README.md", "```\n[not](a.link)\n```"),
    ],
)
def test_a_link_that_leads_somewhere_is_fine(path: str, text: str) -> None:
    assert judge_links(Source(path, text), PATHS, TEXTS) == []


FILE = re.compile(r"`([\w/.]+\.py)`")
MEMBER = re.compile(r"`([A-Z]\w+)\.([a-z]\w*)`")
PATTERN = "NN_name"
"""How the files of an API are called; no file itself."""


def judge_mentions(source: Source, paths: Collection[str], classes: dict[str, str]) -> list[str]:
    """Files that do not exist, and `Class.member` where no class of that name has it."""
    names = [name for name in FILE.findall(source.text) if PATTERN not in name]
    complaints = [
        f"{source.path}: there is no {name}"
        for name in names
        if name not in paths and not any(path.endswith(f"/{name}") for path in paths)
    ]
    return complaints + [
        f"{source.path}: {name} has no {member}"
        for name, member in MEMBER.findall(source.text)
        if name in classes and not re.search(rf"\b{member}\b", classes[name])
    ]


def test_pages_name_files_and_members_that_exist() -> None:
    pages = [source for source in text_files() if source.path.endswith(".md")]
    classes: dict[str, str] = {}
    for source in python_files("src"):
        for node in nodes(source.tree):
            if isinstance(node, ast.ClassDef):
                body = ast.get_source_segment(source.text, node) or ""
                classes[node.name] = classes.get(node.name, "") + body
    paths = frozenset(all_paths())
    complaints = [text for page in pages for text in judge_mentions(page, paths, classes)]
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("`x.py` and `src/x.py`, `Log.append` and `Node.anything`", 0),
        ("`gone.py`", 1),
        ("`Log.vanished`", 1),
        ("`api_NN_name.py`", 0),
    ],
)
def test_a_mention_of_nothing_is_noticed(text: str, count: int) -> None:
    classes = {"Log": "def append(self): ..."}
    assert len(judge_mentions(Source("docs/a.md", text), PATHS, classes)) == count
