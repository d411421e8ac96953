"""Options of `format("tidelog")` for writing."""

from __future__ import annotations

import pytest

from tidelog.client.sink.errors import SinkRefused
from tidelog.spark.sink.format_options import read_options

GIVEN = {"kafka.bootstrap.servers": "a:1", "topic": "out", "sinkId": "s"}


def test_spark_does_not_mind_case_and_neither_do_we() -> None:
    options = read_options(
        {
            **GIVEN,
            "KAFKA.COMPRESSION.TYPE": "lz4",
            "kafka.transaction.timeout.ms": "5000",
            "resumeAT": "7",
            "batchBytes": "1000",
            "kafka.request.timeout.ms": "9000",
        },
        default_id=None,
    )

    assert (options.sink_id, options.topic, options.compression) == ("s", "out", "lz4")
    assert (options.transaction_timeout_ms, options.resume_at, options.batch_bytes) == (
        5_000,
        7,
        1_000,
    )
    assert options.settings == {"request.timeout.ms": "9000"}


def test_topics_have_commas_between() -> None:
    given = {"kafka.bootstrap.servers": "a:1", "topics": "x, y", "sinkId": "s"}

    assert read_options(given, default_id=None).topic_names == ("x", "y")


def test_a_write_in_one_piece_needs_no_name() -> None:
    given = {"kafka.bootstrap.servers": "a:1", "topic": "out"}

    assert read_options(given, default_id="made up").sink_id == "made up"
    with pytest.raises(SinkRefused, match="a stream needs the option sinkId"):
        read_options(given, default_id=None)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"sinkId": "s", "topic": "t"}, r"kafka\.bootstrap\.servers must be given"),
        ({**GIVEN, "batchBytes": "much"}, "the option batchbytes must be a number"),
        ({**GIVEN, "kafka.sasl.mechanism": "PLAIN"}, "connections are plain ones so far"),
        ({**GIVEN, "kafka.security.protocol": "SSL"}, "connections are plain ones so far"),
        ({**GIVEN, "kafka.compression.type": "x"}, "compression 'x' is not one of"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(SinkRefused, match=sentence):
        read_options(given, default_id=None)


def test_settings_without_effect_are_told_of() -> None:
    with pytest.warns(UserWarning, match=r"kafka\.linger\.ms has no effect"):
        read_options({**GIVEN, "kafka.linger.ms": "5"}, default_id=None)
