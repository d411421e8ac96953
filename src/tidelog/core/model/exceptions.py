"""The root of the exceptions that Tidelog defines; `tidelog.errors` shows it to users.

It stands alone because `tidelog up` needs it at once, and the table of error codes only later.
"""

from __future__ import annotations


class TidelogError(Exception):
    """Every exception that Tidelog defines derives from this one."""
