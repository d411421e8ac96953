"""Writers of a run: the client room's producers, and the outcome of each send."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tidelog.client.client import Client
from tidelog.client.events import ProducerIdentified
from tidelog.client.producer.config import producer_config
from tidelog.client.producer.outcome import SendOk, SendRefused, SendTicket
from tidelog.client.producer.producer import ProducerMachine
from tidelog.core.model.ids import TopicPartition
from tidelog.judge.history import CallOutcome, ProducerIdGiven, WriteAcks, Wrote
from tidelog.worlds.simulator.client_host import ClientHost
from tidelog.worlds.simulator.payloads import to_value
from tidelog.worlds.simulator.process import WALL_START_MS
from tidelog.worlds.simulator.profiles.context import RunContext
from tidelog.worlds.simulator.profiles.plan import WriterPlan

PENDING_MAX = 40
IMPATIENT = {
    "request.timeout.ms": "700",
    "retry.backoff.ms": "20",
    "retry.backoff.max.ms": "200",
    "reconnect.backoff.ms": "20",
    "reconnect.backoff.max.ms": "200",
    "socket.connection.setup.timeout.ms": "500",
    "socket.connection.setup.timeout.max.ms": "1000",
    "metadata.max.age.ms": "2000",
}
"""Clients that give up as soon as short runs need it."""


class ProducerWriter:
    """Sends records to any partition, a few at a time, until the run is over."""

    def __init__(self, context: RunContext, plan: WriterPlan) -> None:
        self.context = context
        self.plan = plan
        self.name = plan.name
        self.random = context.world.random_for(plan.name)
        self.host = ClientHost(world=context.world, network=context.network, name=plan.name)
        settings = {
            **IMPATIENT,
            "bootstrap.servers": context.cluster.bootstrap_servers,
            "acks": plan.acks.value,
            "enable.idempotence": "true" if plan.is_idempotent else "false",
            "linger.ms": self.random.choice(("0", "5", "20")),
            "batch.size": self.random.choice(("200", "2000")),
            "delivery.timeout.ms": self.random.choice(("1500", "4000")),
            "max.block.ms": "1500",
            "compression.type": self.random.choice(("none", "none", "gzip", "lz4")),
        }
        if not plan.retries:
            settings["retries"] = "0"
        config = producer_config(settings)
        client = Client(self.host, config.client, random=self.host.random, trace=self.host.trace)
        self.host.run(client)
        self.producer = ProducerMachine(client, config)
        self._orders: dict[TopicPartition, int] = {}

    @property
    def is_idle(self) -> bool:
        return self.producer.pending == 0

    def start(self) -> None:
        interval_ms = self.plan.interval_ms
        self.context.later(self.random, 0, 2 * interval_ms, self._go_on)

    def _go_on(self) -> None:
        if self.context.is_over:
            return
        if self.producer.pending < PENDING_MAX and self.context.topic_partitions:
            self.host.do(self._write)
        self.start()

    def _write(self, now_ms: int) -> None:
        random = self.random
        topic_partitions = self.context.topic_partitions
        if not topic_partitions:
            return
        topic_partition = topic_partitions[random.randrange(len(topic_partitions))]
        for _ in range(random.randint(1, self.plan.records_max)):
            payload = self.context.new_payload(self.name)
            order = self._orders[topic_partition] = self._orders.get(topic_partition, 0) + 1
            self.context.begin_write(
                Wrote(
                    at_us=self.context.world.now_us,
                    invoked_us=self.context.world.now_us,
                    partition=self.context.name_of(topic_partition),
                    payloads=(payload,),
                    outcome=CallOutcome.UNKNOWN,
                    writer=self.name,
                    acks=self.plan.acks,
                    order=order if self.plan.is_idempotent else None,
                )
            )
            self.producer.send(
                topic_partition.topic,
                to_value(payload, 20 if order % 7 else 300),
                partition=topic_partition.index,
                timestamp_ms=WALL_START_MS + now_ms,
                now_ms=now_ms,
                then=partial(self._on_sent, payload),
            )

    def _on_sent(self, payload: str, ticket: SendTicket, now_ms: int) -> None:
        outcome = ticket.outcome
        begun = self.context.begun_write(payload)
        at_us = self.context.world.now_us
        if isinstance(outcome, SendOk):
            if self.plan.acks is WriteAcks.NONE:
                self.context.record(replace(begun, at_us=at_us))
                return
            done = replace(begun, at_us=at_us, outcome=CallOutcome.OK, base_offset=outcome.offset)
            self.context.record(done)
            return
        assert outcome is not None
        call_outcome = (
            CallOutcome.REFUSED if isinstance(outcome, SendRefused) else CallOutcome.UNKNOWN
        )
        self.context.record(replace(begun, at_us=at_us, outcome=call_outcome, error=outcome.error))


def watch_producer_ids(context: RunContext) -> None:
    """No id may be given twice, whoever gave it."""

    def on_identified(source: str, event: object) -> None:
        assert isinstance(event, ProducerIdentified)
        context.record(
            ProducerIdGiven(
                at_us=context.world.now_us,
                producer_id=event.producer_id,
                producer_epoch=event.producer_epoch,
            )
        )

    context.world.trace.watchers[ProducerIdentified] = on_identified
