"""`tidelog pipeline`: topics through SQL into tables and topics, checked and run from one file."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidelog.cli.exit_codes import MISUSED, Misused, VerbFailed, verb

if TYPE_CHECKING:
    from tidelog.spark.pipeline import CheckedPlan

app = typer.Typer(
    name="pipeline",
    help="Pipelines on Spark from one file: topics in, SQL, tables or topics out, exactly once.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="A pipeline, in TOML.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON for other programs.")]
BootstrapOrNone = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        "--bootstrap",
        "-b",
        metavar="HOST:PORT[,…]",
        help="Brokers to ask first, instead of the file's.",
    ),
]
Master = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Where Spark runs, instead of the file's: local[4], yarn, …"),
]


@app.command()
def check(
    file: File,
    with_spark: Annotated[
        bool,
        typer.Option("--with-spark", help="Let Spark look at the SQL as well: some seconds more."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find every mistake in a pipeline's file, with line and key, before anything starts.

    **Without Spark**, in a moment:

        tidelog pipeline check orders.toml
        orders.toml:7: sources.orders.shema: is not known here; did you mean 'schema'?

    Looks at keys, types, durations, schemas, columns of sources and of plain queries, the form of
    the SQL, which view reads which, and what Spark does not do with streams. What only Spark knows,
    `--with-spark` asks it. Warnings are told, too, and are no errors.

    `--json` is one document: file, ok, errors and warnings, each with line, key and text. Exit
    codes: 0 it can be run, 2 it cannot.
    """
    with verb("pipeline check"):
        checked = read(file)
        if with_spark and checked.plan is not None:
            with spark_needed("tidelog pipeline check --with-spark"):
                from tidelog.spark.pipeline.job.spark_analysis import analyse

                checked = analyse(checked)
        print(json.dumps(as_document(checked)) if as_json else as_lines(checked))
        if checked.errors:
            raise typer.Exit(MISUSED)


@app.command()
def run(
    file: File,
    bootstrap: BootstrapOrNone = None,
    master: Master = None,
    available_now: Annotated[
        bool,
        typer.Option("--available-now", help="Process what is there now, then end."),
    ] = False,
    log: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Spark's log; spark.log in the checkpoint if not given."),
    ] = None,
    as_json: AsJson = False,
    stop_with_stdin: Annotated[
        bool,
        typer.Option("--stop-with-stdin", help="Stop, as by SIGTERM, when standard input ends."),
    ] = False,
) -> None:
    """Run a pipeline until Ctrl-C, or until everything has been processed.

    **Once**, everything that is there:

        tidelog pipeline run orders.toml --available-now

    **On other clusters** than the file says:

        tidelog pipeline run orders.toml --bootstrap kafka1:9092 --master spark://boss:7077

    A terminal shows rows per second, how far each partition is behind, how long batches take and
    how old a topic's transaction is; a pipe gets a line for each batch, `--json` an object for
    each: event (started, warning, batch, ended) and its fields.

    Ctrl-C and SIGTERM let a batch under way finish; a second one abandons it, which is safe: it
    comes again. The next run goes on from the checkpoint, also after kill -9.

    Exit codes: 0 finished or stopped, 1 a query failed, 2 the file or the usage is wrong, 130
    abandoned. A failure is one line that names the log.
    """
    # Size: the options of one command and the help that teaches them.
    with verb("pipeline run"):
        checked = read(file)
        if checked.plan is None:
            print(as_lines(checked), file=sys.stderr)
            raise typer.Exit(MISUSED)
        check_addresses(bootstrap, master)
        with spark_needed("tidelog pipeline run"):
            from tidelog.cli.pipeline.run import PipelineRunOptions, carry_out

            order = PipelineRunOptions(
                checked=checked,
                bootstrap=bootstrap,
                master=master,
                is_available_now=available_now,
                log=None if log is None else str(log.absolute()),
                as_json=as_json,
                stops_with_stdin=stop_with_stdin,
            )
            raise typer.Exit(carry_out(order))


@contextmanager
def spark_needed(who: str) -> Iterator[None]:
    """One line if Spark or its Java is not there."""
    from tidelog.spark.java import JavaMissing
    from tidelog.spark.session import SparkMissing, require_spark

    try:
        require_spark(who)
        yield
    except (SparkMissing, JavaMissing) as missing:
        raise VerbFailed(str(missing)) from None


def check_addresses(bootstrap: str | None, master: str | None) -> None:
    """By the rules of the file."""
    from tidelog.spark.pipeline.file.name_rules import bootstrap_error, master_error

    if bootstrap is not None and (error := bootstrap_error(bootstrap)) is not None:
        raise Misused(f"--bootstrap: {error}")
    if master is not None and (error := master_error(master)) is not None:
        raise Misused(f"--master: {error}")


def read(file: Path) -> CheckedPlan:
    """Misused if there is no such file."""
    from tidelog.spark import pipeline

    try:
        return pipeline.check(file)
    except OSError as error:
        raise Misused(f"{file}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise Misused(f"{file}: is not UTF-8 text") from None


def as_lines(checked: CheckedPlan) -> str:
    """A line for each error and warning, and one that sums up."""
    lines = [each.as_line(checked.file) for each in checked.diagnostics]
    if checked.plan is not None:
        plan = checked.plan
        parts = [
            (len(plan.sources), "source"),
            (len(plan.steps), "step"),
            (len(plan.sinks), "sink"),
        ]
        counts = ", ".join(counted(number, word) for number, word in parts)
        lines.append(f"{checked.file}: ok: {counts}")
    else:
        errors, warnings = len(checked.errors), len(checked.warnings)
        counts = counted(errors, "error") + (
            f", {counted(warnings, 'warning')}" if warnings else ""
        )
        lines.append(f"{checked.file}: {counts}")
    return "\n".join(lines)


def as_document(checked: CheckedPlan) -> dict[str, object]:
    """For programs."""

    def plain(is_warning: bool) -> list[dict[str, object]]:
        return [
            {"line": each.line, "key": each.key, "text": each.text}
            for each in checked.diagnostics
            if each.is_warning is is_warning
        ]

    return {
        "file": checked.file,
        "ok": not checked.errors,
        "errors": plain(is_warning=False),
        "warnings": plain(is_warning=True),
    }


def counted(number: int, one: str, several: str | None = None) -> str:
    """`1 error`, `2 errors`."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"
