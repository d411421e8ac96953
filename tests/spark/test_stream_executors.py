"""Executors killed while their tasks write: the batch is aborted, begun again, and there once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kafka import KafkaCluster
from tests.spark.stream_fuses import Fuse
from tests.spark.stream_pipes import Pipe
from tests.spark.stream_runs import Programs

pytestmark = [
    pytest.mark.java,
    pytest.mark.long,
    pytest.mark.xdist_group("spark-campaigns"),
]

MASTER = "local-cluster[2,1,1024]"
LIMIT = 30
DEATHS = ((1, "task: after Produce"), (3, "task: after AddPartitionsToTxn"))
"""In which batch, and when."""


def test_executors_that_die_in_a_batch_cost_an_attempt_and_nothing_else(
    kafka3: KafkaCluster, tmp_path: Path
) -> None:
    pipe = Pipe(kafka3, "stream-executors", tmp_path)
    pipe.feed(5 * LIMIT)
    fuses = [
        Fuse(event, act="executor", once=str(tmp_path / f"killed-{batch_id}"), batch_id=batch_id)
        for batch_id, event in DEATHS
    ]
    with Programs(tmp_path, master=MASTER) as programs:
        program = programs.go(pipe.wish(limit=LIMIT, is_last=True, fuses=fuses), is_last=True)
        assert program.wait() == 0, program.story()

    for batch_id, _ in DEATHS:
        assert (tmp_path / f"killed-{batch_id}").exists()
        begun = program.said.count(f"BatchBegun {batch_id}")
        assert begun == 1 + program.said.count(f"BatchAborted {batch_id}")
    # A task that had written cannot succeed again in the same transaction.
    assert program.said.count(f"BatchAborted {DEATHS[0][0]}") >= 1
    assert pipe.committed() == pipe.every_record_once()
