"""What a sink refuses with: one class per kind of trouble, each with what to do about it.

`is_final` says whether this run of the driver can go on at all. What is not final has been aborted,
and the batch may be begun again.
"""

from __future__ import annotations

from tidelog.core.model.exceptions import TidelogError


class SinkError(TidelogError):
    """A batch was not published, or that is unknown."""

    is_final = True

    def __reduce__(self) -> tuple[type[SinkError], tuple[str, ...]]:
        """Errors of tasks travel to the driver."""
        return type(self), (str(self),)


class ClusterUnfit(SinkError):
    """The cluster lacks something that the protocol needs."""


class ForeignRun(SinkError):
    """Another driver has taken this sink over: stop, and touch nothing."""


class Fenced(SinkError):
    """The cluster refuses this driver's producer epoch: somebody has a newer one."""


class TransactionTimedOut(SinkError):
    """The batch took longer than its transaction may last."""


class CheckpointRefused(SinkError):
    """The marker and the batch that is offered do not belong together."""


class MarkerMissing(CheckpointRefused):
    """A later batch is offered to a sink that remembers none."""


class CheckpointForeign(CheckpointRefused):
    """The marker was written by a query with another checkpoint."""


class CheckpointRolledBack(CheckpointRefused):
    """A batch before the last published one is offered, or the same one with other content."""


class CheckpointAhead(CheckpointRefused):
    """Batches between the marker and the offered one are missing."""


class MarkerUnreadable(CheckpointRefused):
    """The group has an offset that no sink of ours wrote."""


class SinkRefused(SinkError):
    """The cluster refuses for a reason that another attempt does not cure."""


class BatchLost(SinkError):
    """The transaction cannot be committed; it was aborted."""

    is_final = False


class GuardFailed(BatchLost):
    """Somebody else wrote under this batch's identity, or a receipt is wrong."""


class OutOfTime(BatchLost):
    """The cluster gave no usable answer in time."""


class CommitUnknown(SinkError):
    """The commit was asked for, and it cannot be found out what became of it."""
