"""The order stream, record by record: orders, double clicks, and broken records.

The number of a record decides what it is, so that the stream is the same in every run. Amounts
are in cents, because money is counted exactly.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum

COUNTRIES = ("de", "fr", "us", "jp", "br")
BROKEN = (b"not JSON at all", b"", b'{"order_id": "half an ord', b'{"order_id": "no amount"}')
REPEAT_EVERY = 20
"""Every 20th record is a repeat of the one before, as after a customer's double click."""
BROKEN_EVERY = 50


class RecordKind(Enum):
    """What a record of the stream is."""

    ORDER = "order"
    REPEAT = "repeat"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomerOrder:
    """What a customer ordered."""

    id: str
    country: str
    cents: int
    ordered_ms: int

    @property
    def value(self) -> bytes:
        seconds, ms = divmod(self.ordered_ms, 1_000)
        whole, cents = divmod(self.cents, 100)
        document = {
            "order_id": self.id,
            "country": self.country,
            "amount": float(f"{whole}.{cents:02d}"),
            "ordered_at": f"{_clock(seconds)}.{ms:03d}Z",
        }
        return json.dumps(document).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderRecord:
    """One record as it is sent; a broken one has no order."""

    number: int
    kind: RecordKind
    key: bytes | None
    value: bytes
    order: CustomerOrder | None


class Orders:
    """Makes the records one after the other; a repeat needs the order before it."""

    def __init__(self) -> None:
        self._number = 0
        self._last: CustomerOrder | None = None

    def next(self, now_ms: int) -> OrderRecord:
        """The next record, ordered now."""
        number, self._number = self._number, self._number + 1
        if self._last is not None and number % REPEAT_EVERY == REPEAT_EVERY - 1:
            return _of(number, RecordKind.REPEAT, self._last)
        if number % BROKEN_EVERY == BROKEN_EVERY // 2:
            value = BROKEN[number // BROKEN_EVERY % len(BROKEN)]
            return OrderRecord(
                number=number, kind=RecordKind.BROKEN, key=None, value=value, order=None
            )
        self._last = CustomerOrder(
            id=f"order-{number}",
            country=COUNTRIES[number % len(COUNTRIES)],
            cents=100 + number * 7_919 % 9_900,
            ordered_ms=now_ms,
        )
        return _of(number, RecordKind.ORDER, self._last)


def _of(number: int, kind: RecordKind, order: CustomerOrder) -> OrderRecord:
    return OrderRecord(
        number=number, kind=kind, key=order.id.encode(), value=order.value, order=order
    )


def _clock(seconds: int) -> str:
    """A moment in UTC, as JSON and Spark write it."""
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def minute_of(ordered_ms: int) -> str:
    """The minute of an order: `2026-01-01T10:07`."""
    return _clock(ordered_ms // 1_000)[:16]
