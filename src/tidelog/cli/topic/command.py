"""`tidelog topic`: the verbs about topics, put together."""

from __future__ import annotations

import typer

from tidelog.cli.topic.alter import alter
from tidelog.cli.topic.create import create
from tidelog.cli.topic.delete import delete
from tidelog.cli.topic.describe import describe
from tidelog.cli.topic.list import list_
from tidelog.cli.topic.reassign import reassign

app = typer.Typer(
    name="topic",
    help="Create, list, describe, delete, alter and move topics; on any Kafka.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
app.command("create")(create)
app.command("list")(list_)
app.command("describe")(describe)
app.command("delete")(delete)
app.command("alter")(alter)
app.command("reassign")(reassign)
