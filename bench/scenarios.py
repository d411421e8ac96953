"""What is measured on a running broker: each scenario is one function of a broker and its figures.

One call is one repetition. The runner calls a scenario for Tidelog and for Apache Kafka in turn, so
that what else happens on the machine hits both.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from bench.brokers import Broker, starting
from bench.load import Outcome, run_clients
from bench.process_stat import cpu_s, resident_mib
from bench.rows import BROKER_CORES, CLIENT_CORES, OTHER_CORES, Figures, Metric, busy
from bench.topics import check_records, create_topic, delete_topic, leaders

MB, GB = 1e6, 1e9
COST = "broker CPU-s/GB"
SMALL_BYTES = 100
CONNECTIONS = 50
SEVERAL_PARTITIONS = 6
SEVERAL_PRODUCERS = 2
SETTLING_S = 3.0


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


class Wanted(NamedTuple):
    """What is asked of a figure."""

    floor: float | None = None
    bar: float | None = None


NOTHING = Wanted()
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
    is_read: bool = True
    produce: Wanted = NOTHING
    """Of MB/s."""
    records: Wanted = NOTHING
    """Of thousands of records written per second."""
    cost: Wanted = NOTHING
    """Of the brokers' CPU time for writing."""
    consume: Wanted = NOTHING
    """Of MB/s."""

    @property
    def name(self) -> str:
        producers = "" if self.producers == 1 else f"-{self.producers}producers"
        return f"traffic-{self.label.replace(' ', '')}-{self.partitions}{producers}"

    def __call__(self, broker: Broker, figures: Figures, effort: Effort) -> None:
        each = max(1, int(self.volume_bytes * effort.volume) // self.value_bytes // self.producers)
        records = each * self.producers
        topic = create_topic(broker, partitions=self.partitions)
        requested = {"topic": topic, "value_bytes": self.value_bytes, "records": each}
        written = run_clients(broker, "produce", *[requested] * self.producers)
        check_records(broker, topic, records=records)
        wanted = {"MB/s": self.produce, "k records/s": self.records, COST: self.cost}
        self._note(figures, broker.name, "produce", written, wanted)
        if self.is_read and self.producers == 1:
            requested = {"topic": topic, "partitions": self.partitions, "records": records}
            read = run_clients(broker, "consume", requested)
            self._note(figures, broker.name, "consume", read, {"MB/s": self.consume})
        delete_topic(broker, topic)

    def _note(
        self,
        figures: Figures,
        broker: str,
        verb: str,
        outcome: Outcome,
        wanted: dict[str, Wanted],
    ) -> None:
        what = f"{verb} {self.label}, {_partitions(self.partitions)}"
        if self.producers > 1:
            what += f", {self.producers} producers"
        volume = outcome.count * self.value_bytes
        found = {
            "MB/s": volume / MB / outcome.elapsed_s,
            "k records/s": outcome.per_s / 1e3,
            COST: outcome.broker_cpu_s / (volume / GB),
        }
        for unit, figure in found.items():
            floor, bar = wanted.get(unit, NOTHING)
            metric = Metric(
                title=what, unit=unit, more_is_better=unit != COST, floor=floor, bar=bar
            )
            figures.add(metric, broker, figure)
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
        produce=produce,
        consume=consume,
    )
    for label, value_bytes, volume_bytes, produce, consume in (
        ("1 KiB", 1024, 10**9, Wanted(400, 1.0), Wanted(600, 0.9)),
        ("100 B", 100, 4 * 10**8, Wanted(bar=1.0), NOTHING),
        ("10 KiB", 10_240, 15 * 10**8, NOTHING, NOTHING),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class OneInFlight:
    """The time of one acknowledged record: on a bare socket, and through librdkafka."""

    middle: Wanted
    slow: Wanted = NOTHING

    def __call__(self, broker: Broker, figures: Figures, effort: Effort) -> None:
        topic = create_topic(broker, partitions=1)
        requested = {
            "topic": topic,
            "value_bytes": SMALL_BYTES,
            "requests": effort.latency_requests,
        }
        for kind, how in (("wire_latency", "bare socket"), ("librdkafka_latency", "librdkafka")):
            parameters = dict(requested)
            if kind == "wire_latency":
                [parameters["address"]] = leaders(broker, topic)
            outcome = run_clients(broker, kind, parameters)
            what = f"one in flight, {how}"
            for point, (floor, bar) in (("p50", self.middle), ("p99", self.slow)):
                metric = Metric(
                    title=f"{what}: {point}",
                    unit="ms",
                    more_is_better=False,
                    floor=floor,
                    bar=bar,
                )
                figures.add(metric, broker.name, outcome.details[0][f"{point}_ms"])
            cost = Metric(title=what, unit="broker CPU-µs/request", more_is_better=False)
            figures.add(cost, broker.name, outcome.broker_us_each)
        delete_topic(broker, topic)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unbatched:
    """Fifty connections, each with one record in flight: the cost of a request, not of bytes."""

    rate: Wanted

    def __call__(self, broker: Broker, figures: Figures, effort: Effort) -> None:
        topic = create_topic(broker, partitions=SEVERAL_PARTITIONS)
        outcome = run_clients(
            broker,
            "connections",
            {
                "topic": topic,
                "leaders": leaders(broker, topic),
                "value_bytes": SMALL_BYTES,
                "connections": CONNECTIONS,
                "seconds": effort.connections_s,
            },
        )
        delete_topic(broker, topic)
        what = f"{CONNECTIONS} connections, one record each in flight"
        rate = Metric(title=what, unit="requests/s", floor=self.rate.floor, bar=self.rate.bar)
        figures.add(rate, broker.name, outcome.per_s)
        figures.add(unbatched_cost(), broker.name, outcome.broker_us_each)
        note_busy(figures, broker.name, what, outcome)


one_in_flight = OneInFlight(middle=Wanted(0.5))
unbatched = Unbatched(rate=Wanted(15_000, 2.0))


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
        [pid] = broker.pids
        before_s, started_s = cpu_s(pid), time.monotonic()
        time.sleep(effort.idle_s)
        share = (cpu_s(pid) - before_s) / (time.monotonic() - started_s)
        memory = Metric(title="idle memory", unit="MiB", more_is_better=False, floor=50)
        figures.add(memory, name, resident_mib(pid))
        load = Metric(title="idle CPU", unit="% of a core", more_is_better=False, floor=1.0)
        figures.add(load, name, 100 * share)


def memory_after_load(broker: Broker, figures: Figures) -> None:
    memory = Metric(title="memory after all of the load", unit="MiB", more_is_better=False)
    figures.add(memory, broker.name, sum(map(resident_mib, broker.pids)) / len(broker.pids))


SCENARIOS: dict[str, Scenario] = {
    **{traffic.name: traffic for traffic in TRAFFIC},
    "latency": one_in_flight,
    "connections": unbatched,
}
"""Those that need a running broker, by name."""


def _partitions(count: int) -> str:
    return "1 partition" if count == 1 else f"{count} partitions"
