"""What became of every order: sent, acknowledged, kept, processed, published. Pure; it trusts no
one side.

Three sources are compared: what the producer learned of each record (`StreamedRecord`), what the
audit found in the topic, and what the pipeline published (`PublishedOrders`). Every contradiction
is a finding, and one finding is enough for a bad verdict.

The results in the revenue topic are accounted for one by one. Spark's checkpoint says where each
batch ended, so it is known which results each batch must have published.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tidelog.demo.orders import CustomerOrder, RecordKind, minute_of

OK, REFUSED, UNKNOWN = "ok", "refused", "unknown"


class RecordPosition(NamedTuple):
    """Partition and offset of a record in the topic."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedRecord:
    """One record of the stream and what the producer learned of it."""

    kind: RecordKind
    order: CustomerOrder | None
    outcome: str
    position: RecordPosition | None


class Processed(NamedTuple):
    """One order as the pipeline published it."""

    order_id: str
    cents: int
    source: RecordPosition


class Revenue(NamedTuple):
    """A minute's orders of a country: how many, and their sum."""

    orders: int
    cents: int


Group = tuple[str, str]
"""A minute (`2026-01-01T10:07`) and a country in capitals."""


class RevenueResult(NamedTuple):
    """One record of the revenue topic: what a group had come to when a batch was published."""

    group: Group
    revenue: Revenue


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedOrders:
    """What readers find in the tables and topics of the pipeline."""

    processed: tuple[Processed, ...]
    dead: tuple[RecordPosition, ...]
    results: tuple[RevenueResult, ...]
    """As a read_committed consumer gets them; those of a group are in their order."""

    @property
    def revenue(self) -> dict[Group, Revenue]:
        """The last result of each group."""
        return dict(self.results)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoFinding:
    """Something that must not happen: its name, how often, and an example."""

    name: str
    count: int
    example: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The numbers of the summary, and what is wrong."""

    sent: int
    orders: int
    repeats: int
    broken: int
    acknowledged: int
    refused: int
    unknown: int
    kept: int
    lost: int
    duplicated: int
    processed: int
    missing: int
    double: int
    dropped: int
    dead: int
    results: int
    revenue_cents: int
    findings: tuple[DemoFinding, ...] = field(default=())

    @property
    def is_clean(self) -> bool:
        return not self.findings


def account(
    sent: Iterable[StreamedRecord],
    audit: Mapping[str, Any],
    published: PublishedOrders,
    batches: Sequence[Mapping[int, int]],
) -> Account:
    """`audit` is the document of `tidelog audit --json`; `batches` are those of the revenue sink,
    each with its end offset by partition of the topic of orders."""
    everything = list(sent)
    findings = _Findings()
    _judge_audit(findings, audit, everything)
    _judge_orders(findings, everything, published.processed)
    _judge_dead(findings, everything, published.dead)
    _judge_revenue(findings, everything, published)
    _judge_results(findings, everything, published, batches)
    of_kind = Counter(each.kind for each in everything)
    outcomes = Counter(each.outcome for each in everything)
    wrong = audit["findings"]
    return Account(
        sent=len(everything),
        orders=of_kind[RecordKind.ORDER],
        repeats=of_kind[RecordKind.REPEAT],
        broken=of_kind[RecordKind.BROKEN],
        acknowledged=outcomes[OK],
        refused=outcomes[REFUSED],
        unknown=outcomes[UNKNOWN],
        kept=sum(audit["classes"].get("kept", {}).values()),
        lost=wrong.get("lost", 0),
        duplicated=wrong.get("duplicated", 0),
        processed=len(published.processed),
        missing=findings.count("missing"),
        double=findings.count("double"),
        dropped=audit["held"] - len(published.processed) - len(published.dead),
        dead=len(published.dead),
        results=len(published.results),
        revenue_cents=sum(each.cents for each in published.revenue.values()),
        findings=findings.all(),
    )


class _Findings:
    """Counted by name; the first of each is the example."""

    def __init__(self) -> None:
        self._found: dict[str, DemoFinding] = {}

    def add(self, name: str, example: str, count: int = 1) -> None:
        before = self._found.get(name)
        if before is not None:
            count, example = before.count + count, before.example
        self._found[name] = DemoFinding(name=name, count=count, example=example)

    def count(self, name: str) -> int:
        found = self._found.get(name)
        return 0 if found is None else found.count

    def all(self) -> tuple[DemoFinding, ...]:
        return tuple(self._found.values())


def _judge_audit(findings: _Findings, audit: Mapping[str, Any], sent: list[StreamedRecord]) -> None:
    """Take over what the audit of the topic found; it must have seen every record."""
    examples = {str(each["finding"]): each for each in reversed(audit["first_findings"])}
    for name, count in audit["findings"].items():
        first = examples.get(name, {})
        findings.add(name, str(first.get("evidence", "see the audit")), count)
    kept = sum(audit["classes"].get("kept", {}).values())
    acknowledged = sum(each.outcome == OK for each in sent)
    excused = sum(audit["findings"].get(name, 0) for name in ("lost", "misplaced"))
    if audit["answered"] != len(sent):
        text = f"the journal has {audit['answered']} records, {len(sent)} were sent"
        findings.add("not in the journal", text)
    if kept + excused != acknowledged:
        text = f"{acknowledged} were acknowledged; {kept} are kept and {excused} are not"
        findings.add("not accounted for", text)


def _judge_orders(
    findings: _Findings, sent: list[StreamedRecord], processed: tuple[Processed, ...]
) -> None:
    """Each acknowledged order is processed once, with its amount, from a record that is its own."""
    orders = {each.order.id: each.order for each in sent if each.order is not None}
    outcomes: dict[str, set[str]] = {}
    for each in sent:
        if each.order is not None:
            outcomes.setdefault(each.order.id, set()).add(each.outcome)
    times = Counter(each.order_id for each in processed)
    for order_id, seen in outcomes.items():
        if OK in seen and times[order_id] == 0:
            findings.add("missing", f"{order_id} was acknowledged and not processed")
        elif seen == {REFUSED} and times[order_id]:
            findings.add("refused but processed", f"{order_id} was refused and is processed")
    for order_id, count in times.items():
        if count > 1:
            findings.add("double", f"{order_id} is processed {count} times", count - 1)
    ids = {
        each.position: each.order.id for each in sent if each.position and each.order is not None
    }
    for row in processed:
        order = orders.get(row.order_id)
        if order is None:
            findings.add("from nothing", f"{row.order_id} was never sent, and is processed")
        elif row.cents != order.cents:
            text = f"{row.order_id}: {euros(row.cents)} instead of {euros(order.cents)}"
            findings.add("wrong amount", text)
        elif ids.get(row.source, row.order_id) != row.order_id:
            text = f"{row.order_id} claims to be from {row.source}, which is {ids[row.source]}"
            findings.add("wrong source", text)


def _judge_dead(
    findings: _Findings, sent: list[StreamedRecord], dead: tuple[RecordPosition, ...]
) -> None:
    """Each acknowledged broken record is one dead letter, and nothing else is."""
    broken = {each.position for each in sent if each.kind is RecordKind.BROKEN and each.position}
    good = {each.position for each in sent if each.kind is not RecordKind.BROKEN and each.position}
    may_be_more = any(each.kind is RecordKind.BROKEN and each.outcome == UNKNOWN for each in sent)
    counts = Counter(dead)
    for position in sorted(broken - counts.keys()):
        findings.add("dropped silently", f"the broken record at {position} is not a dead letter")
    for position, count in counts.items():
        if count > 1:
            findings.add("double dead letter", f"{position} is there {count} times", count - 1)
        if position in good:
            findings.add("wrongly dead", f"the good order at {position} is a dead letter")
        elif position not in broken and not may_be_more:
            findings.add("dead from nothing", f"nothing broken was sent to {position}")


def _judge_revenue(
    findings: _Findings, sent: list[StreamedRecord], published: PublishedOrders
) -> None:
    """The sums are those of the orders, to the cent, for each minute and country."""
    seen = {each.order_id for each in published.processed}
    expected: dict[Group, Revenue] = {}
    with_order = [each for each in sent if each.order is not None]
    counted = {each.order.id for each in with_order if each.order and each.outcome == OK} | seen
    for order in {each.order.id: each.order for each in with_order if each.order}.values():
        if order.id in counted:
            group = (minute_of(order.ordered_ms), order.country.upper())
            before = expected.get(group, Revenue(0, 0))
            expected[group] = Revenue(before.orders + 1, before.cents + order.cents)
    for group in sorted(expected.keys() | published.revenue.keys()):
        right = expected.get(group, Revenue(0, 0))
        there = published.revenue.get(group, Revenue(0, 0))
        if right != there:
            text = (
                f"{' '.join(group)}: {there.orders} orders, {euros(there.cents)} "
                f"instead of {right.orders}, {euros(right.cents)}"
            )
            findings.add("wrong revenue", text)


def _judge_results(
    findings: _Findings,
    sent: list[StreamedRecord],
    published: PublishedOrders,
    batches: Sequence[Mapping[int, int]],
) -> None:
    """Each result of each batch is in the topic once, and nothing else is."""
    expected = Counter(expected_results(sent, published.processed, batches))
    there = Counter(published.results)
    for each in sorted(expected.keys() - there.keys()):
        findings.add("result missing", f"{_result(each)} was not published")
    for each, count in there.items():
        if each not in expected:
            findings.add("result from nothing", f"no batch came to {_result(each)}")
        elif count > 1:
            findings.add("result twice", f"{_result(each)} is there {count} times", count - 1)
    latest: dict[Group, int] = {}
    for each in published.results:
        if each.revenue.orders < latest.get(each.group, 0):
            findings.add("result out of order", f"{_result(each)} comes after a later one")
        latest[each.group] = each.revenue.orders


def expected_results(
    sent: Iterable[StreamedRecord],
    processed: Iterable[Processed],
    batches: Sequence[Mapping[int, int]],
) -> list[RevenueResult]:
    """A batch publishes every group that one of its orders has changed. An order belongs to the
    batch with its first copy; where a copy is, the producer knows, or else the table."""
    positions: dict[str, set[RecordPosition]] = {}
    orders: dict[str, CustomerOrder] = {}
    for each in sent:
        if each.order is not None:
            orders[each.order.id] = each.order
            positions.setdefault(each.order.id, set()).update(
                () if each.position is None else (each.position,)
            )
    for row in processed:
        positions.setdefault(row.order_id, set()).add(row.source)
    sums: dict[Group, Revenue] = {}
    results: list[RevenueResult] = []
    left = list(orders.values())
    for ends in batches:
        changed: set[Group] = set()
        later: list[CustomerOrder] = []
        for order in left:
            if not any(at.offset < ends.get(at.partition, 0) for at in positions[order.id]):
                later.append(order)
                continue
            group = (minute_of(order.ordered_ms), order.country.upper())
            before = sums.get(group, Revenue(0, 0))
            sums[group] = Revenue(before.orders + 1, before.cents + order.cents)
            changed.add(group)
        results += [RevenueResult(group, sums[group]) for group in sorted(changed)]
        left = later
    return results


def _result(result: RevenueResult) -> str:
    orders, cents = result.revenue
    return f"{' '.join(result.group)}: {orders} orders, {euros(cents)}"


def euros(cents: int) -> str:
    """`1,234.56`."""
    return f"{cents // 100:,}.{cents % 100:02d}"
