"""`./dev bench`: one broker by default, and the benchmarks of three by name."""

from __future__ import annotations

import pytest

from bench.__main__ import OF_THREE, ON_SPARK, main


def test_the_help_names_every_benchmark_of_three_brokers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])

    told = capsys.readouterr().out
    assert set(OF_THREE) == {
        *("failover", "rf3", "startup", "idle", "partitions", "pauses", "groups", "transactions")
    }
    for name, bench in OF_THREE.items():
        assert f"./dev bench {name}" in told
        assert bench.idea in told


def test_the_help_names_those_on_spark(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])

    told = capsys.readouterr().out
    assert {"spark", "audit"} == set(ON_SPARK)
    for name, bench in ON_SPARK.items():
        assert f"./dev bench {name}" in told
        assert bench.idea in told


@pytest.mark.parametrize("name", sorted(OF_THREE))
def test_each_of_them_explains_its_own_options(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])

    assert ended.value.code == 0
    told = capsys.readouterr().out
    assert f"./dev bench {name}" in told
    assert ("--kafka" in told) is (name != "pauses")


@pytest.mark.parametrize("arguments", [["failover", "--kills", "many"], ["nothing-like-that"]])
def test_bad_arguments_are_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)

    assert ended.value.code == 2
    assert "usage: ./dev bench" in capsys.readouterr().err


def test_a_benchmark_without_brokers_is_named_and_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "./dev bench columns" in capsys.readouterr().out

    assert main(["columns", "--rows", "2000", "--repetitions", "1", "--only", "100 B"]) == 0
    told = capsys.readouterr().out
    assert "decode 100 B, zstd" in told
    assert "1 KiB" not in told
