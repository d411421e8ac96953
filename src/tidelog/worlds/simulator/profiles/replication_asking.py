"""Clients of a replication run that speak for themselves, without the client room.

They know one connection to each broker and the newest leader of each partition that any broker told
them. What they see is a second opinion about what the client room's machines do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages.api_03_metadata import MetadataResponse
from tidelog.core.wire.schema import Message
from tidelog.core.wire.sentinels import LATEST_TIMESTAMP
from tidelog.judge.history import EndAsked
from tidelog.worlds.simulator import requests
from tidelog.worlds.simulator.client import Outcome as Answer
from tidelog.worlds.simulator.client import Trouble, WireClient
from tidelog.worlds.simulator.cluster import host_of
from tidelog.worlds.simulator.profiles.replication_scene import ReplicationScene
from tidelog.worlds.simulator.requests import TopicName

TIMEOUT_MS = 4_000
METADATA_VERSION = 12
LIST_OFFSETS_VERSION = 7
REFRESH_CHANCE = 0.08


class Led(NamedTuple):
    """A leader and its leader epoch; the newer one is the greater."""

    leader_epoch: int
    leader: int


class Asker:
    """Somebody with one connection to each broker."""

    def __init__(self, scene: ReplicationScene, name: str) -> None:
        self.scene = scene
        self.name = name
        self.random = scene.world.random_for(name)
        self._clients = {
            node_id: WireClient(
                world=scene.world, network=scene.network, name=name, server=host_of(node_id)
            )
            for node_id in scene.plan.brokers
        }

    @property
    def in_flight(self) -> int:
        return sum(client.in_flight for client in self._clients.values())

    def ask(
        self,
        request: Message,
        version: int,
        then: Callable[[Answer], None],
        *,
        broker: int | None = None,
    ) -> None:
        """Of one broker, or of any that runs."""
        if broker is None:
            running = [b for b in self._clients if self.scene.cluster.process(b).is_up]
            broker = self.random.choice(running or list(self._clients))
        if broker in self._clients:
            self._clients[broker].call(request, version, then, timeout_ms=TIMEOUT_MS)


class Knower(Asker):
    """Somebody who keeps in mind who leads what."""

    def __init__(self, scene: ReplicationScene, name: str) -> None:
        super().__init__(scene, name)
        self.known: dict[str, Led] = {}
        """The newest leader of each partition that any broker told."""

    def refresh(self) -> None:
        self.ask(requests.list_topics(), METADATA_VERSION, self._on_metadata)

    def _on_metadata(self, answer: Answer) -> None:
        if not isinstance(answer, MetadataResponse):
            return
        for topic in answer.topics:
            for told in topic.partitions:
                if told.leader_id >= 0:
                    name = f"{topic.name}-{told.partition_index}"
                    led = Led(told.leader_epoch, told.leader_id)
                    self.known[name] = max(led, self.known.get(name, led))


class EndAsker(Knower):
    """Asks leaders for the end of their logs, and tells them the leader epoch that it knows."""

    def __init__(self, scene: ReplicationScene) -> None:
        super().__init__(scene, "asker")

    def start(self) -> None:
        self.scene.later(self.random, 10, 60, self._go_on)

    def _go_on(self) -> None:
        if self.scene.is_over:
            return
        if self.in_flight < 3 and self.scene.places:
            place = self.random.choice(self.scene.places)
            known = self.known.get(str(place))
            if known is None or self.random.random() < REFRESH_CHANCE:
                self.refresh()
            if known is not None:
                self._ask_end(place, known)
        self.start()

    def _ask_end(self, place: TopicPartition, led: Led) -> None:
        invoked_us = self.scene.world.now_us
        topic = TopicName(place.topic, b"")

        def on_answer(answer: Answer) -> None:
            if isinstance(answer, Trouble):
                return
            told = requests.list_offset_answer(answer)
            if told.error_code == ErrorCode.NONE:
                self.scene.record(
                    EndAsked(
                        at_us=self.scene.world.now_us,
                        invoked_us=invoked_us,
                        reader=self.name,
                        partition=str(place),
                        end_offset=told.offset,
                        leader_epoch=led.leader_epoch,
                        known_leader_epoch=led.leader_epoch,
                    )
                )
            else:
                self.refresh()

        self.ask(
            requests.list_offset(
                topic, place.index, LATEST_TIMESTAMP, leader_epoch=led.leader_epoch
            ),
            LIST_OFFSETS_VERSION,
            on_answer,
            broker=led.leader,
        )
