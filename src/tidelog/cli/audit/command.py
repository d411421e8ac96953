"""`tidelog audit`: what producers were answered, held against what the topic holds; on Spark."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidelog.cli.client_options import (
    DEFAULT_BOOTSTRAP,
    DEFAULT_TIMEOUT,
    AsJson,
    CommandConfig,
    Timeout,
    access,
    pairs_of,
)
from tidelog.cli.exit_codes import FAILED, Misused, verb

if TYPE_CHECKING:
    from tidelog.spark.audit.report import AuditReport
    from tidelog.spark.audit.request import AuditRequest

NAME = "tidelog audit"

Journals = Annotated[
    list[Path],
    typer.Option("--acks", metavar="JOURNAL", help="An acks journal of a producer; repeatable."),
]
Topic = Annotated[
    str | None, typer.Option("--topic", metavar="NAME", help="If the journals are about several.")
]
Brokers = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        "--bootstrap",
        "-b",
        metavar="HOST:PORT[,…]",
        envvar="TIDELOG_BOOTSTRAP",
        help="Read the topic through these brokers; localhost:9092 without --segments.",
    ),
]
Segments = Annotated[
    list[str] | None,
    typer.Option(
        "--segments",
        metavar="[NODE=]DIR",
        help="Log directories of brokers, or the data directory of `tidelog up`; repeatable.",
    ),
]
PublishedTopics = Annotated[
    list[str] | None,
    typer.Option("--published", metavar="TOPIC", help="Where a sink publishes; repeatable."),
]
PublishedTables = Annotated[
    list[Path] | None,
    typer.Option("--published-table", metavar="DIR", help="The same, a Parquet table."),
]
MayFilter = Annotated[
    bool, typer.Option("--may-filter", help="The sink need not publish every record.")
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict", help="All writers' journals are given, and the sink is finished: no rest."
    ),
]
Compacted = Annotated[
    bool, typer.Option("--compacted", help="With --segments alone: the topic is compacted.")
]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Write findings there, as Parquet.")
]
Shown = Annotated[int, typer.Option("--show", min=0, help="Maximum number of findings to show.")]
Master = Annotated[
    str | None, typer.Option("--master", help="Spark's master; all cores of this machine.")
]
Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark; repeatable."),
]


def audit(
    acks: Journals,
    topic: Topic = None,
    bootstrap: Brokers = None,
    segments: Segments = None,
    published: PublishedTopics = None,
    published_table: PublishedTables = None,
    may_filter: MayFilter = False,
    strict: Strict = False,
    compacted: Compacted = False,
    out: Out = None,
    show: Shown = 20,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Compare what producers were answered with what a topic holds, record by record.

    **Producers that kept a journal** (`tidelog produce --journal acks.jsonl`), on Spark:

        tidelog audit --acks acks.jsonl --topic orders --bootstrap localhost:9092

    **From the disks**, whether brokers run or not; replicas are compared with each other:

        tidelog audit --acks acks.jsonl --segments ./data
        tidelog audit --acks acks.jsonl --segments 1=/disk1/logs --segments 2=/disk2/logs

    **With what a sink made of it**, a topic or a Parquet table (docs/spark-audit.md says how a
    published record names its source):

        tidelog audit --acks acks.jsonl -b localhost:9092 --published orders-clean
        tidelog audit --acks acks.jsonl --segments ./data --published-table tables/orders

    Every record is kept, lost, misplaced, duplicated, reordered, refused but present, aborted but
    read, or one whose outcome its producer does not know. What retention or compaction
    took, what is not committed yet and what others wrote is no finding.

    Exit codes: 0 nothing is wrong, 1 there are findings, 2 it could not be judged.
    """
    # Size: the options of one command and the help that teaches them.
    with verb("audit"):
        at = access(bootstrap or DEFAULT_BOOTSTRAP, command_config, timeout)
        from_brokers = bootstrap is not None or not segments
        settings = {"client.id": "tidelog-audit", **at.settings} if from_brokers else None
        extra = pairs_of("--conf", conf)
        from tidelog.spark.session import SparkMissing, require_spark

        try:
            require_spark(NAME)
        except SparkMissing as error:
            raise Misused(str(error)) from None
        from tidelog.spark.audit.request import AuditRequest

        request = AuditRequest(
            journals=tuple(acks),
            topic=topic,
            settings=settings,
            segments=tuple(segments or ()),
            published=tuple(published or ()),
            published_tables=tuple(published_table or ()),
            may_filter=may_filter,
            is_strict=strict,
            is_compacted=compacted,
            out=out,
            timeout_s=at.timeout_s,
            shown_max=show,
        )
        report = run_audit(request, master=master, extra=extra)
        if as_json:
            print(json.dumps(report.as_json(), ensure_ascii=False))
        else:
            from tidelog.cli.audit.report import print_report

            print_report(report)
    if not report.is_clean:
        raise typer.Exit(FAILED)


def run_audit(request: AuditRequest, *, master: str | None, extra: dict[str, str]) -> AuditReport:
    """Whatever keeps it from a verdict is Misused."""
    from tidelog.spark.audit.errors import AuditRefused
    from tidelog.spark.audit.launcher import launch_audit

    try:
        return launch_audit(request, app=NAME, master=master, extra=extra, say=_say)
    except AuditRefused as error:
        raise Misused(str(error)) from None


def _say(text: str) -> None:
    """Progress, for people who wait."""
    if sys.stderr.isatty() and not os.environ.get("NO_PROGRESS"):
        print(f"{text} …", file=sys.stderr)
