"""`tidelog demo leader`: a leader's death in the terminal, a verdict, an honest exit code."""

from __future__ import annotations

import time
from collections import Counter

from rich.console import Console
from rich.table import Table

from tidelog.cluster.cluster import Cluster
from tidelog.cluster.errors import ClusterError
from tidelog.lab.evidence import Entry
from tidelog.lab.failover_demo import Accounts, DemoFailed, Order, run

FOUND_SOMETHING = 1
COULD_NOT_RUN = 2
BROKERS = 3


def demo_leader() -> int:
    """Three brokers, a leader that dies with records of its own, and what became of each."""
    console = Console(highlight=False, soft_wrap=True)
    started_s = time.monotonic()

    def say(text: str) -> None:
        console.print(f"[dim]{time.monotonic() - started_s:5.2f} s[/dim]  {text}")

    try:
        with Cluster(brokers=BROKERS) as cluster:
            say(f"three brokers are ready at {cluster.bootstrap_servers}")
            accounts = run(cluster, say)
    except (DemoFailed, ClusterError) as error:
        console.print(f"[red]the demo could not run:[/red] {error}")
        return COULD_NOT_RUN
    console.print(_fences(accounts))
    console.print(_tails(accounts))
    console.print(_fates(accounts))
    return _verdict(console, accounts)


def _fences(accounts: Accounts) -> Table:
    """Document 3's picture: who had what when the leader died."""
    table = Table(title="when the leader died", title_justify="left")
    for name in ("broker", "was", "log end offset", "high watermark"):
        table.add_column(name)
    for broker_id, end in sorted(accounts.at_the_kill.log_end_offsets.items()):
        role = "leader, killed" if broker_id == accounts.dead else "follower"
        if broker_id == accounts.next_leader:
            role += ", leads next"
        fence = accounts.at_the_kill.high_watermark if broker_id == accounts.dead else ""
        table.add_row(str(broker_id), role, str(end), str(fence))
    return table


def _tails(accounts: Accounts) -> Table:
    """What truncation did to the old leader's log, offset by offset."""
    table = Table(
        title=f"the end of broker {accounts.dead}'s log, offset by offset", title_justify="left"
    )
    for name in ("offset", "when it died", "after its return"):
        table.add_column(name)
    before = {each.offset: each for each in accounts.tail_before}
    after = {each.offset: each for each in accounts.tail_after}
    for offset in sorted(before.keys() | after.keys()):
        table.add_row(str(offset), _entry(before.get(offset)), _entry(after.get(offset)))
    return table


def _entry(entry: Entry | None) -> str:
    return "" if entry is None else f"{entry.payload} (leader epoch {entry.leader_epoch})"


def _fates(accounts: Accounts) -> Table:
    """Lost ones by name, the others by number."""
    table = Table(title="what became of every order", title_justify="left")
    for name in ("order", "acks", "its producer was told", "final log"):
        table.add_column(name)
    groups = Counter((each.acks, each.told, len(each.kept_at)) for each in accounts.orders)
    for (acks, told, copies), count in sorted(groups.items()):
        if copies == 1 and told == "ok":
            table.add_row(f"{count} orders", acks, told, "there, once")
    for order in accounts.orders:
        if not (order.told == "ok" and len(order.kept_at) == 1):
            table.add_row(order.payload, order.acks, order.told, _fate(order))
    return table


def _fate(order: Order) -> str:
    if not order.kept_at:
        return "[red]LOST[/red]" if order.told == "ok" else "not there"
    return f"{len(order.kept_at)} times, at offsets {', '.join(map(str, order.kept_at))}"


def _verdict(console: Console, accounts: Accounts) -> int:
    kept = sum(bool(order.kept_at) for order in accounts.orders if order.acks == "all")
    if accounts.surprises:
        for surprise in accounts.surprises:
            console.print(f"  {surprise}", markup=False)
        console.print("[red]NOT what was promised: see above[/red]")
        return FOUND_SOMETHING
    console.print(
        f"[yellow]acks=1:   {len(accounts.lost)} acknowledged orders are lost, and no producer "
        "was told.[/yellow]"
    )
    console.print(
        f"[green]acks=all: all {kept} acknowledged orders are there, once. None is lost.[/green]"
    )
    return 0
