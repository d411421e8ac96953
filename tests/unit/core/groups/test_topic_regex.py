"""Regular expressions over topic names: Python's `re` agrees, and none takes long."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis.strategies import from_regex, recursive, sampled_from, text

from tidelog.core.groups.regex_resolution import SLICE_WORK, RegexJob
from tidelog.core.groups.regex_syntax import InvalidRegex
from tidelog.core.groups.topic_regex import INSTRUCTIONS_MAX, AnyNameRegex, TopicRegex

NAME = "abcB01._-"
atoms = sampled_from(
    ["a", "b", "B", "0", ".", r"\.", "[ab]", "[^a]", r"\d", r"\w", r"\W", "^", "$"]
)
atoms |= sampled_from([r"\b", r"\B", "[a-c_]", "-", "(?i:b)", "[0-9]"])
patterns = recursive(
    atoms,
    lambda inner: (
        inner.map(lambda it: f"(?:{it})*")
        | inner.map(lambda it: f"(?:{it})+?")
        | inner.map(lambda it: f"({it})?")
        | inner.map(lambda it: f"(?:{it}){{1,2}}")
        | (inner.flatmap(lambda a: inner.map(lambda b: a + b)))
        | (inner.flatmap(lambda a: inner.map(lambda b: f"(?:{a}|{b})")))
    ),
    max_leaves=8,
)


@given(pattern=patterns, name=text(NAME, min_size=1, max_size=6))
def test_the_same_names_match_as_in_python(pattern: str, name: str) -> None:
    found = re.fullmatch(pattern, name) is not None
    assert TopicRegex(pattern).matches(name) is found


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("", [""], ["a"]),
        ("orders", ["orders"], ["orders2", "my.orders"]),
        ("a|b", ["a", "b"], ["ab"]),
        (r"\Qa.b\E+", ["a.bb"], ["axb"]),
        (r"\Qa.b\E", ["a.b"], ["axb"]),
        ("(?i)ab", ["AB", "aB"], ["cd"]),
        ("a(?i)b", ["aB"], ["AB"]),
        ("(?P<x>a)(?<y>b)", ["ab"], ["a"]),
        ("[[:alpha:]]+", ["ab"], ["a1"]),
        ("[[:^alpha:]]+", ["1."], ["a1"]),
        (r"\pL+", ["ab"], ["a1"]),
        (r"\p{Nd}\P{Nd}", ["1a"], ["11"]),
        (r"\x61\x{62}\101", ["abA"], ["ab"]),
        ("a{2}", ["aa"], ["a", "aaa"]),
        ("a{,2}", [], ["a", "aa"]),
        ("[]a]+", ["a"], ["b"]),
        ("[a-]+", ["a-"], ["b"]),
        ("(a*)*b", ["aab", "b"], ["a"]),
        (r"\Aa\z", ["a"], ["aa"]),
        ("(){1000}", [""], ["a"]),
        ("((((){1000}){1000}){1000}){1000}a", ["a"], [""]),
    ],
)
def test_syntax(pattern: str, matching: list[str], others: list[str]) -> None:
    regex = TopicRegex(pattern)
    assert [name for name in matching + others if regex.matches(name)] == matching


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("a(", "missing closing )"),
        ("a)", "unexpected )"),
        ("[a", "missing closing ]"),
        ("[b-a]", "invalid character class range"),
        ("[[:nothing:]]", "invalid character class range"),
        (r"\p{Nothing}", "invalid character class range"),
        ("*a", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("a{1001}", "invalid repeat count"),
        ("a{2,1}", "invalid repeat count"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        (r"(a)\1", "invalid escape sequence"),
        (r"\y", "invalid escape sequence"),
        ("\\", "trailing backslash at end of expression"),
        ("(?P<a>x)(?P<a>y)", "duplicate capture group name"),
        ("(" * 60 + ")" * 60, "expression nests too deeply"),
        ("(a{100}){100}", "expression too large"),
        ("a" * 5_000, "expression too large"),
    ],
)
def test_what_is_refused(pattern: str, why: str) -> None:
    with pytest.raises(InvalidRegex, match=re.escape(why)):
        TopicRegex(pattern)


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|a)*b", "(a|aa)+b", "(.*a){50}b", "(a?){200}b"])
def test_no_expression_makes_one_character_dear(pattern: str) -> None:
    """Backtracking would take longer than the universe has lasted."""
    regex = TopicRegex(pattern)
    name = "a" * 249
    assert not regex.matches(name)
    assert regex.work <= (len(name) + 2) * (INSTRUCTIONS_MAX + 1)


def test_a_lookup_is_done_in_slices_of_bounded_work() -> None:
    names = [f"{'a' * 200}{number}" for number in range(300)]
    regexes = ["(.*a){20}b", "a+1.", "a+["]
    job = RegexJob(group_id="g", version=1, started_wall_ms=0, patterns=regexes, names=names)
    slices = 0
    while not job.is_done:
        slices += 1
        job.proceed(SLICE_WORK)
    assert slices > 2
    assert {regex: len(topics) for regex, topics in job.matched.items()} == {
        "(.*a){20}b": 0,
        "a+1.": 10,
        "a+[": 0,
    }


@given(from_regex(r"[a-z0-9\[\](){}*+?|\\^$.,:<>=!-]{0,12}", fullmatch=True))
def test_any_text_is_an_expression_or_is_refused(pattern: str) -> None:
    try:
        TopicRegex(pattern).matches("topic-1")
    except InvalidRegex:
        return


@pytest.mark.parametrize(
    ("pattern", "name", "is_match"),
    [
        (".*", "job/1 é", True),
        ("job/.*", "job/1", True),
        ("job[^/]+", "job/1", False),
        (r"job\s1", "job 1", True),
        (r"job\S1", "job 1", False),
        (r"job\W1", "job/1", True),
        ("job[[:punct:]]1", "job:1", True),
        ("job[[:space:]]1", "job:1", False),
        (r"\p{Greek}+", "αβγ", True),
        (r"\p{Latin}+", "é", True),
        (r"\pL+", "éα", True),
        ("[α-γ]+", "αβγ", True),
        ("(?i)É", "é", True),
        ("(?i)[à-ü]+", "É", True),
        ("a.b", "a\nb", False),
        ("(?s)a.b", "a\nb", True),
        ("(?s:a.)b.", "a\nb\n", False),
        ("[^x]", "\n", True),
        ("a{2}", "aa", True),
    ],
)
def test_names_may_have_any_characters(pattern: str, name: str, is_match: bool) -> None:
    regex = AnyNameRegex(pattern)
    assert regex.matches("") is (pattern == ".*")
    assert regex.matches(name) is is_match
