"""What keeps an audit from being made at all, told in one line: bad input, never a verdict."""

from __future__ import annotations

import re

from tidelog.core.model.exceptions import TidelogError


class AuditRefused(TidelogError):
    """The input is not what it should be; the text says which file, which line, and why."""


_REFUSAL = re.compile(r"^(?:[\w.]+\.)?AuditRefused: (.*)$", re.MULTILINE)


def refusal_in_trace(text: str) -> AuditRefused | None:
    """The refusal that a task of Spark raised, out of the trace that Spark makes of it."""
    found = _REFUSAL.search(text)
    return None if found is None else AuditRefused(found.group(1).strip())
