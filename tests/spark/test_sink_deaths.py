"""Drivers that die or sleep at any moment, on three brokers: everything is published once."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from tests.campaign_extent import CampaignExtent
from tests.process.waiting import PATIENCE_S
from tests.spark.brokers import Brokers
from tests.spark.sink_parts import Sink, rows_of, values_of
from tests.spark.topics import NewTopic

ROOT = Path(__file__).parents[2]
KILLED = -signal.SIGKILL
STOPPED_ITSELF = 3
BATCHES_OF_ZOMBIE = 1_000
REQUESTS_MIN, REQUESTS_MAX = 20, 60
"""Of one batch and the takeover before it."""
PARTS = 3
"""Every third of them is tried, others with other code; with `--whole-campaigns` all."""
END_TXN, TXN_OFFSET_COMMIT = 26, 28


@pytest.fixture
def sink(brokers: Brokers, new_topic: NewTopic) -> Sink:
    topic = new_topic(brokers, partitions=2, min_insync_replicas="2")
    return Sink(brokers.bootstrap_servers, topic)


@contextmanager
def program(sink: Sink, first: int, batches: int, *kill: object) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.spark.sink_program", sink.bootstrap, sink.topic]
    words = [str(word) for word in (first, batches, *kill)]
    process = subprocess.Popen([*command, *words], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def lines_until(process: subprocess.Popen[str], line: str) -> list[str]:
    """What it says, up to this line."""
    assert process.stdout is not None
    said = []
    for each in process.stdout:
        said.append(each.strip())
        if said[-1] == line:
            return said
    raise AssertionError(f"it ended before it said {line!r}: {said}")


def die_and_go_on(sink: Sink, batch_id: int, *kill: object) -> bool | None:
    """A run that is killed there, and the next one: had the first published?

    None: it had come to its end before there was a reason to kill it.
    """
    with program(sink, batch_id, 1, *kill) as process:
        assert process.stdout is not None
        said = process.stdout.read()
        if process.wait(PATIENCE_S) == 0:
            return None
        assert process.returncode == KILLED, said
    with sink.driver() as driver:
        driver.take_over()
        return not sink.publish(driver, batch_id, rows_of(batch_id))


@pytest.mark.parametrize(
    ("kill", "was_published"),
    [
        (("before", 2, TXN_OFFSET_COMMIT), False),
        (("before", 2, END_TXN), False),
        (("after", 2, END_TXN), True),
    ],
    ids=["before the marker", "before the commit", "after the commit"],
)
def test_a_driver_that_is_killed_is_made_up_for(
    sink: Sink, kill: tuple[object, ...], was_published: bool
) -> None:
    """The first marker and the first commit are those of the takeover."""
    assert die_and_go_on(sink, 0, *kill) is was_published

    assert sink.committed() == values_of(0)


@pytest.mark.long
def test_a_driver_that_is_killed_at_any_request_is_made_up_for(
    sink: Sink, extent: CampaignExtent
) -> None:
    """Before each request, which is to say after the one before it."""
    for batch_id, nth in enumerate(extent.share(range(1, REQUESTS_MAX), parts=PARTS)):
        if die_and_go_on(sink, batch_id, "before", nth) is None:
            break

    assert REQUESTS_MIN < nth < REQUESTS_MAX - PARTS
    assert sink.committed() == values_of(*range(batch_id + 1))


def test_a_driver_that_wakes_up_after_another_took_over_stops(sink: Sink) -> None:
    """Stopped in its batch (SIGSTOP); three batches of the next one later it may go on."""
    overtake(sink, Random(0), batches_before=1)


@pytest.mark.long
def test_a_driver_that_sleeps_at_any_moment_harms_nobody(sink: Sink) -> None:
    random = Random(20)
    batch_id = 0

    for _ in range(6):
        batch_id = overtake(sink, random, first=batch_id, batches_before=random.randrange(4))


def overtake(sink: Sink, random: Random, *, first: int = 0, batches_before: int) -> int:
    """A runs, sleeps somewhere, B publishes three batches, A wakes; the next batch to publish."""
    with program(sink, first, BATCHES_OF_ZOMBIE) as process:
        moment = random.choice(["begun", "written", "committed"])
        said = lines_until(process, f"{moment} {first + batches_before}")
        process.send_signal(signal.SIGSTOP)
        with sink.driver() as driver:
            driver.take_over()
            last = driver.published
            batch_id = first if last is None else last.batch_id + 1
            for _ in range(3):
                assert sink.publish(driver, batch_id, rows_of(batch_id))
                batch_id += 1
            ticket = sink.ticket(driver, batch_id)
            receipts = sink.write(ticket, rows_of(batch_id))
            process.send_signal(signal.SIGCONT)
            assert process.wait(PATIENCE_S) == STOPPED_ITSELF, said
            driver.commit(receipts)
            assert sink.publish(driver, batch_id + 1, rows_of(batch_id + 1))
    assert sink.committed() == values_of(*range(batch_id + 2))
    return batch_id + 2
