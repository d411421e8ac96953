"""Receipts and errors on their way to the driver."""

from __future__ import annotations

import pytest

from tests.unit.client.sink.given import receipt
from tidelog.client.sink.errors import Fenced, GuardFailed, SinkError
from tidelog.spark.sink.receipts import receipts_of, table_of, table_of_error


def test_receipts_arrive_as_they_were_sent() -> None:
    sent = [receipt(0), receipt(1, records=5)]

    assert receipts_of(table_of(sent).to_pylist()) == sent
    assert receipts_of(table_of([]).to_pylist()) == []


@pytest.mark.parametrize("error", [Fenced("a"), GuardFailed("b")])
def test_an_error_arrives_as_what_it_is(error: SinkError) -> None:
    rows = [*table_of([receipt()]).to_pylist(), *table_of_error(error).to_pylist()]

    with pytest.raises(type(error), match=str(error)):
        receipts_of(rows)


def test_the_final_error_of_several_is_raised() -> None:
    errors = [GuardFailed("b"), Fenced("a"), GuardFailed("c")]
    rows = [row for each in errors for row in table_of_error(each).to_pylist()]

    with pytest.raises(Fenced):
        receipts_of(rows)


def test_an_error_that_the_driver_does_not_know_ends_the_batch() -> None:
    class Strange(SinkError):
        """Of a later version."""

    with pytest.raises(SinkError, match="odd"):
        receipts_of(table_of_error(Strange("odd")).to_pylist())
