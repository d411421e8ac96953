"""Kafka's clients for stories about real processes: each has sockets and a thread of its own.

The thread turns the client's loop. Whoever tells a story gives the client something to do under a
lock and never waits for it: a story decides itself what it waits for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from tidelog.client.config import ClientConfig
from tidelog.client.consumer.config import consumer_config
from tidelog.client.consumer.consumer import ConsumerMachine
from tidelog.client.consumer.fetched_records import ConsumerRecord
from tidelog.client.group.config import group_config
from tidelog.client.producer.config import producer_config
from tidelog.client.producer.outcome import SendOutcome, SendTicket
from tidelog.client.producer.producer import ProducerMachine
from tidelog.client.shells.loop import Loop
from tidelog.core.model.ids import TopicPartition
from tidelog.lab.engine import Consumed, MemberAssigned
from tidelog.lab.engines.story_clock import StoryClock
from tidelog.lab.engines.story_member import StoryCommit, StoryMember, consumed

T = TypeVar("T")
WAIT_SLICE_MS = 1_000


class ClientThread:
    """A loop that turns until it is closed."""

    def __init__(self, config: ClientConfig, name: str) -> None:
        self._loop = Loop(config)
        self._lock = threading.RLock()
        self._is_over = False
        self._is_awake = threading.Event()
        self._is_awake.set()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.client = self._loop.client

    def start(self) -> None:
        self._thread.start()

    def do(self, act: Callable[[int], T]) -> T:
        """Let a machine of this client act now; what it wishes leaves in the next turn."""
        with self._lock:
            result = act(self._loop.now_ms())
            if not self._is_over:
                self._loop.wake()
        return result

    @property
    def is_paused(self) -> bool:
        return not self._is_awake.is_set()

    def pause(self) -> None:
        """Nothing is sent or received any more."""
        with self._lock:
            self._is_awake.clear()

    def resume(self) -> None:
        self._is_awake.set()

    def close(self) -> None:
        """What is under way is left to itself. It may be closed twice."""
        with self._lock:
            if self._is_over:
                return
            self._is_over = True
        self._is_awake.set()
        self._loop.wake()
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        while True:
            self._is_awake.wait()
            ready = self._loop.wait(WAIT_SLICE_MS)
            with self._lock:
                if self._is_over:
                    return
                if not self.is_paused:
                    self._loop.dispatch(ready)


class ThreadedTicket:
    """One record given to a producer."""

    def __init__(self) -> None:
        self.ticket: SendTicket | None = None
        self.over_us: int | None = None

    @property
    def outcome(self) -> SendOutcome | None:
        """Told only when the moment is, too."""
        return None if self.ticket is None or self.over_us is None else self.ticket.outcome

    @property
    def is_over(self) -> bool:
        return self.outcome is not None

    @property
    def is_blocked(self) -> bool:
        return self.ticket is not None and self.ticket.is_blocked


class ThreadedProducer:
    """A producer of the client room."""

    def __init__(
        self, name: str, config: Mapping[str, str], clock: StoryClock, on_change: Callable[[], None]
    ) -> None:
        settings = producer_config(config)
        self._clock = clock
        self._on_change = on_change
        self._host = ClientThread(settings.client, name)
        self._producer = ProducerMachine(self._host.client, settings)
        self._host.start()

    def send(self, topic: str, index: int, value: bytes) -> ThreadedTicket:
        handle = ThreadedTicket()

        def on_outcome(_: SendTicket, now_ms: int) -> None:
            handle.over_us = self._clock.now_us
            self._on_change()

        def act(now_ms: int) -> None:
            handle.ticket = self._producer.send(
                topic,
                value,
                partition=index,
                timestamp_ms=time.time_ns() // 1_000_000,
                now_ms=now_ms,
                then=on_outcome,
            )

        self._host.do(act)
        return handle

    def flush(self) -> None:
        self._host.do(self._producer.flush)

    @property
    def pending(self) -> int:
        return self._host.do(lambda now_ms: self._producer.pending)

    def close(self) -> None:
        self._host.close()


class ThreadedConsumer:
    """A consumer of the client room."""

    def __init__(self, name: str, config: Mapping[str, str], clock: StoryClock) -> None:
        settings = consumer_config(config)
        self._clock = clock
        self._host = ClientThread(settings.client, name)
        self._consumer = ConsumerMachine(self._host.client, settings)
        self._host.start()

    def assign(self, partitions: Sequence[tuple[str, int]]) -> None:
        names = [TopicPartition(*each) for each in partitions]
        self._host.do(lambda now_ms: self._consumer.assign(names))

    def seek(self, topic: str, index: int, offset: int, *, leader_epoch: int | None) -> None:
        name = TopicPartition(topic, index)
        self._host.do(lambda now_ms: self._consumer.seek(name, offset, leader_epoch=leader_epoch))

    def position(self, topic: str, index: int) -> int | None:
        name = TopicPartition(topic, index)
        return self._host.do(lambda now_ms: self._consumer.position(name))

    def poll(self) -> list[Consumed]:
        got: list[ConsumerRecord] = self._host.do(lambda now_ms: list(self._consumer.poll(now_ms)))
        return consumed(got, self._clock.now_us)

    def close(self) -> None:
        self._host.close()


class ThreadedMember:
    """A group member of the client room."""

    def __init__(
        self, name: str, config: Mapping[str, str], topics: Sequence[str], clock: StoryClock
    ) -> None:
        settings = group_config(config)
        self._clock = clock
        self._host = ClientThread(settings.consumer.client, name)
        self._member = StoryMember(self._host.client, settings, topics, lambda: clock.now_us)
        self._host.start()

    @property
    def assignments(self) -> Sequence[MemberAssigned]:
        return self._host.do(lambda now_ms: tuple(self._member.assignments))

    @property
    def owned(self) -> tuple[TopicPartition, ...] | None:
        return self._host.do(lambda now_ms: self._member.owned)

    def position(self, partition: TopicPartition) -> int | None:
        return self._host.do(lambda now_ms: self._member.position(partition))

    def poll(self, records_max: int | None = None) -> list[Consumed]:
        if self._host.is_paused:
            return []
        got = self._host.do(lambda now_ms: self._member.poll(now_ms, records_max=records_max))
        return consumed(got, self._clock.now_us)

    def commit(self, offsets: Mapping[TopicPartition, int] | None, metadata: str) -> StoryCommit:
        commit = StoryCommit()
        self._host.do(lambda now_ms: self._member.begin_commit(commit, offsets, metadata, now_ms))
        return commit

    def leave(self) -> None:
        self._host.do(lambda now_ms: self._member.leave(now_ms, commits=False))

    def kill(self) -> None:
        """To the brokers it is the same whether a process ends, or only its sockets do."""
        self._host.close()

    def pause(self) -> None:
        self._host.pause()

    def resume(self) -> None:
        self._host.resume()

    def close(self) -> None:
        self._host.close()
