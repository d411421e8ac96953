"""Spark's driver and its JVM, killed at every step of the sink: every record is published once.

Each process that is started after a kill is itself the one that is killed at the next step, so that
n kills cost n + 1 starts of Spark. A run has a third of the steps, other code another third; with
`--whole-campaigns` it has all.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.campaign_extent import CampaignExtent
from tests.kafka import KafkaCluster
from tests.spark.stream_fuses import NAMES, Fuse
from tests.spark.stream_pipes import Pipe
from tests.spark.stream_runs import KILLED, Program, Programs

pytestmark = [
    pytest.mark.java,
    pytest.mark.long,
    pytest.mark.xdist_group("spark-campaigns"),
]

# After a request is before the next one: every gap is here once, those around what writes twice.
STEPS = {
    "take over": (
        "the batch begins",
        "take over: before InitProducerId",
        "take over: after InitProducerId",
        "take over: before AddOffsetsToTxn",
        "take over: after AddOffsetsToTxn",
        "take over: after TxnOffsetCommit",
        "take over: before EndTxn",
        "take over: after EndTxn",
    ),
    "write": (
        "begin: after OffsetFetch",
        "begin: before InitProducerId",
        "begin: after InitProducerId",
        "begin: after ListOffsets",
        "task: before AddPartitionsToTxn",
        "task: after AddPartitionsToTxn",
        "task: before Produce",
        "task: after Produce",
    ),
    "commit": (
        "before the sync",
        "after the sync",
        "commit: after DescribeTransactions",
        "commit: after DescribeProducers",
        "commit: before AddOffsetsToTxn",
        "commit: after AddOffsetsToTxn",
        "commit: before TxnOffsetCommit",
        "commit: after TxnOffsetCommit",
        "commit: before EndTxn",
        "the batch is published",
        "commit: after EndTxn",
    ),
}
PUBLISHED = ("the batch is published", "commit: after EndTxn")
RECORDS_PER_START = 40
"""Five batches: more than any process lives to see."""
LIMIT = 8
PARTS = 3
RANDOM_KILLS = 10
EVENTS = 60
"""Of the driver in its first three batches, the takeover counted in."""
SECONDS = 3.0


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Programs]:
    """All of them, so that one is always being made ready."""
    with Programs(tmp_path_factory.mktemp("programs")) as made:
        yield made


def die(programs: Programs, pipe: Pipe, fuse: Fuse) -> Program:
    """A process that works on the pipe until that; one that does not die fails the test."""
    pipe.feed(RECORDS_PER_START)
    program = programs.go(pipe.wish(limit=LIMIT, fuses=[fuse]))
    code = program.wait()
    assert code == KILLED and any(each.startswith("batch ") for each in program.said), (
        f"it was to be killed at {fuse}, and ended with {code}\n{program.story()}"
    )
    return program


def finish(programs: Programs, pipe: Pipe) -> Program:
    program = programs.go(pipe.wish(is_last=True))
    assert program.wait() == 0 and "done" in program.said, program.story()
    return program


def test_every_request_of_the_protocol_is_among_the_steps() -> None:
    steps = [event for events in STEPS.values() for event in events]

    assert len(steps) == len(set(steps)) == 27
    assert set(NAMES.values()) <= {event.split()[-1] for event in steps}


@pytest.mark.parametrize("part", STEPS)
def test_a_driver_and_its_jvm_are_killed_at_every_step(
    kafka3: KafkaCluster, tmp_path: Path, programs: Programs, part: str, extent: CampaignExtent
) -> None:
    pipe = Pipe(kafka3, f"stream-deaths-{part}".replace(" ", "-"), tmp_path)
    events = extent.share(STEPS[part], parts=PARTS)

    killed = [die(programs, pipe, Fuse(event)) for event in events]
    last = finish(programs, pipe)

    # Who died after the commit had published, and only his successor skips.
    assert [each.count("BatchCommitted") for each in killed] == [
        int(event == "the batch is published") for event in events
    ]
    skipped = [each.count("BatchSkipped") for each in (*killed[1:], last)]
    assert skipped == [int(event in PUBLISHED) for event in events]
    assert pipe.committed() == pipe.every_record_once()


@pytest.mark.parametrize("seed", [52, 70])
def test_a_driver_and_its_jvm_are_killed_at_random_moments(
    kafka3: KafkaCluster, tmp_path: Path, programs: Programs, seed: int, extent: CampaignExtent
) -> None:
    """Half of them at a request or an answer, half of them at any time after the first batch."""
    random = Random(seed)
    pipe = Pipe(kafka3, f"stream-deaths-random-{seed}", tmp_path)
    fuses = [Fuse(nth=nth) for nth in random.sample(range(1, EVENTS + 1), RANDOM_KILLS // 2)]
    fuses += [
        Fuse("the batch begins", within_s=random.uniform(0, SECONDS))
        for _ in range(RANDOM_KILLS // 2)
    ]
    random.shuffle(fuses)

    for fuse in extent.share(fuses, parts=PARTS):
        die(programs, pipe, fuse)
    finish(programs, pipe)

    assert pipe.committed() == pipe.every_record_once()
