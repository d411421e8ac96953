"""`tidelog group`: the verbs about consumer groups, put together."""

from __future__ import annotations

import typer

from tidelog.cli.group.delete import delete
from tidelog.cli.group.describe import describe
from tidelog.cli.group.list import list_
from tidelog.cli.group.reset import reset

app = typer.Typer(
    name="group",
    help="List, describe, reset and delete consumer groups; on any Kafka.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
app.command("list")(list_)
app.command("describe")(describe)
app.command("reset")(reset)
app.command("delete")(delete)
