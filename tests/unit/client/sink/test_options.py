"""What a sink may be given, and what is refused before Spark is asked for anything."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from tidelog.client.sink.errors import SinkRefused
from tidelog.client.sink.options import SinkOptions


def test_a_topic_is_enough() -> None:
    options = SinkOptions(bootstrap="a:1,b:2", sink_id="revenue", topic="out")

    assert (options.topic_names, options.topic, options.compression) == (("out",), "out", "none")
    assert options.client_settings == {
        "bootstrap.servers": "a:1,b:2",
        "client.id": "tidelog-sink-revenue",
    }


def test_several_topics_are_named_by_the_rows() -> None:
    options = SinkOptions(bootstrap="a:1", sink_id="s", topics=["x", "y", "x"], order_by="n")

    assert (options.topic_names, options.topic, options.order_columns) == (("x", "y"), None, ("n",))


def test_settings_of_kafka_are_passed_on() -> None:
    given = {"request.timeout.ms": "5000", "client.id": "mine"}

    settings = SinkOptions(
        bootstrap="a:1", sink_id="s", topic="out", settings=given
    ).client_settings

    assert settings == {"bootstrap.servers": "a:1", **given}


def test_options_travel_to_tasks() -> None:
    options = SinkOptions(bootstrap="a:1", sink_id="s", topic="out", compression="zstd")

    assert pickle.loads(pickle.dumps(options)) == options


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "either topic=..., for all rows, or topics="),
        ({"topic": "a", "topics": ["b"]}, "either topic="),
        ({"topic": "a b"}, "a topic name has only ASCII letters"),
        ({"topics": ["a", ""]}, "cannot be empty"),
        ({"topic": "a", "sink_id": ""}, "a sink id is 1 to 200 printable"),
        ({"topic": "a", "sink_id": "x\n"}, "a sink id is 1 to 200 printable"),
        ({"topic": "a", "compression": "brotli"}, "not one of none, gzip"),
        ({"topic": "a", "batch_bytes": 0}, "batch_bytes=0 must be at least 1"),
        ({"topic": "a", "attempts": 0}, "attempts=0 must be at least 1"),
        ({"topic": "a", "writers": 0}, "writers=0 must be at least 1"),
        ({"topic": "a", "transaction_timeout_ms": -5}, "transaction_timeout_ms=-5 must be"),
        ({"topic": "a", "resume_at": -1}, "resume_at=-1 is no batch id"),
        ({"topic": "a", "settings": {"acks": "1"}}, "acks is not a setting of this client"),
        ({"topic": "a", "bootstrap": "nowhere"}, "is not host:port"),
    ],
)
def test_what_cannot_be_is_refused_with_what_would_be_right(
    given: dict[str, Any], sentence: str
) -> None:
    arguments = {"bootstrap": "a:1", "sink_id": "s", **given}

    with pytest.raises(SinkRefused, match=sentence):
        SinkOptions(**arguments)
