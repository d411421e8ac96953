"""Every acknowledged offset is where the record stands: what a retried batch is answered (X-50)."""

from __future__ import annotations

import pytest

from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_00_produce import ProduceResponse
from tidelog.lab.audit import CLEAN
from tidelog.lab.engines.simulator import SimulatorEngine
from tidelog.lab.lab import Lab
from tidelog.lab.report import Report
from tidelog.lab.writers import WriteAnswer

NONE = ErrorCode.NONE


def lab_with_orders(*, seed: int = 1) -> Lab:
    lab = Lab(SimulatorEngine(seed=seed), Report(story="offsets", engine="simulator"))
    lab.cluster()
    lab.create("orders", (1, 2, 3), min_insync_replicas="1")
    return lab


def stands_at(lab: Lab, payload: str, node: int) -> list[int]:
    return [entry.offset for entry in lab.log(node) if entry.payload == payload]


@pytest.mark.scenario("X-50")
def test_a_retry_after_a_failover_is_answered_with_the_place_in_the_new_leaders_log() -> None:
    lab = lab_with_orders()
    writer = lab.writer("idempotent", idempotent=True)
    lab.fill(3)
    batches = [writer.begin(f"m{number}") for number in range(4)]
    lab.until_quiet()

    lab.kill(1)
    lab.until_led(2)
    for batch in batches:
        writer.again(batch)
        answer = writer.wait(batch)
        assert (answer.error, [answer.offset]) == (NONE, stands_at(lab, batch.payloads[0], 2))
    assert lab.audit() == CLEAN


@pytest.mark.parametrize("end", ["stop", "kill", "lose_power"])
@pytest.mark.scenario("X-50")
def test_a_retry_after_a_restart_is_answered_with_its_place_or_not_at_all(end: str) -> None:
    """A snapshot remembers the newest batch of each producer. An older one that is sent again is
    refused without an offset: better unknown than wrong."""
    lab = lab_with_orders()
    writer = lab.writer("idempotent", idempotent=True)
    lab.fill(3)
    older, newest = writer.begin("m0"), writer.begin("m1")
    lab.until_quiet()

    {"stop": lab.stop, "kill": lab.kill, "lose_power": lab.lose_power}[end](1)
    lab.until_led(2)
    lab.start(1)
    lab.until_isr(1, 2, 3)
    lab.until_elected(1)
    writer.again(newest)
    answer = writer.wait(newest)
    assert (answer.error, [answer.offset]) == (NONE, stands_at(lab, "m1", 1))
    writer.again(older)
    answer = writer.wait(older)
    assert answer in (
        WriteAnswer(NONE, stands_at(lab, "m0", 1)[0]),
        WriteAnswer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, None),
    )
    raw = older.tries[-1].answer
    assert isinstance(raw, ProduceResponse)
    if answer.error is not NONE:
        assert raw.responses[0].partition_responses[0].base_offset == -1
    assert lab.audit() == CLEAN


@pytest.mark.scenario("X-50")
def test_a_retry_after_a_truncation_is_not_answered_with_the_place_that_was_cut() -> None:
    """A record of the old leader is cut, and stored elsewhere by its successor. When the old
    leader leads again, it knows the second place only."""
    lab = lab_with_orders()
    writer = lab.writer("idempotent", idempotent=True)
    lab.fill(3)
    lab.hold(2, 3)
    lost = writer.begin("m0")
    lab.until_end(1, 4)
    cut_offset = stands_at(lab, "m0", 1)
    lab.isolate(1)
    lab.listen_to(2, 3)
    lab.until_led(2)
    lab.writer("other").write("other", to=2)
    writer.again(lost, to=2)
    second = writer.wait(lost)
    assert second.error is NONE
    assert [second.offset] == stands_at(lab, "m0", 2) != cut_offset

    lab.release(2, 3)
    lab.rejoin(1)
    lab.until_isr(1, 2, 3)
    lab.until_elected(1)
    writer.again(lost, to=1)
    third = writer.wait(lost)

    assert third == second
    assert stands_at(lab, "m0", 1) == [second.offset]
    assert lab.audit() == CLEAN
