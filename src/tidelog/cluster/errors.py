"""Errors of a local cluster; each message is one line for people."""

from __future__ import annotations

from tidelog.core.model.exceptions import TidelogError


class ClusterError(TidelogError):
    """Something failed; the message names the log of the broker concerned."""


class ClusterUsageError(ClusterError):
    """A wrong argument; nothing was done."""


class WaitTimeout(ClusterError):
    """What was waited for did not happen in time; the message says what was seen instead."""
