"""What is measured on a running broker: each scenario is one function of a broker and its figures.

One call is one repetition. The runner calls a scenario for Tidelog and for Apache Kafka in turn, so
that what else happens on the machine hits both.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass

from bench.brokers import Broker, starting
from bench.load import Outcome, run_clients
from bench.process_stat import cpu_s, resident_mib
from bench.rows import BROKER_CORES, CLIENT_CORES, OTHER_CORES, Figures, Metric, busy
from tests.process.wire import WireClient

MB, GB = 1e6, 1e9
SMALL_BYTES = 100
CONNECTIONS = 50
SEVERAL_PARTITIONS = 6
SEVERAL_PRODUCERS = 2
SETTLING_S = 3.0
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much of everything; `volume` scales the bytes that are moved."""

    repetitions: int
    volume: float
    latency_requests: int
    connections_s: float
    idle_s: float
    start_repetitions: int
    idle_repetitions: int
    warm_up_s: float


FULL = Effort(
    repetitions=5,
    volume=1.0,
    latency_requests=5_000,
    connections_s=5.0,
    idle_s=10.0,
    start_repetitions=5,
    idle_repetitions=3,
    warm_up_s=60.0,
)
QUICK = Effort(
    repetitions=3,
    volume=0.25,
    latency_requests=1_000,
    connections_s=2.0,
    idle_s=3.0,
    start_repetitions=2,
    idle_repetitions=1,
    warm_up_s=60.0,
)
TINY = Effort(
    repetitions=1,
    volume=0.001,
    latency_requests=20,
    connections_s=0.1,
    idle_s=0.1,
    start_repetitions=1,
    idle_repetitions=1,
    warm_up_s=0.0,
)
"""For tests: everything is run, nothing is measured well."""


class WrongCount(Exception):
    """What was acknowledged is not what the log holds."""


Scenario = Callable[[Broker, Figures, Effort], None]


# Traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Batched traffic of one record size: write a topic, read it from its beginning.

    One librdkafka is slower than a broker; several of them show what the broker can take, and are
    not asked to read.
    """

    label: str
    value_bytes: int
    volume_bytes: int
    partitions: int
    producers: int = 1
    produce_floor: float | None = None
    produce_bar: float | None = None
    consume_floor: float | None = None
    consume_bar: float | None = None

    @property
    def name(self) -> str:
        producers = "" if self.producers == 1 else f"-{self.producers}producers"
        return f"traffic-{self.label.replace(' ', '')}-{self.partitions}{producers}"

    def __call__(self, broker: Broker, figures: Figures, effort: Effort) -> None:
        each = max(1, int(self.volume_bytes * effort.volume) // self.value_bytes // self.producers)
        records = each * self.producers
        topic = create_topic(broker, partitions=self.partitions)
        asked = {"topic": topic, "value_bytes": self.value_bytes, "records": each}
        written = run_clients(broker, "produce", *[asked] * self.producers)
        check_records(broker, topic, partitions=self.partitions, records=records)
        self._note(figures, broker.name, "produce", written, self.produce_floor, self.produce_bar)
        if self.producers == 1:
            asked = {"topic": topic, "partitions": self.partitions, "records": records}
            read = run_clients(broker, "consume", asked)
            self._note(figures, broker.name, "consume", read, self.consume_floor, self.consume_bar)
        delete_topic(broker, topic)

    def _note(
        self,
        figures: Figures,
        broker: str,
        verb: str,
        outcome: Outcome,
        floor: float | None,
        bar: float | None,
    ) -> None:
        what = f"{verb} {self.label}, {_partitions(self.partitions)}"
        if self.producers > 1:
            what += f", {self.producers} producers"
        volume = outcome.count * self.value_bytes
        speed = Metric(title=what, unit="MB/s", floor=floor, bar=bar)
        figures.add(speed, broker, volume / MB / outcome.elapsed_s)
        figures.add(Metric(title=what, unit="k records/s"), broker, outcome.per_s / 1e3)
        cost = Metric(title=what, unit="broker CPU-s/GB", more_is_better=False)
        figures.add(cost, broker, outcome.broker_cpu_s / (volume / GB))
        note_busy(figures, broker, what, outcome)


def note_busy(figures: Figures, broker: str, what: str, outcome: Outcome) -> None:
    figures.add(busy(what, BROKER_CORES), broker, outcome.broker_cores)
    figures.add(busy(what, CLIENT_CORES), broker, outcome.client_cores)
    figures.add(busy(what, OTHER_CORES), broker, outcome.other_cores)


TRAFFIC = [
    Traffic(
        label=label,
        value_bytes=value_bytes,
        volume_bytes=volume_bytes,
        partitions=partitions,
        produce_floor=produce[0],
        produce_bar=produce[1],
        consume_floor=consume[0],
        consume_bar=consume[1],
    )
    for label, value_bytes, volume_bytes, produce, consume in (
        ("1 KiB", 1024, 10**9, (400.0, 1.0), (600.0, 0.9)),
        ("100 B", 100, 4 * 10**8, (None, 1.0), (None, None)),
        ("10 KiB", 10_240, 15 * 10**8, (None, None), (None, None)),
    )
    for partitions in (1, SEVERAL_PARTITIONS)
]
TRAFFIC += [
    Traffic(
        label=label,
        value_bytes=value_bytes,
        volume_bytes=volume_bytes,
        partitions=SEVERAL_PARTITIONS,
        producers=SEVERAL_PRODUCERS,
    )
    for label, value_bytes, volume_bytes in (("1 KiB", 1024, 10**9), ("100 B", 100, 4 * 10**8))
]


# Small requests


def one_in_flight(broker: Broker, figures: Figures, effort: Effort) -> None:
    """The time of one acknowledged record: on a bare socket, and through librdkafka."""
    topic = create_topic(broker, partitions=1)
    asked = {"topic": topic, "value_bytes": SMALL_BYTES, "requests": effort.latency_requests}
    for kind, how, floor in (
        ("wire_latency", "bare socket", 0.5),
        ("librdkafka_latency", "librdkafka", 0.5),
    ):
        outcome = run_clients(broker, kind, asked)
        what = f"one in flight, {how}"
        details = outcome.details[0]
        middle = Metric(title=f"{what}: p50", unit="ms", more_is_better=False, floor=floor)
        figures.add(middle, broker.name, details["p50_ms"])
        slow = Metric(title=f"{what}: p99", unit="ms", more_is_better=False)
        figures.add(slow, broker.name, details["p99_ms"])
        cost = Metric(title=what, unit="broker CPU-µs/request", more_is_better=False)
        figures.add(cost, broker.name, outcome.broker_us_each)
    delete_topic(broker, topic)


def unbatched(broker: Broker, figures: Figures, effort: Effort) -> None:
    """Fifty connections, each with one record in flight: the cost of a request, not of bytes."""
    topic = create_topic(broker, partitions=SEVERAL_PARTITIONS)
    outcome = run_clients(
        broker,
        "connections",
        {
            "topic": topic,
            "partitions": SEVERAL_PARTITIONS,
            "value_bytes": SMALL_BYTES,
            "connections": CONNECTIONS,
            "seconds": effort.connections_s,
        },
    )
    delete_topic(broker, topic)
    what = f"{CONNECTIONS} connections, one record each in flight"
    figures.add(
        Metric(title=what, unit="requests/s", floor=15_000, bar=2.0), broker.name, outcome.per_s
    )
    figures.add(unbatched_cost(), broker.name, outcome.broker_us_each)
    note_busy(figures, broker.name, what, outcome)


def unbatched_cost() -> Metric:
    return Metric(
        title=f"{CONNECTIONS} connections, one record each in flight",
        unit="broker CPU-µs/request",
        more_is_better=False,
    )


# Life


def start_up(name: str, figures: Figures, effort: Effort, *, idle: bool) -> None:
    """A fresh broker: until it serves, until its first promise; then what doing nothing costs."""
    with starting(name) as (broker, serving_s, promise_s):
        serving = Metric(title="exec until serving", unit="s", more_is_better=False, floor=0.4)
        figures.add(serving, name, serving_s)
        promise = Metric(
            title="exec until the first acknowledged write", unit="s", more_is_better=False
        )
        figures.add(promise, name, promise_s)
        if not idle:
            return
        time.sleep(min(SETTLING_S, effort.idle_s))
        before_s, started_s = cpu_s(broker.pid), time.monotonic()
        time.sleep(effort.idle_s)
        share = (cpu_s(broker.pid) - before_s) / (time.monotonic() - started_s)
        memory = Metric(title="idle memory", unit="MiB", more_is_better=False, floor=50)
        figures.add(memory, name, resident_mib(broker.pid))
        load = Metric(title="idle CPU", unit="% of a core", more_is_better=False, floor=1.0)
        figures.add(load, name, 100 * share)


def memory_after_load(broker: Broker, figures: Figures) -> None:
    memory = Metric(title="memory after all of the load", unit="MiB", more_is_better=False)
    figures.add(memory, broker.name, resident_mib(broker.pid))


SCENARIOS: dict[str, Scenario] = {
    **{traffic.name: traffic for traffic in TRAFFIC},
    "latency": one_in_flight,
    "connections": unbatched,
}
"""Those that need a running broker, by name."""


# Topics


def create_topic(broker: Broker, *, partitions: int) -> str:
    name = f"bench-{next(_numbers)}"
    with WireClient(broker.address) as client:
        client.create_topic(name, partitions=partitions)
    return name


def delete_topic(broker: Broker, name: str) -> None:
    with WireClient(broker.address) as client:
        client.ask("DeleteTopics", 5, topic_names=[name], timeout_ms=30_000)


def check_records(broker: Broker, topic: str, *, partitions: int, records: int) -> None:
    """Delivery reports are off for speed, so the log itself is asked."""
    with WireClient(broker.address) as client:
        found = sum(client.end_offset(topic, partition=index) for index in range(partitions))
    if found != records:
        raise WrongCount(f"{broker.name}: {records} records were written, the log holds {found}")


def _partitions(count: int) -> str:
    return "1 partition" if count == 1 else f"{count} partitions"
