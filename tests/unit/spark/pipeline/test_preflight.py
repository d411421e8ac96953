"""Which clusters a plan needs, and for what."""

from __future__ import annotations

import pytest

from tests.process.ports import HOST, free_port
from tests.unit.spark.pipeline.good_file import GOOD, checked
from tidelog.spark.pipeline.job.preflight import PreflightFailed, check_clusters, needed_clusters

TOPIC = 'topic = "out"\nid = "out"\n'


def test_every_source_and_every_topic_needs_its_brokers() -> None:
    text = GOOD.replace('table = "out/valid"', TOPIC + 'bootstrap = "other:9092"')
    plan = checked(text.replace('table = "out/dead"', 'topic = "dead"\nid = "dead"'))
    assert needed_clusters(plan.plan_or_raise(), "here:9092") == {
        "here:9092": ["sources.orders", "dead_letters"],
        "other:9092": ["sinks.valid"],
    }


def test_tables_need_none() -> None:
    assert needed_clusters(checked(GOOD).plan_or_raise(), "here:9092") == {
        "here:9092": ["sources.orders"]
    }


def test_who_cannot_be_reached_is_told_with_whoever_needs_it() -> None:
    address = f"{HOST}:{free_port()}"
    with pytest.raises(
        PreflightFailed, match=f"^sources.orders: no broker can be reached: {address}"
    ):
        check_clusters(checked(GOOD).plan_or_raise(), address)
