"""Error texts of Spark and Java, shortened to the line that a person needs."""

from __future__ import annotations

import re

_NOISE = ("==", "JVM stacktrace", "Traceback", "'", "~", "+-", "!", "at ")
_CAUSE = re.compile(r"^(?:Caused by: )?([\w.$]+(?:Error|Exception|Refused|Missing|Lost)): (.+)$")
_LENGTH_MAX = 400


def first_sentence(text: str) -> str:
    """The message without the query plan and stack trace that follow."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    kept: list[str] = []
    for line in lines:
        if kept and line.startswith(_NOISE):
            break
        kept.append(line)
    sentence = " ".join(kept).split(" SQLSTATE:")[0].rstrip(" ;")
    return sentence if len(sentence) <= _LENGTH_MAX else sentence[: _LENGTH_MAX - 1] + "…"


def root_cause(text: str) -> str:
    """The innermost cause that a stack trace names, or its first sentence."""
    causes = [found for line in text.splitlines() if (found := _CAUSE.match(line.strip()))]
    if not causes:
        return first_sentence(text)
    name, reason = causes[-1].groups()
    return first_sentence(f"{name.rpartition('.')[2]}: {reason}")
