"""Where each way of resetting leads."""

from __future__ import annotations

import pytest

from tidelog.cli.group.reset_plan import ResetFacts, ResetTo, reset_step, wanted_topics
from tidelog.core.model.ids import TopicPartition

P0 = TopicPartition("orders", 0)
FACTS = ResetFacts(earliest=10, latest=100, committed=40)


@pytest.mark.parametrize(
    ("to", "facts", "after", "note"),
    [
        (ResetTo(earliest=True), FACTS, 10, None),
        (ResetTo(latest=True), FACTS, 100, None),
        (ResetTo(offset=50), FACTS, 50, None),
        (ResetTo(offset=10), FACTS, 10, None),
        (ResetTo(offset=100), FACTS, 100, None),
        (ResetTo(offset=9), FACTS, 10, "9 is not in the log: its first is 10"),
        (ResetTo(offset=101), FACTS, 100, "101 is not in the log: its end is 100"),
        (ResetTo(shift_by=5), FACTS, 45, None),
        (ResetTo(shift_by=-50), FACTS, 10, "-10 is not in the log: its first is 10"),
        (ResetTo(shift_by=0), FACTS, 40, None),
        (ResetTo(time_ms=5), FACTS._replace(at_time=70), 70, None),
        (ResetTo(time_ms=5), FACTS, 100, "nothing was written since then"),
        (ResetTo(offset=0), ResetFacts(earliest=0, latest=0), 0, None),
    ],
)
def test_steps(to: ResetTo, facts: ResetFacts, after: int, note: str | None) -> None:
    step = reset_step(P0, to, facts)

    assert (step.before, step.after, step.note) == (facts.committed, after, note)


def test_nothing_to_count_from() -> None:
    with pytest.raises(ValueError, match="orders-0 has no committed offset to shift"):
        reset_step(P0, ResetTo(shift_by=1), ResetFacts(earliest=0, latest=1))


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        (["orders"], {"orders": None}),
        (["orders:2,0"], {"orders": [0, 2]}),
        (["orders:0", "orders:1", "mail"], {"orders": [0, 1], "mail": None}),
        (["orders:0", "orders"], {"orders": None}),
        (["orders", "orders:0"], {"orders": None}),
    ],
)
def test_topics(texts: list[str], wanted: dict[str, list[int] | None]) -> None:
    assert wanted_topics(texts) == wanted


@pytest.mark.parametrize("text", [":0", "orders:", "orders:x", ""])
def test_what_names_no_topic(text: str) -> None:
    with pytest.raises(ValueError, match="is not"):
        wanted_topics([text])
