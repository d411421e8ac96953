"""Where Apache Kafka's jars are: resolved once through maven, then remembered in the user's cache.

The pom next to this file names the version. Maven's own settings decide where artifacts come from,
and it checks each against its checksum. `resolved` does the same for any other pom.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

POM = Path(__file__).with_name("pom.xml")
STREAMS_POM = Path(__file__).with_name("streams.xml")
LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
RESOLVE_TIMEOUT_S = 600
_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:build-classpath"


def _version() -> str:
    found = re.search(r"<kafka\.version>(.+)</kafka\.version>", POM.read_text())
    assert found, "the pom names no Kafka version"
    return found.group(1)


KAFKA_VERSION = _version()


class KafkaUnavailable(Exception):
    """Apache Kafka cannot run here; the message says what is missing."""


def java_available() -> bool:
    """Can Apache Kafka run on this machine? The first call may download its jars."""
    return unavailable_reason() is None


@functools.cache
def unavailable_reason() -> str | None:
    """Why Apache Kafka cannot run here (fit for a skip message), or None."""
    try:
        java_program()
        class_path()
    except KafkaUnavailable as unavailable:
        return str(unavailable)
    return None


def java_program() -> str:
    """The `java` of JAVA_HOME, or of the path."""
    home = os.environ.get("JAVA_HOME")
    candidate = Path(home, "bin", "java") if home else None
    program = str(candidate) if candidate and candidate.exists() else shutil.which("java")
    if program is None:
        raise KafkaUnavailable("no java on this machine")
    return program


@functools.cache
def class_path() -> str:
    """Kafka's class path, from the cache or from maven."""
    return resolved(POM, f"Apache Kafka {KAFKA_VERSION}")


@functools.cache
def streams_class_path() -> str:
    """That of Kafka Streams with its examples."""
    return resolved(STREAMS_POM, f"Kafka Streams {KAFKA_VERSION}")


def resolved(pom: Path, name: str) -> str:
    """The class path that a pom stands for, from the cache or from maven; messages call it so."""
    cached = _cache_file(pom, name)
    if cached.exists():
        known = cached.read_text().strip()
        if known and all(os.path.exists(jar) for jar in known.split(os.pathsep)):
            return known
    return _resolve(pom, name, cached)


def _resolve(pom: Path, name: str, target: Path) -> str:
    maven = shutil.which("mvn")
    if maven is None:
        raise KafkaUnavailable(f"no mvn on this machine to resolve {name}")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(f".{os.getpid()}")
    command = [maven, "-q", "-B", "--strict-checksums", "-f", str(pom), _GOAL]
    command.append(f"-Dmdep.outputFile={partial}")
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=RESOLVE_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise KafkaUnavailable(f"mvn took over {RESOLVE_TIMEOUT_S} s to resolve {name}") from None
    if run.returncode != 0 or not partial.exists():
        last_lines = "\n".join((run.stdout + run.stderr).strip().splitlines()[:5])
        raise KafkaUnavailable(f"mvn cannot resolve {name}: {last_lines}")
    partial.replace(target)
    return target.read_text().strip()


def _cache_file(pom: Path, name: str) -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    fingerprint = hashlib.sha256(pom.read_bytes()).hexdigest()[:12]
    stem = re.sub(r"[^a-z0-9.]+", "-", name.lower())
    return Path(base, "tidelog", f"{stem}-{fingerprint}.classpath")
