"""Kafka's clients on hosts of the simulator, as the lab's engine interface wants them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidelog.client.client import Client
from tidelog.client.consumer.config import consumer_config
from tidelog.client.consumer.consumer import ConsumerMachine
from tidelog.client.consumer.fetched_records import ConsumerRecord
from tidelog.client.group.config import group_config
from tidelog.client.producer.config import producer_config
from tidelog.client.producer.outcome import SendOutcome, SendTicket
from tidelog.client.producer.producer import ProducerMachine
from tidelog.core.model.ids import TopicPartition
from tidelog.lab.engine import Consumed, MemberAssigned
from tidelog.lab.engines.story_member import StoryCommit, StoryMember, consumed
from tidelog.worlds.simulator.client_host import ClientHost
from tidelog.worlds.simulator.network import Network
from tidelog.worlds.simulator.process import WALL_START_MS
from tidelog.worlds.simulator.world import SimWorld


class SimulatedTicket:
    """One record given to a simulated producer."""

    def __init__(self) -> None:
        self.ticket: SendTicket | None = None
        self.over_us: int | None = None

    @property
    def outcome(self) -> SendOutcome | None:
        return None if self.ticket is None else self.ticket.outcome

    @property
    def is_over(self) -> bool:
        return self.outcome is not None

    @property
    def is_blocked(self) -> bool:
        return self.ticket is not None and self.ticket.is_blocked


class SimulatedProducer:
    """A producer of the client room on a host of its own."""

    def __init__(
        self, world: SimWorld, network: Network, name: str, config: Mapping[str, str]
    ) -> None:
        self._world = world
        self._host = ClientHost(world=world, network=network, name=name)
        settings = producer_config(config)
        client = Client(
            self._host, settings.client, random=self._host.random, trace=self._host.trace
        )
        self._host.run(client)
        self._producer = ProducerMachine(client, settings)

    def send(self, topic: str, index: int, value: bytes) -> SimulatedTicket:
        handle = SimulatedTicket()

        def on_outcome(_: SendTicket, now_ms: int) -> None:
            handle.over_us = self._world.now_us

        def act(now_ms: int) -> None:
            handle.ticket = self._producer.send(
                topic,
                value,
                partition=index,
                timestamp_ms=WALL_START_MS + now_ms,
                now_ms=now_ms,
                then=on_outcome,
            )

        self._host.do(act)
        return handle

    def flush(self) -> None:
        self._host.do(self._producer.flush)

    @property
    def pending(self) -> int:
        return self._producer.pending


class SimulatedConsumer:
    """A consumer of the client room on a host of its own."""

    def __init__(
        self, world: SimWorld, network: Network, name: str, config: Mapping[str, str]
    ) -> None:
        self._world = world
        self._host = ClientHost(world=world, network=network, name=name)
        settings = consumer_config(config)
        client = Client(
            self._host, settings.client, random=self._host.random, trace=self._host.trace
        )
        self._host.run(client)
        self._consumer = ConsumerMachine(client, settings)

    def assign(self, partitions: Sequence[tuple[str, int]]) -> None:
        names = [TopicPartition(*each) for each in partitions]
        self._host.do(lambda now_ms: self._consumer.assign(names))

    def seek(self, topic: str, index: int, offset: int, *, leader_epoch: int | None) -> None:
        name = TopicPartition(topic, index)
        self._host.do(lambda now_ms: self._consumer.seek(name, offset, leader_epoch=leader_epoch))

    def position(self, topic: str, index: int) -> int | None:
        return self._consumer.position(TopicPartition(topic, index))

    def poll(self) -> list[Consumed]:
        got: list[ConsumerRecord] = []
        self._host.do(lambda now_ms: got.extend(self._consumer.poll(now_ms)))
        return consumed(got, self._world.now_us)


class SimulatedMember:
    """A group member of the client room on a host of its own."""

    def __init__(
        self,
        world: SimWorld,
        network: Network,
        name: str,
        config: Mapping[str, str],
        topics: Sequence[str],
    ) -> None:
        self._world = world
        self._host = ClientHost(world=world, network=network, name=name)
        settings = group_config(config)
        client = Client(
            self._host, settings.consumer.client, random=self._host.random, trace=self._host.trace
        )
        self._host.run(client)
        self._member = StoryMember(client, settings, topics, lambda: world.now_us)
        self._host.do(lambda now_ms: None)  # the first tick, in which it begins to join

    @property
    def assignments(self) -> Sequence[MemberAssigned]:
        return self._member.assignments

    @property
    def owned(self) -> tuple[TopicPartition, ...] | None:
        return self._member.owned

    def position(self, partition: TopicPartition) -> int | None:
        return self._member.position(partition)

    def poll(self, records_max: int | None = None) -> list[Consumed]:
        if self._host.is_paused:
            return []
        got: list[ConsumerRecord] = []
        self._host.do(lambda now_ms: got.extend(self._member.poll(now_ms, records_max=records_max)))
        return consumed(got, self._world.now_us)

    def commit(self, offsets: Mapping[TopicPartition, int] | None, metadata: str) -> StoryCommit:
        commit = StoryCommit()
        self._host.do(lambda now_ms: self._member.begin_commit(commit, offsets, metadata, now_ms))
        return commit

    def leave(self) -> None:
        self._host.do(lambda now_ms: self._member.leave(now_ms, commits=False))

    def kill(self) -> None:
        self._host.kill()

    def pause(self) -> None:
        self._host.pause()

    def resume(self) -> None:
        self._host.wake()
