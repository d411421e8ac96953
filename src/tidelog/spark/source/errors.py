"""What a reading program is told when it cannot go on."""

from __future__ import annotations


class OptionError(ValueError):
    """An option is missing, wrong, or does not go with another; the message names it."""


class DataLost(Exception):
    """Records that the query should have read are gone, and `failOnDataLoss` is true."""


class ClusterFailed(Exception):
    """The cluster cannot be asked what there is to read."""
