"""`./dev bench` end to end: a tiny run gives the whole table. Nothing here is timed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

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
