"""`./dev bench` end to end: tiny runs give whole tables. No figure is judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.process.waiting import PATIENCE_S
from tests.tidy.reading import ROOT


def test_a_tiny_run_measures_everything_and_prints_the_table(tmp_path: Path) -> None:
    samples = tmp_path / "bench.json"
    command = [sys.executable, "-m", "bench", "--tiny", "--no-kafka", "--json", str(samples)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=10 * PATIENCE_S)

    assert run.returncode == 0, run.stderr
    figures = json.loads(samples.read_text())["figures"]
    measured = {(figure["metric"], figure["unit"]) for figure in figures}
    for size in ("100 B", "1 KiB", "10 KiB"):
        for partitions in ("1 partition", "6 partitions"):
            for verb in ("produce", "consume"):
                what = f"{verb} {size}, {partitions}"
                units = ("MB/s", "k records/s", "broker CPU-s/GB")
                assert {(what, unit) for unit in units} <= measured
    connections = "50 connections, one record each in flight"
    assert {
        ("one in flight, bare socket: p50", "ms"),
        ("one in flight, librdkafka: p99", "ms"),
        (connections, "requests/s"),
        (connections, "broker CPU-µs/request"),
        ("exec until serving", "s"),
        ("exec until the first acknowledged write", "s"),
        ("idle memory", "MiB"),
        ("idle CPU", "% of a core"),
    } <= measured
    steps = [metric for metric, unit in measured if unit == "µs/request"]
    for step in ("decode", "decide", "write", "encode", "socket"):
        assert any(metric.startswith(f"small Produce: {step}") for metric in steps), step
    assert all(figure["samples"]["Tidelog"] for figure in figures)
    assert all(figure["metric"] in run.stdout for figure in figures)


OF_THREE: dict[str, tuple[list[str], set[tuple[str, str]]]] = {
    "failover": (
        ["--kills", "2", "--stops", "1", "--stranger-kills", "1"],
        {
            ("write gap, kill -9 of a leader: longest", "ms"),
            ("write gap, kill -9 of a leader that is the controller: median", "ms"),
            ("write gap, SIGTERM of a leader: p90", "ms"),
            (
                "write gap, kill -9 of a leader, the writer not connected to others: median",
                "ms",
            ),
            ("kill -9 of a leader until another leads: median", "ms"),
            ("write gap, kill -9 of a leader: how many", "times"),
        },
    ),
    "rf3": (
        ["--effort", "tiny"],
        {
            ("produce 1 KiB, 1 partition", "MB/s"),
            ("produce 100 B, 6 partitions", "k records/s"),
            ("produce 100 B, 6 partitions", "broker CPU-s/GB"),
            ("one in flight, bare socket: p50", "ms"),
            ("one in flight, librdkafka: p99", "ms"),
            ("50 connections, one record each in flight", "requests/s"),
        },
    ),
    "startup": (
        ["--times", "1"],
        {
            (f"{start}: {step}", "s")
            for start in ("cold start", "start after kill -9 of all")
            for step in (
                "processes started",
                "all brokers listening",
                "controller active",
                "all brokers registered",
                "all brokers unfenced",
                "first acknowledged write",
            )
        }
        | {("cold start: topic created", "s")},
    ),
    "idle": (
        ["--times", "1", "--seconds", "0.2"],
        {
            ("three idle brokers: CPU", "% of a core"),
            ("idle broker: resident memory, each", "MiB"),
            ("three idle brokers: memory (PSS)", "MiB"),
        },
    ),
    "partitions": (
        ["--count", "7", "--seconds", "0.1"],
        {
            ("7 partitions, made (all led and in sync)", "s"),
            ("7 partitions, idle memory, each", "MiB"),
            ("7 partitions, kill -9 of a broker that is the controller: all led again", "s"),
            ("7 partitions, kill -9 of a broker that is not: all led again", "s"),
        },
    ),
    "groups": (
        ["--tiny"],
        {
            ("classic: 2 members start, until all are assigned", "s"),
            ("consumer: 2 members start, until all are assigned", "s"),
            ("commits, one under way at a time, connections: 2", "requests/s"),
            ("commits, one under way at a time, connections: 1: p50", "ms"),
            ("consumer: longest pause between commits, kill -9 of the coordinator", "ms"),
            ("3 groups with a member each that only sends heartbeats: CPU", "% of a core"),
            ("load of a coordinator with 100 offsets", "s"),
        },
    ),
    "transactions": (
        ["--tiny"],
        {
            ("librdkafka: transactions of 100 records, 1 partition", "commits/s"),
            ("librdkafka: transactions of 100 records, 6 partitions: p99", "ms"),
            ("Java, version 2: transactions of 100 records, 6 partitions: p50", "ms"),
            ("Java, classic: transactions of 100 records, 1 partition", "broker CPU-µs/commit"),
            ("librdkafka: longest pause between commits, kill -9 of the coordinator", "ms"),
        },
    ),
    "pauses": (
        ["--minutes", "0.02", "--spinners", "1"],
        {("pauses", "times"), ("brokers fenced although they lived", "times")},
    ),
}


MARKS = {"transactions": [pytest.mark.java]}
"""Beside `long`; the default run has the tiny run on one broker."""


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=MARKS.get(each, [])) for each in OF_THREE],
)
def test_a_tiny_run_on_three_brokers_gives_its_table(name: str, tmp_path: Path) -> None:
    options, expected = OF_THREE[name]
    samples = tmp_path / "bench.json"
    command = [sys.executable, "-m", "bench", name, *options, "--json", str(samples)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=20 * PATIENCE_S)

    assert run.returncode == 0, run.stderr
    figures: list[dict[str, Any]] = json.loads(samples.read_text())["figures"]
    assert expected <= {(figure["metric"], figure["unit"]) for figure in figures}
    assert all(figure["samples"]["Tidelog"] for figure in figures)
    assert all(figure["metric"] in run.stdout for figure in figures)
    assert " met" in run.stdout.splitlines()[-1]


@pytest.mark.long
@pytest.mark.java
def test_a_tiny_run_on_spark_reads_writes_and_copies_and_gives_its_table(tmp_path: Path) -> None:
    samples = tmp_path / "bench.json"
    options = ["--tiny", "--size", "100 B", "--json", str(samples)]
    command = [sys.executable, "-m", "bench", "spark", *options]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=20 * PATIENCE_S)

    assert run.returncode == 0, run.stderr
    figures: list[dict[str, Any]] = json.loads(samples.read_text())["figures"]
    asked = {
        "read → noop": ("Tidelog", "Spark's own", "confluent-kafka", "ready columns"),
        "write, with the shuffle": ("Tidelog", "Spark's own"),
        "write, without the shuffle": ("Tidelog", "Spark's own"),
        "write, ours with, theirs without": ("Tidelog", "Spark's own"),
        "copy topic → topic": ("Tidelog", "Spark's own"),
    }
    measured = {figure["metric"]: figure["samples"] for figure in figures}
    for title, everybody in asked.items():
        samples_of = measured.pop(f"{title}, 100 B")
        assert sorted(samples_of) == sorted(everybody)
        assert all(len(found) == 1 for found in samples_of.values())
    assert not measured
    assert all(figure["metric"] in run.stdout for figure in figures)
    assert "of 5 met" in run.stdout.splitlines()[-1]


@pytest.mark.long
@pytest.mark.java
@pytest.mark.parametrize("where", [[], ["--brokers"]], ids=["segments", "brokers"])
def test_a_small_audit_finds_what_is_planted_and_says_so(where: list[str], tmp_path: Path) -> None:
    options = ["--records", "3000", "--planted", "3", "--directory", str(tmp_path), *where]
    command = [sys.executable, "-m", "bench", "audit", *options]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=10 * PATIENCE_S)

    assert run.returncode == 0, run.stdout + run.stderr
    each = "{'duplicated': 18, 'lost': 18, 'refused but present': 18, 'reordered': 18}"
    assert f"planted {each}\nfound   {each}\n" in run.stdout
    assert list(tmp_path.iterdir()) == []
