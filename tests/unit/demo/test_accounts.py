"""The mission's account: a true story is clean, and each kind of lie is found and named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tidelog.demo.accounts import (
    OK,
    REFUSED,
    UNKNOWN,
    Account,
    Processed,
    PublishedOrders,
    RecordPosition,
    Revenue,
    RevenueResult,
    StreamedRecord,
    account,
    expected_results,
)
from tidelog.demo.orders import Orders, RecordKind, minute_of

RECORDS = 100
NOON_MS = 1_767_268_800_000
GROUP_DE = (minute_of(NOON_MS), "DE")
BATCHES = [{0: 5, 1: 5, 2: 4}, {0: 5, 1: 5, 2: 4}, {0: 20, 1: 19, 2: 20}, {0: 34, 1: 33, 2: 33}]
"""The end offsets of the revenue's batches; the second one had nothing to read."""


class Story:
    """A run in which everything came true; a test changes one thing of it."""

    def __init__(self) -> None:
        orders = Orders()
        records = [orders.next(NOON_MS + 100 * number) for number in range(RECORDS)]
        self.sent = [
            StreamedRecord(
                kind=record.kind,
                order=record.order,
                outcome=OK,
                position=RecordPosition(record.number % 3, record.number // 3),
            )
            for record in records
        ]
        self.audit: dict[str, Any] = {
            "answered": RECORDS,
            "held": RECORDS,
            "classes": {"kept": {"all": RECORDS}},
            "findings": {},
            "first_findings": [],
        }
        self.processed = [
            Processed(each.order.id, each.order.cents, each.position)
            for each in self.sent
            if each.kind is RecordKind.ORDER and each.order and each.position
        ]
        self.dead = [
            each.position for each in self.sent if each.kind is RecordKind.BROKEN and each.position
        ]
        self.results = expected_results(self.sent, self.processed, BATCHES)

    def account(self) -> Account:
        published = PublishedOrders(
            processed=tuple(self.processed), dead=tuple(self.dead), results=tuple(self.results)
        )
        return account(self.sent, self.audit, published, BATCHES)

    def names(self) -> set[str]:
        return {each.name for each in self.account().findings}

    def index_of(self, kind: RecordKind) -> int:
        return next(i for i, each in enumerate(self.sent) if each.kind is kind)


def test_a_true_story_is_clean() -> None:
    result = Story().account()
    assert result.findings == () and result.is_clean
    assert (result.sent, result.acknowledged, result.kept) == (RECORDS, RECORDS, RECORDS)
    assert (result.orders, result.repeats, result.broken) == (93, 5, 2)
    assert (result.processed, result.dropped, result.dead) == (93, 5, 2)
    assert (result.lost, result.duplicated, result.missing, result.double) == (0, 0, 0, 0)
    assert result.revenue_cents == sum(each.cents for each in Story().processed)
    assert result.results == 15, "three batches with orders, in each of them five countries"


def test_the_results_of_a_batch_are_sums_up_to_its_end() -> None:
    """By hand: two partitions, and an order whose copies are in different batches."""
    sent = Story().sent
    first, second, third = sent[:3]
    at = [RecordPosition(0, 0), RecordPosition(1, 0), RecordPosition(0, 1), RecordPosition(1, 1)]
    story = [
        replace(first, position=at[0]),
        replace(second, position=at[1]),
        replace(third, position=at[2]),
        replace(third, position=at[3]),
    ]
    batches = [{0: 1, 1: 1}, {0: 2, 1: 1}, {0: 2, 1: 2}]
    assert first.order and second.order and third.order
    assert expected_results(story, (), batches) == [
        result(GROUP_DE[0], "DE", 1, first.order.cents),
        result(GROUP_DE[0], "FR", 1, second.order.cents),
        result(GROUP_DE[0], "US", 1, third.order.cents),
    ]


def result(minute: str, country: str, orders: int, cents: int) -> RevenueResult:
    return RevenueResult((minute, country), Revenue(orders, cents))


def found_by_audit(name: str) -> Callable[[Story], None]:
    def plant(story: Story) -> None:
        story.audit["findings"] = {name: 2}
        story.audit["first_findings"] = [{"finding": name, "evidence": "acknowledged at offset 7"}]
        if name == "lost":
            story.audit["classes"] = {"kept": {"all": RECORDS - 2}}

    return plant


def not_in_the_journal(story: Story) -> None:
    story.audit["answered"] = RECORDS - 1


def not_accounted_for(story: Story) -> None:
    story.audit["classes"] = {"kept": {"all": RECORDS - 1}}


def missing(story: Story) -> None:
    del story.processed[5]


def double(story: Story) -> None:
    story.processed.append(story.processed[5])


def from_nothing(story: Story) -> None:
    story.processed.append(Processed("order-9999", 100, RecordPosition(0, 900)))


def wrong_amount(story: Story) -> None:
    story.processed[5] = story.processed[5]._replace(cents=1)


def wrong_source(story: Story) -> None:
    story.processed[5] = story.processed[5]._replace(source=story.processed[6].source)


def refused_but_processed(story: Story) -> None:
    number = story.index_of(RecordKind.ORDER)
    story.sent[number] = replace(story.sent[number], outcome=REFUSED, position=None)
    story.audit["classes"] = {"kept": {"all": RECORDS - 1}}


def dropped_silently(story: Story) -> None:
    del story.dead[0]


def double_dead_letter(story: Story) -> None:
    story.dead.append(story.dead[0])


def wrongly_dead(story: Story) -> None:
    story.dead.append(story.processed[5].source)


def dead_from_nothing(story: Story) -> None:
    story.dead.append(RecordPosition(0, 900))


def wrong_revenue(story: Story) -> None:
    last = last_of(story, GROUP_DE)
    revenue = story.results[last].revenue
    story.results[last] = RevenueResult(GROUP_DE, revenue._replace(cents=revenue.cents - 1))


def wrong_revenue_of_a_minute_that_never_was(story: Story) -> None:
    story.results.append(result("2026-01-01T13:00", "DE", 1, 100))


def wrong_revenue_left_out(story: Story) -> None:
    story.results = [each for each in story.results if each.group != GROUP_DE]


def last_of(story: Story, group: tuple[str, str]) -> int:
    return max(n for n, each in enumerate(story.results) if each.group == group)


def result_missing(story: Story) -> None:
    """Of a batch in the middle: the last sums are right all the same."""
    del story.results[5]


def result_twice(story: Story) -> None:
    story.results.insert(6, story.results[5])


def results_of_a_batch_twice(story: Story) -> None:
    """A batch that was published again after the next one."""
    story.results[10:10] = story.results[:5]


def result_from_nothing(story: Story) -> None:
    story.results.insert(5, RevenueResult(GROUP_DE, story.results[5].revenue._replace(cents=1)))


@pytest.mark.parametrize(
    ("plant", "name"),
    [
        (found_by_audit("lost"), "lost"),
        (found_by_audit("duplicated"), "duplicated"),
        (found_by_audit("reordered"), "reordered"),
        (found_by_audit("diverged"), "diverged"),
        (found_by_audit("published twice"), "published twice"),
        (not_in_the_journal, "not in the journal"),
        (not_accounted_for, "not accounted for"),
        (missing, "missing"),
        (double, "double"),
        (from_nothing, "from nothing"),
        (wrong_amount, "wrong amount"),
        (wrong_source, "wrong source"),
        (refused_but_processed, "refused but processed"),
        (dropped_silently, "dropped silently"),
        (double_dead_letter, "double dead letter"),
        (wrongly_dead, "wrongly dead"),
        (dead_from_nothing, "dead from nothing"),
        (wrong_revenue, "wrong revenue, result missing, result from nothing"),
        (wrong_revenue_of_a_minute_that_never_was, "wrong revenue, result from nothing"),
        (wrong_revenue_left_out, "wrong revenue, result missing"),
        (result_missing, "result missing"),
        (result_twice, "result twice"),
        (results_of_a_batch_twice, "result twice, result out of order"),
        (result_from_nothing, "result from nothing"),
    ],
)
def test_each_lie_is_found_and_named(plant: Callable[[Story], None], name: str) -> None:
    story = Story()
    plant(story)
    assert story.names() == set(name.split(", "))
    assert not story.account().is_clean


def test_the_numbers_of_the_summary_are_those_of_the_findings() -> None:
    story = Story()
    found_by_audit("lost")(story)
    missing(story)
    double(story)
    double(story)
    result = story.account()
    assert (result.lost, result.missing, result.double) == (2, 1, 2)
    assert {each.name: each.count for each in result.findings} == {
        "lost": 2,
        "missing": 1,
        "double": 2,
    }


def unknown(story: Story, kinds: Sequence[RecordKind]) -> list[int]:
    """What became of the first of each is not known to its producer."""
    numbers = [story.index_of(kind) for kind in kinds]
    for number in numbers:
        story.sent[number] = replace(story.sent[number], outcome=UNKNOWN, position=None)
    story.audit["classes"] = {
        "kept": {"all": RECORDS - len(numbers)},
        "unknown, kept": {"all": len(numbers)},
    }
    return numbers


def test_what_nobody_knows_may_be_processed() -> None:
    story = Story()
    unknown(story, [RecordKind.ORDER, RecordKind.BROKEN])
    assert story.names() == set()
    assert story.account().unknown == 2


def test_what_nobody_knows_may_be_absent() -> None:
    story = Story()
    number, _ = unknown(story, [RecordKind.ORDER, RecordKind.BROKEN])
    order = story.sent[number].order
    assert order is not None
    story.processed = [each for each in story.processed if each.order_id != order.id]
    story.results = expected_results(story.sent, story.processed, BATCHES)
    del story.dead[0]
    assert story.names() == set()


def test_an_order_of_which_one_copy_is_acknowledged_must_be_processed() -> None:
    story = Story()
    number = story.index_of(RecordKind.REPEAT) - 1
    order = story.sent[number].order
    assert order is not None and story.sent[number + 1].order == order
    story.sent[number] = replace(story.sent[number], outcome=UNKNOWN, position=None)
    story.audit["classes"] = {"kept": {"all": RECORDS - 1}}
    assert story.names() == set()
    story.processed = [each for each in story.processed if each.order_id != order.id]
    assert story.names() == {"missing"}
