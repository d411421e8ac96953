"""`tidelog demo`: the words that people read; what it does is in tidelog.demo."""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tidelog.cli.exit_codes import Misused, complain, one_line, verb

FOUND_SOMETHING = 1
COULD_NOT_RUN = 2
RATE = 100
PAUSE_S = 3.0


class DemoStory(StrEnum):
    """What is played."""

    MISSION = "mission"
    LEADER = "leader"


StoryOption = Annotated[DemoStory, typer.Argument(metavar="[STORY]", help="mission, or leader.")]
Bootstrap = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        "--bootstrap",
        "-b",
        metavar="HOST:PORT[,…]",
        help="Play it on this cluster, in topics of its own, instead of on brokers of its own.",
    ),
]
Rate = Annotated[int, typer.Option("--rate", min=1, max=10_000, help="Orders per second.")]
Pause = Annotated[
    float, typer.Option("--pause", min=0, max=600, help="Seconds between one blow and the next.")
]
Keep = Annotated[
    Path | None,
    typer.Option(
        "--keep", metavar="DIR", help="Work in this new directory, and leave everything there."
    ),
]


def demo(
    story: StoryOption = DemoStory.MISSION,
    bootstrap: Bootstrap = None,
    rate: Rate = RATE,
    pause: Pause = PAUSE_S,
    keep: Keep = None,
) -> None:
    """Orders flow through brokers and Spark while both are killed; then every one is accounted for.

    **The mission**, about two minutes, needs nothing but this command:

        tidelog demo

    Four brokers over two racks take an order stream; a Spark pipeline publishes its revenue in a
    topic, in transactions. A leader is killed, a whole rack, the transaction coordinator and
    Spark's driver, each with kill -9, and each returns. Then the audit says how many orders were
    sent, acknowledged, processed, lost or duplicated, and whether each result was published once.

    **On another cluster**, Apache Kafka or Tidelog: no broker is touched, everything is a topic:

        tidelog demo --bootstrap localhost:9092

    **Keep** journal, pipeline, tables and logs, and look at them:

        tidelog demo --keep mission
        tidelog audit --acks mission/acks.jsonl --segments mission/cluster

    **What acks=1 loses** and acks=all keeps when a leader dies; some seconds, no Spark:

        tidelog demo leader

    Exit codes: 0 nothing is lost, missing or double; 1 something is; 2 it could not run.
    """
    # Size: the options of one command and the help that teaches them.
    with verb("demo"):
        if story is DemoStory.LEADER:
            if bootstrap is not None or keep is not None:
                raise Misused("leader takes neither --bootstrap nor --keep: it has its own brokers")
            from tidelog.cli.demo_leader import demo_leader

            raise typer.Exit(demo_leader())
        _check(bootstrap)
        with _directory(keep) as directory, _terminable():
            raise typer.Exit(play(directory, bootstrap=bootstrap, rate=rate, pause_s=pause))


def play(directory: Path, *, bootstrap: str | None, rate: int, pause_s: float) -> int:
    """The exit code."""
    from rich.console import Console

    from tidelog.cli.audit.report import PIPE_COLUMNS
    from tidelog.cli.demo_report import print_account
    from tidelog.demo.errors import DemoFailed
    from tidelog.demo.mission import DemoOptions, run

    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console = Console(highlight=False, soft_wrap=True, width=PIPE_COLUMNS)
    started_s = time.monotonic()

    def say(text: str) -> None:
        console.print(f"[dim]{time.monotonic() - started_s:5.1f} s[/dim]  {text}")

    options = DemoOptions(directory=directory, rate=rate, pause_s=pause_s, bootstrap=bootstrap)
    try:
        account = run(options, say)
    except DemoFailed as error:
        complain("demo", f"could not run: {error}")
        return COULD_NOT_RUN
    print_account(account, console, sink="topic" if bootstrap else "table")
    return 0 if account.is_clean else FOUND_SOMETHING


def _check(bootstrap: str | None) -> None:
    """Everything that can be known before anything is started."""
    from tidelog.cli.pipeline.command import check_addresses
    from tidelog.spark.java import JavaMissing, ensure_java
    from tidelog.spark.session import SparkMissing, require_spark

    check_addresses(bootstrap, None)
    try:
        require_spark("tidelog demo")
        ensure_java()
    except (SparkMissing, JavaMissing) as missing:
        raise Misused(f"{missing}; `tidelog demo leader` needs no Spark") from None


@contextmanager
def _directory(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory(
            prefix="tidelog-demo-", ignore_cleanup_errors=True
        ) as made:
            yield Path(made)
        return
    try:
        keep.mkdir(parents=True)
    except FileExistsError:
        raise Misused(f"--keep: {keep} is there already; say a new directory") from None
    except OSError as error:
        raise Misused(f"--keep: {keep}: {one_line(error.strerror or str(error))}") from None
    yield keep.absolute()


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM ends it as Ctrl-C does: everything that was started is ended first."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
