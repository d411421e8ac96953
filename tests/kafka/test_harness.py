"""The harness itself: Kafka starts, its tools talk to it, and a machine without Java says so."""

from __future__ import annotations

import shutil

import pytest

from tests.kafka import KafkaBroker, KafkaUnavailable, Tool, class_path, run_tool
from tests.kafka.class_path import KAFKA_VERSION, java_program, unavailable_reason


def test_a_machine_without_java_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a java program the reason is named, so that a skip explains itself."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(shutil, "which", lambda _program: None)
    with pytest.raises(KafkaUnavailable, match="no java"):
        java_program()


def test_a_machine_without_maven_and_cache_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    """Jars that were never resolved cannot be had without maven, and the reason says so."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda _program: None)
    with pytest.raises(KafkaUnavailable, match="no mvn"):
        class_path.class_path.__wrapped__()


@pytest.mark.java
@pytest.mark.long
def test_kafka_starts_and_its_tools_reach_it() -> None:
    """One broker comes up, a tool makes a topic on it, another reads the topic's offsets."""
    if reason := unavailable_reason():
        pytest.skip(reason)
    with KafkaBroker(settings={"num.partitions": "2"}) as kafka:
        servers = ["--bootstrap-server", kafka.address]
        made = run_tool(Tool.TOPICS, [*servers, "--create", "--topic", "made"])
        offsets = run_tool(Tool.GET_OFFSETS, [*servers, "--topic", "made"])
        version = run_tool(Tool.BROKER_API_VERSIONS, ["--version"])
    assert made.exit_code == 0, made.errors
    assert offsets.output.splitlines() == ["made:0:0", "made:1:0"]
    assert KAFKA_VERSION in version.output
