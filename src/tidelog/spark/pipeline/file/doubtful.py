"""Functions whose result is not the same when a batch is computed again."""

from __future__ import annotations

from tidelog.spark.pipeline.file.sql_shape import FunctionCall

_CHANCE = """
    rand randn random uuid randstr uniform shuffle monotonically_increasing_id spark_partition_id
    input_file_name input_file_block_start input_file_block_length
"""
_CLOCK = "now current_timestamp current_date curdate current_time localtimestamp unix_timestamp"
_ORDER = """
    first first_value last last_value any_value collect_list collect_set array_agg listagg
    string_agg
"""
_WITHOUT_ARGUMENTS = ("unix_timestamp",)
"""Doubtful only without arguments."""

_WHY = {
    **dict.fromkeys(
        _CHANCE.split(),
        "gives other values when a task is tried again or another sink computes it: rows of one"
        " batch may not fit together",
    ),
    **dict.fromkeys(
        _CLOCK.split(),
        "is the time of the batch: the same when a batch is tried again, another in every sink"
        " and when the checkpoint is thrown away",
    ),
    **dict.fromkeys(
        _ORDER.split(),
        "depends on the order in which rows arrive, which may differ when a batch is tried again",
    ),
}


def doubt_of(call: FunctionCall) -> str | None:
    """A sentence to warn with; None if it is sure."""
    if call.name in _WITHOUT_ARGUMENTS and call.has_arguments:
        return None
    why = _WHY.get(call.name)
    return None if why is None else f"{call.name}() {why}"
