"""Producer, Consumer and Admin for programs: real sockets, calls that wait, errors as exceptions.

    with Producer({"bootstrap.servers": "localhost:9092"}) as producer:
        sent = producer.send("orders", b"paid", key=b"order-1")
        print(sent.result().offset)

    with Producer({..., "transactional.id": "payments-1"}) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("orders", b"paid")
        producer.commit_transaction()

A producer has one thread of its own and may be used by many. A consumer and an admin work while
somebody calls them, and by one thread at a time.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

from tidelog.client.admin.admin import AdminMachine, Failed
from tidelog.client.admin.question import Question
from tidelog.client.config import client_config
from tidelog.client.consumer.config import consumer_config
from tidelog.client.consumer.consumer import ConsumerMachine
from tidelog.client.consumer.fetched_records import ConsumerRecord
from tidelog.client.consumer.offset_lookup import LookupFailed, LookupResult, OffsetAndTimestamp
from tidelog.client.group.offset_requests import ConsumerGroupMetadata, OffsetAndMetadata
from tidelog.client.producer.config import producer_config
from tidelog.client.producer.outcome import SendOk, SendOutcome, SendRefused, SendTicket
from tidelog.client.producer.producer import ProducerMachine
from tidelog.client.producer.transaction_errors import (
    IllegalTransactionState,
    exception_for,
)
from tidelog.client.producer.transaction_manager import TransactionManager
from tidelog.client.producer.transaction_outcome import TransactionFailed, TransactionTicket
from tidelog.client.producer.transaction_states import OPEN
from tidelog.client.settings import Given
from tidelog.client.shells.closeable import Closeable
from tidelog.client.shells.loop import Loop
from tidelog.core.model.exceptions import TidelogError
from tidelog.core.model.ids import TopicPartition
from tidelog.core.model.trace import Trace
from tidelog.core.wire.records import Header

# Size: the clients that programs use, with the errors and the way of waiting that they share.
T = TypeVar("T")
K = TypeVar("K")
CLOSE_TIMEOUT_S = 30.0
WAIT_SLICE_MS = 1_000


class SendFailed(TidelogError):
    """A record was not acknowledged."""

    def __init__(self, error: str, reason: str) -> None:
        super().__init__(f"{error}: {reason}")
        self.error = error
        self.reason = reason


class RecordRefused(SendFailed):
    """It is certainly not in the log."""


class RecordUnknown(SendFailed):
    """It may be in the log once, or not at all."""


class TimedOut(TidelogError):
    """What was waited for did not happen in time."""


class RequestFailed(TidelogError):
    """The cluster gave no usable answer."""


class NotSupported(RequestFailed):
    """The broker does not have the API that was asked for."""


class SentRecord:
    """A record on its way; its outcome may be waited for."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self.ticket: SendTicket | None = None

    @property
    def outcome(self) -> SendOutcome | None:
        return self.ticket.outcome if self.ticket is not None else None

    def wait(self, timeout_s: float | None = None) -> SendOutcome:
        """The outcome, whatever it is."""
        self._producer.wait_until(lambda: self.outcome is not None, timeout_s, "an outcome")
        assert self.outcome is not None
        return self.outcome

    def result(self, timeout_s: float | None = None) -> SendOk:
        """Where it went; SendFailed if it did not."""
        outcome = self.wait(timeout_s)
        if isinstance(outcome, SendOk):
            return outcome
        kind = RecordRefused if isinstance(outcome, SendRefused) else RecordUnknown
        raise kind(outcome.error, outcome.reason)


