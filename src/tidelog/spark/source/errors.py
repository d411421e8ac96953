"""Errors of the source; and `failOnDataLoss`, which decides whether a loss stops a query."""

from __future__ import annotations

import warnings

from tidelog.core.model.exceptions import TidelogError


class OptionError(TidelogError, ValueError):
    """An option is missing, wrong, or in conflict with another; the message names it."""


class DataLost(TidelogError):
    """Records that the query should have read are gone, and `failOnDataLoss` is true."""


class ClusterFailed(TidelogError):
    """The cluster cannot be asked what there is to read."""


class DataLossPolicy:
    """Raises or warns at every loss, as `failOnDataLoss` says."""

    def __init__(self, *, fails: bool) -> None:
        self.fails = fails

    def report(self, what: str) -> None:
        """Raise DataLost, or warn."""
        if self.fails:
            raise DataLost(f"{what}. Set failOnDataLoss to false to continue with what is left")
        warnings.warn(f"{what}. Continuing, because failOnDataLoss is false", stacklevel=2)
