"""The full command line with its help; what each command does lives behind its own front door."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tidelog import __version__
from tidelog.cli import demo, elect, lab, quorum
from tidelog.cli.audit.command import audit
from tidelog.cli.broker_remove import remove
from tidelog.cli.cluster import down, fault, status, up
from tidelog.cli.consume.command import consume
from tidelog.cli.group.command import app as group
from tidelog.cli.pipeline.command import app as pipeline
from tidelog.cli.produce.command import produce
from tidelog.cli.topic.command import app as topic
from tidelog.cli.transaction.command import app as transaction

app = typer.Typer(
    name="tidelog",
    help="A replicated commit log that speaks Apache Kafka's wire protocol.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
app.command()(demo.demo)
app.command()(up.up)
app.command()(status.status)
app.command()(down.down)
app.add_typer(fault.app)
app.add_typer(topic)
app.add_typer(group)
app.add_typer(transaction)
app.command()(produce)
app.command()(consume)
app.command()(elect.elect)
app.add_typer(quorum.app)
app.add_typer(lab.app)
app.command()(audit)
app.add_typer(pipeline)


class LogLevel(StrEnum):
    """How much a broker says about itself."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def _version(wanted: bool) -> None:
    if wanted:
        print(f"tidelog {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version and leave."
        ),
    ] = False,
) -> None:
    """Nothing but its options."""


ConfigFile = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Settings, in TOML.")
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting above the file's; repeatable."),
]
ReadyFile = Annotated[
    Path | None,
    typer.Option(
        "--ready-file",
        metavar="FILE",
        help="Written when clients may come: a line host:port for each listener.",
    ),
]
Level = Annotated[
    LogLevel | None,
    typer.Option("--log-level", help="Instead of the setting tidelog.log.level (info)."),
]
FaultSocket = Annotated[
    Path | None,
    typer.Option(
        "--faults",
        metavar="SOCKET",
        help="Make faults possible, commanded over this Unix socket. Only for tests.",
    ),
]
StopWithStdin = Annotated[
    bool,
    typer.Option("--stop-with-stdin", help="Stop, as by SIGTERM, when standard input ends."),
]


broker_app = typer.Typer(
    name="broker",
    invoke_without_command=True,
    subcommand_metavar="[remove ID]",
    rich_markup_mode="markdown",
)
broker_app.command("remove")(remove)


@broker_app.callback()
def broker(
    context: typer.Context,
    config: ConfigFile = None,
    overrides: Overrides = None,
    ready_file: ReadyFile = None,
    log_level: Level = None,
    faults: FaultSocket = None,
    stop_with_stdin: StopWithStdin = False,
) -> None:
    """Run one broker until SIGTERM or Ctrl-C; or remove one from a cluster (`broker remove`).

    Settings have Kafka's names. Any Kafka client can connect to `listeners`.

    **The smallest broker**, data in ./data, on port 9092 of this machine:

        tidelog broker --set node.id=1 --set log.dirs=data \\
          --set listeners=PLAINTEXT://127.0.0.1:9092

    **From a file**, with one setting changed:

        tidelog broker --config broker.toml --set log.retention.hours=24

    **broker.toml**: names with dots need no quotes, tables are fine, too:

        node.id = 1
        log.dirs = "/var/lib/tidelog"
        listeners = "PLAINTEXT://10.0.0.5:9092"
        tidelog.fsync = "group"

    A name that does not exist or a value that is not allowed is refused at the start, with its
    line and what is allowed. Port 0 takes a free port; the log and `--ready-file` tell which.

    **For tests**: cut, delay, hold or refuse what it sends and gets (docs/fault-gate.md):

        tidelog broker --config broker.toml --faults gate.sock --stop-with-stdin

    Exit codes: 0 stopped gracefully, 1 failed or could not start, 2 bad settings or usage.
    """
    # Size: the options of one command and the help that teaches them.
    if context.invoked_subcommand is not None:
        return
    from tidelog.worlds.runtime.broker import run_broker

    if config is None and not overrides:
        raise typer.BadParameter("say which settings: --config FILE or --set KEY=VALUE")
    code = run_broker(
        None if config is None else str(config),
        overrides or (),
        ready_file=None if ready_file is None else str(ready_file),
        log_level=None if log_level is None else log_level.value,
        faults=None if faults is None else str(faults),
        stop_with_stdin=stop_with_stdin,
    )
    raise typer.Exit(code)


app.add_typer(broker_app)


@app.command()
def dump(
    path: Annotated[Path, typer.Argument(metavar="DIR", help="A log directory, or part of it.")],
    records: Annotated[
        bool, typer.Option("--records", help="Show every record, decompressed, not only batches.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object per line, for other programs.")
    ] = False,
) -> None:
    """Show what the files of a broker say. Reads only; stop the broker first.

    DIR is a log directory (an entry of `log.dirs`), a partition's directory, or a single file.

    **Everything in a log directory**: checkpoints, leader epochs, batches, indexes, producers:

        tidelog dump /var/lib/tidelog

    **The records of one partition**, keys and values as text or hexadecimal:

        tidelog dump --records /var/lib/tidelog/orders-0

    **All batches with a wrong checksum**:

        tidelog dump --json DIR | jq 'select(.crc_is_valid == false)'

    Apache Kafka writes the same formats, so it shows Kafka's directories as well.
    """
    from tidelog.cli.dump import print_dump

    raise typer.Exit(print_dump(str(path), with_records=records, as_json=as_json))
