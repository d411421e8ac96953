"""Producers that write through crashes, and the comparison of what they were told with the log."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field

import confluent_kafka

from tests.process.target import Target
from tests.process.waiting import PATIENCE_S
from tests.process.wire import WireClient, batches_on_disk

PARTITIONS = 3
RECORDS_IN_A_ROW = 10
PAUSE_S = 0.002
TOPIC = "orders"


@dataclass(slots=True)
class Told:
    """What one producer heard: where each of its records went."""

    name: str
    is_idempotent: bool
    places: dict[bytes, tuple[int, int | None]] = field(default_factory=dict)
    """Partition and offset of each acknowledged record; None: it was not told which offset."""
    failures: list[str] = field(default_factory=list)


class Writer(threading.Thread):
    """Writes numbered records to all partitions until it is told to stop, then flushes."""

    def __init__(self, address: str, name: str, *, idempotent: bool, value_bytes: int) -> None:
        super().__init__(daemon=True)
        self.told = Told(name, idempotent)
        self._padding = b"." * value_bytes
        self._stop_writing = threading.Event()
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": address,
                "acks": "all",
                "enable.idempotence": idempotent,
                "linger.ms": 1,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 50,
                "retry.backoff.ms": 10,
                "retry.backoff.max.ms": 50,
                "queue.buffering.max.messages": 2_000,
                "log_level": 0,
            }
        )

    def run(self) -> None:
        number = 0
        while not self._stop_writing.is_set():
            value = b"%s %d %s" % (self.told.name.encode(), number, self._padding)
            try:
                self._producer.produce(
                    TOPIC, value, partition=number % PARTITIONS, on_delivery=self._delivered
                )
                number += 1
            except BufferError:
                self._producer.poll(0.01)
            # A steady trickle: what counts is the number of crashes, not how much is written.
            self._producer.poll(PAUSE_S if number % RECORDS_IN_A_ROW == 0 else 0)
        self._left = self._producer.flush(PATIENCE_S)

    def finish(self) -> Told:
        """Stop writing; everything that was sent has an outcome then."""
        self._stop_writing.set()
        self.join()
        assert self._left == 0, f"{self._left} records without an outcome"
        return self.told

    @property
    def acknowledged(self) -> int:
        return len(self.told.places)

    def _delivered(
        self, error: confluent_kafka.KafkaError | None, record: confluent_kafka.Message
    ) -> None:
        if error is not None:
            self.told.failures.append(str(error))
        else:
            value, partition, offset = record.value(), record.partition(), record.offset()
            assert value is not None and partition is not None
            self.told.places[value] = (partition, None if offset is None or offset < 0 else offset)


def judge(broker: Target, all_told: list[Told]) -> None:
    """Nothing acknowledged is missing, moved, torn, or (idempotent) there twice or out of order."""
    judge_records(stored_records(dict.fromkeys(range(PARTITIONS), broker.address)), all_told)
    for partition in range(PARTITIONS):
        headers = [h for h, _ in batches_on_disk(broker.log_directory, TOPIC, partition=partition)]
        ends = [0, *(header.end_offset for header in headers)]
        assert [header.base_offset for header in headers] == ends[:-1]


def stored_records(addresses: dict[int, str]) -> dict[tuple[int, int], bytes | None]:
    """What the leader of each partition gives to read, by partition and offset."""
    stored: dict[tuple[int, int], bytes | None] = {}
    for partition, address in addresses.items():
        with WireClient(address) as wire:
            records = wire.read_all(TOPIC, partition=partition)
        assert [record.offset for record in records] == list(range(len(records)))
        stored |= {(partition, record.offset): record.value for record in records}
    return stored


def judge_records(stored: dict[tuple[int, int], bytes | None], all_told: list[Told]) -> None:
    """What was stored against what the producers were told."""
    copies = Counter(value for value in stored.values() if value is not None)
    for told in all_told:
        assert told.failures == []
        assert told.places, f"{told.name} wrote nothing"
        assert lost_records(stored, told) == [], f"{told.name}: acknowledged and gone"
        assert misplaced_records(stored, told) == [], f"{told.name}: not where it was acknowledged"
        if told.is_idempotent:
            mark = told.name.encode() + b" "
            own = {value: count for value, count in copies.items() if value.startswith(mark)}
            assert own.keys() == told.places.keys()
            assert set(own.values()) == {1}, f"{told.name}: records stored twice"
            for partition in range(PARTITIONS):
                numbers = [
                    int(value.split()[1])
                    for (where, _), value in stored.items()
                    if where == partition and value is not None and value.startswith(mark)
                ]
                assert numbers == sorted(numbers), f"{told.name}: out of order"


def lost_records(stored: dict[tuple[int, int], bytes | None], told: Told) -> list[bytes]:
    """Acknowledged, with or without an offset, and nowhere in its partition."""
    held = {(partition, value) for (partition, _), value in stored.items()}
    return [value for value, (at, _) in told.places.items() if (at, value) not in held]


def misplaced_records(
    stored: dict[tuple[int, int], bytes | None], told: Told
) -> list[tuple[bytes, int, list[int]]]:
    """Acknowledged at an offset at which it does not stand, and where it stands instead (X-50).

    Whoever was not told an offset was promised none.
    """
    lost = set(lost_records(stored, told))
    return [
        (
            value,
            offset,
            [where for (at, where), held in stored.items() if (at, held) == (partition, value)],
        )
        for value, (partition, offset) in told.places.items()
        if offset is not None and stored.get((partition, offset)) != value and value not in lost
    ]
