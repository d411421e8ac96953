"""Rules for names and addresses: views, sinks, sink ids, brokers, masters, paths."""

from __future__ import annotations

import posixpath
import re

VIEW = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SINK = re.compile(r"[A-Za-z0-9_-]+")
PIPELINE = re.compile(r"[A-Za-z0-9._-]+")
SINK_ID = re.compile(r"[A-Za-z0-9._-]{1,200}")
_BROKER = re.compile(r"(\[[0-9a-fA-F:]+\]|[^\s:,\[\]]+):(\d{1,5})")
_MASTER = re.compile(r"local(\[.+\])?|local-cluster\[.+\]|(spark|mesos)://.+|k8s://.+|yarn")
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:/")
_PORT_MAX = 65_535
WITHOUT_RENAME = ("s3", "s3a", "s3n", "gs", "wasb", "oss", "cosn")
"""Object stores, which have no real directories."""


def bootstrap_error(text: str) -> str | None:
    """What is wrong with a list of brokers."""
    for each in text.split(","):
        found = _BROKER.fullmatch(each.strip())
        if found is None or not 0 < int(found[2]) <= _PORT_MAX:
            return f"{each.strip()!r} is not a broker address; expected HOST:PORT[,HOST:PORT...]"
    return None


def master_error(text: str) -> str | None:
    """What is wrong with the address of a Spark cluster."""
    if _MASTER.fullmatch(text) is None:
        expected = "expected one like local[*], spark://HOST:7077, yarn, k8s://"
        return f"{text!r} is not a Spark master; {expected}"
    return None


def absolute_path(text: str, base: str) -> str:
    """Relative to the pipeline's file, unless it is absolute or names its file system."""
    if text.startswith("file:"):
        text = "/" + text.removeprefix("file:").lstrip("/")
    if _SCHEME.match(text):
        return text.rstrip("/")
    return posixpath.normpath(posixpath.join(base, text))


def overlap(one: str, other: str) -> bool:
    """Returns whether they are the same directory, or one is below the other."""
    first, second = one.rstrip("/") + "/", other.rstrip("/") + "/"
    return first.startswith(second) or second.startswith(first)
