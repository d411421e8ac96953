"""`tidelog transaction`: the verbs about transactions, put together."""

from __future__ import annotations

import typer

from tidelog.cli.transaction.abort import abort
from tidelog.cli.transaction.describe import describe
from tidelog.cli.transaction.find_hanging import find_hanging_
from tidelog.cli.transaction.list import list_

app = typer.Typer(
    name="transaction",
    help="List and describe transactions, find and abort hanging ones; on any Kafka.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
app.command("list")(list_)
app.command("describe")(describe)
app.command("find-hanging")(find_hanging_)
app.command("abort")(abort)
