"""Spark drivers that are stopped in a batch (SIGSTOP), overtaken, and waked: they harm nobody.

Each driver that takes over is the next one that is stopped. Driver and JVM are stopped in one call.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.campaign_extent import CampaignExtent
from tests.kafka import KafkaCluster
from tests.process.waiting import wait_until
from tests.spark.stream_fuses import Fuse
from tests.spark.stream_pipes import Pipe
from tests.spark.stream_program import STOPPED_ITSELF
from tests.spark.stream_runs import Program, Programs

pytestmark = [
    pytest.mark.java,
    pytest.mark.long,
    pytest.mark.xdist_group("spark-campaigns"),
]

LIMIT = 8
IDLE = "the batch begins"
IN_BATCH = (
    "begin: after InitProducerId",
    "task: after AddPartitionsToTxn",
    "task: after Produce",
    "before the sync",
    "commit: after AddOffsetsToTxn",
    "commit: before TxnOffsetCommit",
    "commit: before EndTxn",
)
PARTS = 3
"""A run has every third of them, other code others; with `--whole-campaigns` it has all."""


def test_drivers_that_wake_up_after_others_took_over_stop_and_harm_nobody(
    kafka3: KafkaCluster, tmp_path: Path, extent: CampaignExtent
) -> None:
    moments = [IDLE, *extent.share(IN_BATCH, parts=PARTS)]
    pipe = Pipe(kafka3, "stream-zombies", tmp_path)
    reasons = []
    with Programs(tmp_path) as programs:
        driver = programs.go(pipe.wish(limit=LIMIT))
        publish_some(driver, pipe)
        for number, event in enumerate(moments, start=1):
            sleeper = driver
            # Each task has the fuse; a second one would stop again whom we have just woken.
            once = str(tmp_path / f"stopped-{number}")
            sleeper.arm(Fuse(event, act="stop", once=once))
            pipe.feed(6 * LIMIT)
            sleeper.wait_until_stopped()

            driver = programs.go(pipe.wish(limit=LIMIT), is_last=number == len(moments))
            driver.wait_for_count("BatchCommitted", 3)
            pipe.feed(LIMIT)
            sleeper.signal(signal.SIGCONT)

            assert sleeper.wait() == STOPPED_ITSELF, sleeper.story()
            reasons.append(sleeper.reason())
            publish_some(driver, pipe)
            assert driver.count("stopped") == driver.count("BatchAborted") == 0, driver.story()
        wait_until(lambda: pipe.committed() == pipe.every_record_once(), "every record once")

    assert reasons[0] == "ForeignRun"
    assert len(reasons) == len(moments) and set(reasons[1:]) <= {"Fenced", "ForeignRun"}


def publish_some(driver: Program, pipe: Pipe) -> None:
    """What is fed now is published after that."""
    before = driver.count("BatchCommitted")
    pipe.feed(LIMIT)
    driver.wait_for_count("BatchCommitted", before + 1)
