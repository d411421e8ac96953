"""An audit from nothing: journals are looked at, Spark is started, and ended if it was ours."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from tidelog.client.settings import ConfigError
from tidelog.client.shells.blocking_clients import TimedOut
from tidelog.client.shells.connectivity import unreachable
from tidelog.spark.audit.audit import Say, audit, read_journals
from tidelog.spark.audit.errors import AuditRefused
from tidelog.spark.audit.report import AuditReport
from tidelog.spark.audit.request import AuditRequest
from tidelog.spark.java import JavaMissing
from tidelog.spark.session import SparkMissing, spark_session

DRIVER_MEMORY = "2g"
"""Of a local Spark, which does all the work in one process; Spark's own default is half of it."""


def launch_audit(
    request: AuditRequest, *, app: str, master: str | None, extra: Mapping[str, str], say: Say
) -> AuditReport:
    """AuditRefused for whatever keeps it from a verdict."""
    journals = read_journals(
        request
    )  # a bad one is reported before Spark takes its seconds to start
    _check_brokers(request)
    is_ours = SparkSession.getActiveSession() is None
    try:
        spark = spark_session(
            app=app, master=master, extra={"spark.driver.memory": DRIVER_MEMORY, **extra}
        )
    except (JavaMissing, SparkMissing) as error:
        raise AuditRefused(str(error)) from None
    try:
        return audit(spark, request, say, journals)
    except (ConfigError, TimedOut) as error:
        raise AuditRefused(str(error)) from None
    finally:
        if is_ours:
            spark.stop()


def _check_brokers(request: AuditRequest) -> None:
    """They may still be on their way up, says a client; nobody waits for Spark to hear that."""
    if request.settings is None:
        return
    try:
        trouble = unreachable(request.settings)
    except ConfigError as error:
        raise AuditRefused(str(error)) from None
    if trouble is not None:
        raise AuditRefused(trouble)
