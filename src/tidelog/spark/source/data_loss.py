"""What `failOnDataLoss` decides: whether records that are gone stop a query or only warn."""

from __future__ import annotations

import warnings

from tidelog.spark.source.errors import DataLost


class DataLoss:
    """Told of every loss."""

    def __init__(self, *, fails: bool) -> None:
        self.fails = fails

    def report(self, what: str) -> None:
        """Raises DataLost, or warns and lets go on."""
        if self.fails:
            raise DataLost(f"{what}. Set failOnDataLoss to false to go on with what is there")
        warnings.warn(f"{what}. Going on, because failOnDataLoss is false", stacklevel=2)
