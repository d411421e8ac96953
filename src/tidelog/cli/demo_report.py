"""The mission's account for people who see it for the first time: a number, and what it means."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tidelog.demo.accounts import Account, euros

Row = tuple[str, str, str]


def print_account(account: Account, console: Console, *, sink: str) -> None:
    """The table, what is wrong, and the verdict last."""
    console.print()
    console.print(_table(account, sink))
    for each in account.findings:
        text = f"{each.name}, {each.count:,} times; for example: {each.example}"
        console.print(Text(f"  {text}", style="red"))
    console.print(_verdict(account))


def rows(account: Account, sink: str) -> list[Row]:
    """What was sent, what the brokers kept, what the pipeline made of it."""
    parts = (
        f"{account.orders:,} orders, {account.repeats:,} of them sent twice, and "
        f"{account.broken:,} broken records"
    )
    promise = "the brokers promised to keep it"
    if account.refused or account.unknown:
        promise += f"; {account.refused:,} were refused, of {account.unknown:,} nobody knows"
    return [
        ("sent", f"{account.sent:,}", parts),
        ("acknowledged", f"{account.acknowledged:,}", promise),
        ("kept", f"{account.kept:,}", "acknowledged, and in the topic where the brokers said"),
        ("lost", f"{account.lost:,}", "acknowledged, and not in the topic"),
        ("duplicated", f"{account.duplicated:,}", "in the topic more often than it was sent"),
        ("processed", f"{account.processed:,}", f"orders in the pipeline's {sink}"),
        ("missing", f"{account.missing:,}", "acknowledged orders that were not processed"),
        ("double", f"{account.double:,}", "processed more than once"),
        ("sent twice", f"{account.dropped:,}", "second copies, recognised and left out"),
        ("dead letters", f"{account.dead:,}", "broken records, set aside with the reason"),
        ("results", f"{account.results:,}", _results(account)),
        ("revenue", euros(account.revenue_cents), _revenue(account)),
    ]


def _results(account: Account) -> str:
    if any(each.name.startswith("result ") for each in account.findings):
        return "records in the revenue topic: not those that the batches came to"
    return "records in the revenue topic, read committed: each result of each batch, once"


def _revenue(account: Account) -> str:
    if any(each.name == "wrong revenue" for each in account.findings):
        return "is not what the orders add up to"
    return "to the cent what the orders add up to, for each minute and country"


_BAD = ("lost", "duplicated", "missing", "double")


def _table(account: Account, sink: str) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_column(style="dim")
    for name, number, meaning in rows(account, sink):
        style = None
        if name in _BAD:
            style = "green" if number == "0" else "bold red"
        table.add_row(Text(name), Text(number, style=style or ""), meaning)
    return table


def _verdict(account: Account) -> Text:
    if account.is_clean:
        text = (
            "every acknowledged order was kept and processed exactly once, and every result "
            "published exactly once: none lost, none double"
        )
        return Text(text, style="bold green")
    return Text("NOT what was promised: see above", style="bold red")
