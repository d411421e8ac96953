"""What a local cluster can be wrong about, told in one line for people."""

from __future__ import annotations


class ClusterError(Exception):
    """Something did not work; the line names the log of the broker concerned."""


class ClusterUsageError(ClusterError):
    """What was asked for makes no sense here; nothing was done."""


class WaitedInVain(ClusterError):
    """A condition did not come true in its time."""
