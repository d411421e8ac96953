"""Clients of a run that send wire requests, without the client room.

They have one connection to each broker and know the newest leader of each partition that any broker
reported. What they see is a second opinion about what the client room's machines do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tidelog.client.partition_requests import list_offsets_answer
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages.api_03_metadata import MetadataResponse
from tidelog.core.wire.schema import Message
from tidelog.core.wire.sentinels import LATEST_TIMESTAMP
from tidelog.judge.history import EndOffsetListed
from tidelog.worlds.simulator import requests
from tidelog.worlds.simulator.client import CallFailed, WireClient
from tidelog.worlds.simulator.client import Outcome as Reply
from tidelog.worlds.simulator.cluster import host_of
from tidelog.worlds.simulator.profiles.context import RunContext
from tidelog.worlds.simulator.requests import TopicName

TIMEOUT_MS = 4_000
METADATA_VERSION = 12
LIST_OFFSETS_VERSION = 7
REFRESH_CHANCE = 0.08


class KnownLeader(NamedTuple):
    """A leader and its leader epoch; the newer one is the greater."""

    leader_epoch: int
    leader: int


class BrokerClients:
    """A client with one connection to each broker."""

    def __init__(self, context: RunContext, name: str) -> None:
        self.context = context
        self.name = name
        self.random = context.world.random_for(name)
        self._clients = {
            node_id: WireClient(
                world=context.world, network=context.network, name=name, server=host_of(node_id)
            )
            for node_id in context.plan.brokers
        }

    @property
    def in_flight(self) -> int:
        return sum(client.in_flight for client in self._clients.values())

    def ask(
        self,
        request: Message,
        version: int,
        then: Callable[[Reply], None],
        *,
        broker: int | None = None,
        timeout_ms: int = TIMEOUT_MS,
    ) -> None:
        """Send to one broker, or to any that runs."""
        if broker is None:
            running = [b for b in self._clients if self.context.cluster.process(b).is_up]
            broker = self.random.choice(running or list(self._clients))
        if broker in self._clients:
            self._clients[broker].call(request, version, then, timeout_ms=timeout_ms)

    def disconnect(self) -> None:
        """Drop all connections; what is under way fails."""
        for client in self._clients.values():
            client.disconnect()


class LeaderTracker(BrokerClients):
    """A client that keeps the newest leader of each partition."""

    def __init__(self, context: RunContext, name: str) -> None:
        super().__init__(context, name)
        self.known: dict[str, KnownLeader] = {}
        """The newest leader of each partition that any broker reported."""
        self._topic_ids: dict[str, bytes] = {}

    def refresh(self) -> None:
        self.ask(requests.list_topics(), METADATA_VERSION, self._on_metadata)

    def _on_metadata(self, answer: Reply) -> None:
        if not isinstance(answer, MetadataResponse):
            return
        for topic in answer.topics:
            topic_name = str(topic.name)
            if self._topic_ids.setdefault(topic_name, topic.topic_id) != topic.topic_id:
                self._forget(topic_name, topic.topic_id)
            for result in topic.partitions:
                if result.leader_id >= 0:
                    name = f"{topic.name}-{result.partition_index}"
                    led = KnownLeader(result.leader_epoch, result.leader_id)
                    self.known[name] = max(led, self.known.get(name, led))

    def _forget(self, topic: str, topic_id: bytes) -> None:
        """It was created again, and its leader epochs begin anew."""
        self._topic_ids[topic] = topic_id
        for name in [name for name in self.known if name.rpartition("-")[0] == topic]:
            del self.known[name]


class EndOffsetReader(LeaderTracker):
    """Requests the log end offset of leaders, with the leader epoch that it knows."""

    def __init__(self, context: RunContext) -> None:
        super().__init__(context, "asker")

    def start(self) -> None:
        self.context.later(self.random, 10, 60, self._go_on)

    def _go_on(self) -> None:
        if self.context.is_over:
            return
        if self.in_flight < 3 and self.context.topic_partitions:
            topic_partition = self.random.choice(self.context.topic_partitions)
            known = self.known.get(str(topic_partition))
            if known is None or self.random.random() < REFRESH_CHANCE:
                self.refresh()
            if known is not None:
                self._ask_end(topic_partition, known)
        self.start()

    def _ask_end(self, topic_partition: TopicPartition, led: KnownLeader) -> None:
        invoked_us = self.context.world.now_us
        topic = TopicName(topic_partition.topic, b"")
        name = self.context.name_of(topic_partition)

        def on_answer(answer: Reply) -> None:
            if isinstance(answer, CallFailed):
                return
            result = list_offsets_answer(answer)
            if result.error_code == ErrorCode.NONE:
                self.context.record(
                    EndOffsetListed(
                        at_us=self.context.world.now_us,
                        invoked_us=invoked_us,
                        reader=self.name,
                        partition=name,
                        end_offset=result.offset,
                        leader_epoch=led.leader_epoch,
                        known_leader_epoch=led.leader_epoch,
                    )
                )
            else:
                self.refresh()

        self.ask(
            requests.list_offset(
                topic, topic_partition.index, LATEST_TIMESTAMP, leader_epoch=led.leader_epoch
            ),
            LIST_OFFSETS_VERSION,
            on_answer,
            broker=led.leader,
        )
