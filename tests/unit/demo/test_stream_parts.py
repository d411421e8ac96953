"""The parts around the stream: what is sent, how long writes paused, how far Spark has come."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from tidelog.demo.orders import BROKEN, Orders, RecordKind
from tidelog.demo.pipeline_file import REVENUE, SINKS, Targets, pipeline_text
from tidelog.demo.spark_processes import PipelineProgress, positions_in
from tidelog.demo.stream import AckTiming, write_pauses
from tidelog.spark import pipeline

NOON_MS = 1_767_268_800_000


def test_the_stream_has_orders_double_clicks_and_broken_records() -> None:
    orders = Orders()
    records = [orders.next(NOON_MS) for _ in range(1_000)]
    kinds = {kind: [each for each in records if each.kind is kind] for kind in RecordKind}
    assert [each.number for each in records] == list(range(1_000))
    assert len(kinds[RecordKind.REPEAT]) == 50 and len(kinds[RecordKind.BROKEN]) == 20
    assert {each.value for each in kinds[RecordKind.BROKEN]} == set(BROKEN)
    names = [each.order.id for each in kinds[RecordKind.ORDER] if each.order]
    assert len(names) == len(set(names)) == 930
    values = {each.order.id: each.value for each in kinds[RecordKind.ORDER] if each.order}
    for repeat in kinds[RecordKind.REPEAT]:
        assert repeat.order is not None
        assert repeat.value == values[repeat.order.id], "the very same order once more"


def test_amounts_are_what_is_written_to_the_cent() -> None:
    orders = Orders()
    for _ in range(20_000):
        record = orders.next(NOON_MS)
        if record.order is not None:
            amount = json.loads(record.value, parse_float=str)["amount"]
            whole, _, cents = str(amount).partition(".")
            assert int(whole) * 100 + int(cents.ljust(2, "0")) == record.order.cents > 0


def test_a_pause_reaches_from_one_acknowledgement_to_the_next() -> None:
    timings = [
        AckTiming(0, 0.9, 1.0),
        AckTiming(1, 0.9, 1.0),
        AckTiming(1, 1.9, 2.0),
        AckTiming(0, 1.5, 4.0),  # was on its way at the failure
        AckTiming(0, 4.1, 4.2),
    ]
    seen = write_pauses(timings, failed_s=1.6)
    assert seen.paused_s == {0: pytest.approx(3.0), 1: pytest.approx(1.0)}
    assert seen.resumed == {0, 1} and seen.worst_s == pytest.approx(3.0)
    assert write_pauses(timings[:4], failed_s=1.6).resumed == {1}, (
        "sent before the failure proves nothing"
    )
    assert write_pauses(timings, failed_s=5.0).resumed == frozenset()


def offsets(**by_index: int) -> str:
    by_topic = {"orders": {name[1:]: offset for name, offset in by_index.items()}}
    return f"v1\n{{}}\n{json.dumps({'(from)': {'orders': {'0': 0}}, **by_topic})}"


def test_positions_are_those_of_the_batch_and_not_where_it_began() -> None:
    assert positions_in(offsets(p0=5, p1=7)) == {0: 5, 1: 7}


def test_a_batch_is_under_way_until_it_is_committed(tmp_path: Path) -> None:
    progress = PipelineProgress(tmp_path, "valid_orders")
    assert (progress.done, progress.under_way, progress.records) == (None, None, 0)
    assert not progress.has_reached({}), "nothing is done"
    for name in ("offsets", "commits"):
        (tmp_path / "sinks" / "valid_orders" / name).mkdir(parents=True)
    planned, done = (tmp_path / "sinks" / "valid_orders" / each for each in ("offsets", "commits"))
    (planned / "0").write_text(offsets(p0=5))
    assert (progress.under_way, progress.has_reached({0: 5})) == (0, False)
    (done / "0").write_text("v1\n{}")
    assert (progress.done, progress.under_way) == (0, None)
    assert progress.has_reached({0: 5}) and progress.records == 5
    assert progress.has_reached({0: 4, 1: 0}) and not progress.has_reached({0: 5, 1: 1})
    (planned / "1").write_text(offsets(p0=9))
    assert progress.under_way == 1 and not progress.has_reached({0: 9})
    assert progress.batch_ends() == [{0: 5}], "a batch that is under way has published nothing"


@pytest.mark.parametrize("sinks", [(REVENUE,), SINKS])
def test_the_demo_writes_a_pipeline_without_a_complaint(
    sinks: tuple[str, ...], tmp_path: Path
) -> None:
    wanted = Targets(orders="orders", topics={sink: f"demo-{sink}" for sink in sinks})
    text = pipeline_text(wanted, bootstrap="localhost:9092")
    file = tmp_path / "orders.toml"
    file.write_text(text)
    checked = pipeline.check(file)
    assert not checked.diagnostics
    document = tomllib.loads(text)
    assert [*document["sinks"], "dead_letters"] == list(SINKS)
    targets = {**document["sinks"], "dead_letters": document["dead_letters"]}
    assert {name for name, each in targets.items() if "table" not in each} == set(sinks)
    assert wanted.revenue_id == "tidelog-sink-" + targets[REVENUE]["id"]