class Producer(Closeable):
    """Records are sent by a thread in the background."""

    def __init__(self, settings: Given, *, trace: Trace | None = None) -> None:
        """`trace` gets the events of `client.events`, on the thread in the background."""
        config = producer_config(settings)
        self._loop = Loop(config.client, trace)
        self._machine = ProducerMachine(self._loop.client, config)
        self._max_block_s = config.max_block_ms / 1_000
        self._changed = threading.Condition(threading.RLock())
        self._callbacks: deque[Callable[[], None]] = deque()
        self._is_over = False
        self._broken: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="tidelog-producer", daemon=True)
        self._thread.start()

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Sequence[Header] = (),
        timestamp_ms: int | None = None,
        on_outcome: Callable[[SendOutcome], None] | None = None,
        on_done: Callable[[SendTicket], None] | None = None,
    ) -> SentRecord:
        """Waits up to max.block.ms for metadata and room; TransactionError if it cannot be sent.

        `on_outcome` and `on_done`, whose ticket also names the partition, run on the other thread.
        """
        sent = SentRecord(self)

        def complete(ticket: SendTicket, now_ms: int) -> None:
            assert ticket.outcome is not None
            if on_outcome is not None:
                self._callbacks.append(partial(on_outcome, ticket.outcome))
            if on_done is not None:
                self._callbacks.append(partial(on_done, ticket))

        with self._changed:
            self._check()
            sent.ticket = ticket = self._machine.send(
                topic,
                value,
                key=key,
                partition=partition,
                headers=headers,
                timestamp_ms=time.time_ns() // 1_000_000 if timestamp_ms is None else timestamp_ms,
                now_ms=self._loop.now_ms(),
                then=complete,
            )
            if self._machine.needs_run:
                self._loop.wake()
            if ticket.is_blocked and threading.current_thread() is not self._thread:
                self.wait_until(lambda: not ticket.is_blocked, None, "room")
        return sent

    def flush(self, timeout_s: float | None = None) -> None:
        """Until everything sent so far has an outcome."""
        done = threading.Event()
        with self._changed:
            self._machine.flush(self._loop.now_ms(), lambda now_ms: done.set())
            self._loop.wake()
        self.wait_until(done.is_set, timeout_s, "a flush")

    @property
    def pending(self) -> int:
        with self._changed:
            return self._machine.pending

    # Transactions: each waits up to max.block.ms. After TimedOut the same call may be made again.

    def init_transactions(self) -> None:
        """Once, before all else: fences former producers of this `transactional.id`."""
        self._complete(lambda manager, now_ms: manager.init_transactions(now_ms))

    def begin_transaction(self) -> None:
        """IllegalTransactionState if calls come in another order."""
        with self._changed:
            self._check()
            self._transactions.begin_transaction()

    def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group: ConsumerGroupMetadata,
    ) -> None:
        """They count for the group when the transaction is committed."""
        self._complete(
            lambda manager, now_ms: manager.send_offsets_to_transaction(offsets, group, now_ms)
        )

    def commit_transaction(self) -> None:
        """TransactionAbortable: it is not committed. ProducerFenced, TransactionFatal: close.

        After TransactionFatal `failure.is_unknown` says whether it may be committed nevertheless.
        """
        self._complete(lambda manager, now_ms: manager.commit_transaction(now_ms))

    def abort_transaction(self) -> None:
        self._complete(lambda manager, now_ms: manager.abort_transaction(now_ms))

    @property
    def _transactions(self) -> TransactionManager:
        if self._machine.transactions is None:
            raise IllegalTransactionState("this producer has no transactional.id")
        return self._machine.transactions

    def _complete(self, start: Callable[[TransactionManager, int], TransactionTicket]) -> None:
        with self._changed:
            self._check()
            ticket = start(self._transactions, self._loop.now_ms())
            self._loop.wake()
        self.wait_until(lambda: ticket.is_done, self._max_block_s, ticket.operation.value)
        if isinstance(ticket.outcome, TransactionFailed):
            raise exception_for(ticket.outcome)

    def _end_transaction(self, timeout_s: float) -> None:
        """As Java's producer does when it is closed: what is open is aborted."""
        manager = self._machine.transactions
        if manager is None:
            return
        with self._changed:
            if manager.state in OPEN:
                manager.abort_transaction(self._loop.now_ms())
                self._loop.wake()
        with suppress(TimedOut, RequestFailed):
            self.wait_until(lambda: not manager.is_busy, timeout_s, "the end of a transaction")

    def close(self, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
        """Send the rest; what has no outcome in time is given up, as unknown or refused."""
        if self._is_over:
            return
        deadline_s = time.monotonic() + timeout_s
        self._end_transaction(timeout_s)
        timeout_s = max(0.0, deadline_s - time.monotonic())
        with self._changed:
            self._machine.close(self._loop.now_ms())
            self._loop.wake()
        try:
            self.wait_until(lambda: self._machine.pending == 0, timeout_s, "a clean end")
        except TimedOut:
            with self._changed:
                self._machine.abort(self._loop.now_ms())
        finally:
            with self._changed:
                self._is_over = True
                self._loop.wake()
            self._thread.join()
            self._call_back()
            self._loop.close()

    def wait_until(self, reached: Callable[[], bool], timeout_s: float | None, what: str) -> None:
        deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        with self._changed:
            while not reached():
                self._check()
                left_s = None if deadline_s is None else deadline_s - time.monotonic()
                if left_s is not None and left_s <= 0:
                    raise TimedOut(f"{what} did not come within {timeout_s} s")
                self._changed.wait(left_s)

    def _check(self) -> None:
        if self._broken is not None:
            raise RequestFailed("the producer's thread has died") from self._broken

    # The other thread

    def _run(self) -> None:
        try:
            while True:
                ready = self._loop.wait(WAIT_SLICE_MS)
                with self._changed:
                    if self._is_over:
                        return
                    self._loop.dispatch(ready)
                    self._changed.notify_all()
                self._call_back()
        except BaseException as error:
            with self._changed:
                self._broken = error
                self._changed.notify_all()
            raise

    def _call_back(self) -> None:
        """Outside of the lock: a program's own code may do anything."""
        while self._callbacks:
            self._callbacks.popleft()()


class DrivenClient(Closeable):
    """A client that works only while somebody waits for it."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    def _turn_until(self, reached: Callable[[], bool], timeout_s: float) -> bool:
        """The first turn only lets leave what the program has just asked for."""
        deadline_ms = self._loop.now_ms() + int(timeout_s * 1_000)
        wait_ms = 0
        while not reached():
            if wait_ms < 0:
                return False
            self._loop.turn(wait_ms)
            wait_ms = deadline_ms - self._loop.now_ms()
        return True

    def close(self) -> None:
        self._loop.close()


class Consumer(DrivenClient):
    """Reads assigned partitions; `GroupConsumer` reads those that a group gives it."""

    def __init__(self, settings: Given) -> None:
        config = consumer_config(settings)
        super().__init__(Loop(config.client))
        self._timeout_s = config.api_timeout_ms / 1_000
        self._machine = ConsumerMachine(self._loop.client, config)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        self._machine.assign(partitions)

    def seek(
        self, partition: TopicPartition, offset: int, *, leader_epoch: int | None = None
    ) -> None:
        self._machine.seek(partition, offset, leader_epoch=leader_epoch)

    def seek_to_beginning(self, partition: TopicPartition) -> None:
        self._machine.seek_to_beginning(partition)

    def seek_to_end(self, partition: TopicPartition) -> None:
        self._machine.seek_to_end(partition)

    def poll(self, timeout_s: float = 0.0) -> list[ConsumerRecord]:
        """Records as soon as there are some, none after the time; ConsumerError if need be."""
        taken: list[ConsumerRecord] = []

        def has_some() -> bool:
            taken.extend(self._machine.poll(self._loop.now_ms()))
            return bool(taken)

        self._turn_until(has_some, timeout_s)
        if taken:
            self._loop.turn(0)  # the next fetches leave before the program works on these
        return taken

    def position(self, partition: TopicPartition) -> int:
        """The next offset to be read; waits until it is known."""
        known = self._machine.position
        if not self._turn_until(lambda: known(partition) is not None, self._timeout_s):
            raise TimedOut(f"no position of {partition} within {self._timeout_s} s")
        position = known(partition)
        assert position is not None
        return position

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        found = self._look_up(
            lambda then, now_ms: self._machine.beginning_offsets(partitions, then, now_ms=now_ms)
        )
        return {each: offset.offset for each, offset in found.items() if offset is not None}

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        found = self._look_up(
            lambda then, now_ms: self._machine.end_offsets(partitions, then, now_ms=now_ms)
        )
        return {each: offset.offset for each, offset in found.items() if offset is not None}

    def offsets_for_times(
        self, timestamps: dict[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        return self._look_up(
            lambda then, now_ms: self._machine.offsets_for_times(timestamps, then, now_ms=now_ms)
        )

    def close(self) -> None:
        self._machine.close(self._loop.now_ms())
        self._loop.turn(0)
        super().close()

    def _look_up(
        self, start: Callable[[Callable[[LookupResult, int], None], int], None]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        results: list[LookupResult] = []
        start(lambda result, now_ms: results.append(result), self._loop.now_ms())
        self._turn_until(lambda: bool(results), self._timeout_s + 1)
        result = results[0] if results else LookupFailed("no answer in time")
        if isinstance(result, LookupFailed):
            raise RequestFailed(result.reason)
        return result


class Admin(DrivenClient):
    """Asks the questions of `client.admin`."""

    def __init__(self, settings: Given) -> None:
        super().__init__(Loop(client_config(settings)))
        self._machine = AdminMachine(self._loop.client)

    def ask(self, question: Question[T], *, timeout_s: float = 60.0) -> T:
        """What the question promises; RequestFailed if no answer comes in time."""
        result = self.ask_each({None: question}, timeout_s=timeout_s)[None]
        if isinstance(result, Failed):
            raise (NotSupported if result.is_unsupported else RequestFailed)(result.reason)
        return result

    def ask_each(
        self, questions: Mapping[K, Question[T]], *, timeout_s: float = 60.0
    ) -> dict[K, T | Failed]:
        """All at once; Failed for those without an answer in time."""
        results: dict[K, T | Failed] = {}
        now_ms = self._loop.now_ms()
        timeout_ms = int(timeout_s * 1_000)
        for key, question in questions.items():

            def on_result(result: T | Failed, _: int, key: K = key) -> None:
                results[key] = result

            self._machine.ask(question, on_result, now_ms=now_ms, timeout_ms=timeout_ms)
        self._turn_until(lambda: len(results) == len(questions), timeout_s + 1)
        return {key: results.get(key, Failed("no answer in time")) for key in questions}
