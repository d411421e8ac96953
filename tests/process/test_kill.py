"""kill -9 in mid-write, again and again: the broker starts by itself, and no answer was a lie."""

from __future__ import annotations

import random
import threading

import pytest

from tests.process.fixtures import StartBroker
from tests.process.target import IS_KAFKA, Target
from tests.process.waiting import wait_until
from tests.process.wire import WireClient
from tests.process.workload import PARTITIONS, TOPIC, Writer, judge


def _write_and_kill(broker: Target, *, kills: int, seed: int) -> None:
    """Three producers write while the broker is killed at moments that the seed chooses."""
    chance = random.Random(seed)
    with WireClient(broker.address) as wire:
        wire.create_topic(TOPIC, partitions=PARTITIONS, configs={"segment.bytes": "1048576"})
    writers = [
        Writer(broker.address, "once-a", idempotent=True, value_bytes=50),
        Writer(broker.address, "once-b", idempotent=True, value_bytes=1_500),
        Writer(broker.address, "plain", idempotent=False, value_bytes=300),
    ]
    for writer in writers:
        writer.start()
    for _ in range(kills):
        sooner = [writer.acknowledged for writer in writers]
        more = chance.randrange(1, 300)
        wait_until(
            lambda: all(
                writer.acknowledged > before + more  # noqa: B023
                for writer, before in zip(writers, sooner, strict=True)  # noqa: B023
            ),
            "every producer to get on after a crash",
        )
        threading.Event().wait(chance.random() * 0.01)  # not only just after an answer
        broker.kill()
        broker.start()
    told = [writer.finish() for writer in writers]
    judge(broker, told)
    assert broker.stop() in (0, 143)
    broker.start()
    judge(broker, told)


def test_nothing_acknowledged_is_lost_in_five_crashes(start_broker: StartBroker) -> None:
    _write_and_kill(start_broker(), kills=2 if IS_KAFKA else 5, seed=1)


@pytest.mark.long
@pytest.mark.parametrize("seed", [20, 21])
def test_nothing_acknowledged_is_lost_in_fifty_crashes(
    start_broker: StartBroker, seed: int
) -> None:
    """Twice twenty-five, each from an empty log."""
    _write_and_kill(start_broker(), kills=2 if IS_KAFKA else 25, seed=seed)
