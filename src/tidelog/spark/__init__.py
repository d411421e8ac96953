"""Spark on topics: a source, a sink that publishes each batch exactly once, pipelines, an audit.

Names are imported lazily: Spark's Python workers import this package once per task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidelog.spark.java import JavaMissing as JavaMissing
    from tidelog.spark.java import ensure_java as ensure_java
    from tidelog.spark.session import SparkMissing as SparkMissing
    from tidelog.spark.session import spark_session as spark_session
    from tidelog.spark.sink.arranged import arranged as arranged
    from tidelog.spark.sink.exactly_once import exactly_once as exactly_once

__all__ = [
    "JavaMissing",
    "SparkMissing",
    "arranged",
    "ensure_java",
    "exactly_once",
    "spark_session",
]


def __getattr__(name: str) -> object:
    if name in ("JavaMissing", "ensure_java"):
        from tidelog.spark import java

        return getattr(java, name)
    if name in ("SparkMissing", "spark_session"):
        from tidelog.spark import session

        return getattr(session, name)
    if name in ("arranged", "exactly_once"):
        from importlib import import_module

        from tidelog.spark.session import require_spark

        require_spark(f"tidelog.spark.{name}")
        return getattr(import_module(f"tidelog.spark.sink.{name}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
