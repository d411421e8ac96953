"""Orders for pipelines: some twice, some broken, and in Python what must come of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.dataset as ds
from confluent_kafka import Message, Producer

FIRST = datetime(2026, 1, 1, 10, tzinfo=UTC)
COUNTRIES = ("de", "fr", "us")
BROKEN = (b"no JSON", b"", b'{"order_id": "x"}', b'{"order_id": "\xff"}')
PIPELINE = Path(__file__).parents[2] / "examples" / "orders.toml"


@dataclass
class Orders:
    """Writes orders into a topic and remembers every one."""

    servers: str
    topic: str
    valid: set[str] = field(default_factory=set)
    dead: set[tuple[int, int, bytes]] = field(default_factory=set)
    """Partition, offset and value of what does not parse."""
    sent: int = 0
    repeated: int = 0
    revenue: Counter[tuple[datetime, str]] = field(default_factory=Counter)

    def write(self, numbers: Iterable[int]) -> None:
        """Every tenth order twice, every twenty-fifth together with something broken."""
        producer = Producer({"bootstrap.servers": self.servers, "enable.idempotence": True})
        for number in numbers:
            self._order(producer, number)
            if number % 10 == 0:
                self._order(producer, number)
                self.repeated += 1
            if number % 25 == 0:
                value = BROKEN[number // 25 % len(BROKEN)]
                producer.produce(self.topic, value, on_delivery=self._is_dead)
                self.sent += 1
        assert producer.flush(60) == 0

    def _order(self, producer: Producer, number: int) -> None:
        at = FIRST + timedelta(seconds=number)
        order_id, country, amount = f"order-{number}", COUNTRIES[number % 3], 1 + number % 50
        order = {
            "order_id": order_id,
            "country": country,
            "amount": amount,
            "ordered_at": at.isoformat(),
        }
        producer.produce(self.topic, json.dumps(order), key=order_id)
        self.sent += 1
        if order_id not in self.valid:
            self.valid.add(order_id)
            self.revenue[at.replace(second=0), country.upper()] += amount

    def _is_dead(self, error: object, message: Message) -> None:
        assert error is None
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None and offset is not None
        self.dead.add((partition, offset, value or b""))


def pipeline_file(place: Path, topic: str, *, source: str = "", trigger: str = "1s") -> Path:
    """The example, in a directory of its own, for a topic of its own; `source` are more keys."""
    text = PIPELINE.read_text().replace('topic = "orders"', f'topic = "{topic}"\n{source}')
    text = text.replace('trigger = "5 seconds"', f'trigger = "{trigger}"')
    path = place / "orders.toml"
    path.write_text(text)
    return path


def rows_of(table: Path) -> list[dict[str, object]]:
    """As any reader of Parquet sees it, knowing nothing of Tidelog."""
    if not table.exists():
        return []
    found = ds.dataset(table, format="parquet", partitioning="hive")
    return list(found.to_table().to_pylist())


def check_tables(place: Path, orders: Orders) -> None:
    """Every order once, every broken record once, and no revenue that is not theirs."""
    data = place / "orders-data"
    ids = Counter(str(row["order_id"]) for row in rows_of(data / "valid_orders"))
    assert set(ids) == orders.valid
    assert set(ids.values()) == {1}
    dead = [
        (row["partition"], row["offset"], row["value"]) for row in rows_of(data / "dead_letters")
    ]
    assert sorted(dead) == sorted(orders.dead)
    revenue = Counter((row["minute"], row["country"]) for row in rows_of(data / "revenue"))
    assert set(revenue.values()) <= {1}
    for row in rows_of(data / "revenue"):
        expected = orders.revenue[row["minute"], row["country"]]  # type: ignore[index]
        assert row["revenue"] == expected, row
