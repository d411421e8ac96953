"""The producer: takes records, makes a program wait when it must, and reports every outcome.

A record first needs the metadata of its topic, then room in the buffer. While one of them is
missing its ticket is *blocked*; where Java would make the caller wait, a host looks at the ticket.
Blocked records of a topic keep their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tidelog.client.client import Client
from tidelog.client.producer.accumulator import Accumulator, AppendResult
from tidelog.client.producer.batch import record_bytes_max
from tidelog.client.producer.config import ProducerConfig
from tidelog.client.producer.outcome import (
    BUFFER_EXHAUSTED,
    PRODUCER_CLOSED,
    RECORD_TOO_LARGE,
    TIMED_OUT,
    OnOutcome,
    SendRefused,
    SendTicket,
)
from tidelog.client.producer.partitioner import StickyPartitioner, partition_for_key
from tidelog.client.producer.sender import Sender
from tidelog.client.producer.transaction_errors import TRANSACTION_ABORTED
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.exceptions import TidelogError
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.records import Header

_TOPIC_REFUSED = frozenset(
    {ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_AUTHORIZATION_FAILED}
)


class ProducerClosed(TidelogError):
    """A record was given to a producer that takes none any more."""


class ProducerMachine:
    """Attached to a client; `run` and `deadlines_ms` are the client's to call."""

    def __init__(self, client: Client, config: ProducerConfig) -> None:
        self._client = client
        self._config = config
        self._accumulator = Accumulator(config)
        self._sender = Sender(client, config, self._accumulator)
        self.transactions = self._sender.transactions
        """With `transactional.id`: every record belongs to a transaction of this manager."""
        self._sticky = StickyPartitioner(batch_size=config.batch_size, random=client.random)
        self._blocked: list[SendTicket] = []
        self._lacks_room = False
        """Somebody waits for room: nothing lingers, as in Java."""
        self._flushes: list[_Flush] = []
        self.is_closed = False
        self.needs_run = False
        """Something was taken that changes what is to be done, and when."""
        client.attach(self)

    # What a program does

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        now_ms: int,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Sequence[Header] = (),
        timestamp_ms: int | None = None,
        then: OnOutcome | None = None,
    ) -> SendTicket:
        """`then(ticket, now_ms)` gets the outcome, at once if the record is refused at once."""
        if self.is_closed:
            raise ProducerClosed("this producer is closed")
        if self.transactions is not None:
            self.transactions.check_send()
        ticket = SendTicket(
            topic,
            value,
            key=key,
            wanted_index=partition,
            headers=headers,
            timestamp_ms=now_ms if timestamp_ms is None else timestamp_ms,
            then=then,
        )
        self._client.refresh.add_topic(topic)
        if any(each.topic == topic for each in self._blocked) or not self._admit(ticket, now_ms):
            ticket.blocked_until_ms = now_ms + self._config.max_block_ms
            self._blocked.append(ticket)
            self.needs_run = True
        return ticket

    def flush(self, now_ms: int, then: Callable[[int], None] | None = None) -> None:
        """Let nothing linger until all that was taken so far has an outcome; then say so."""
        waits_for = [ticket for batch in self._accumulator.incomplete for ticket in batch.tickets]
        self._flushes.append(_Flush(waits_for, then))

    @property
    def is_flushing(self) -> bool:
        return bool(self._flushes)

    @property
    def pending(self) -> int:
        """Records without an outcome."""
        batched = sum(batch.count for batch in self._accumulator.incomplete)
        return batched + len(self._blocked)

    @property
    def buffer_available_bytes(self) -> int:
        return self._accumulator.free_bytes

    @property
    def blocked_until_ms(self) -> int | None:
        """Until when a program with one thread may have to wait; None: it need not."""
        return min((each.blocked_until_ms or 0 for each in self._blocked), default=None)

    def close(self, now_ms: int) -> None:
        """Take nothing more and send the rest at once; `pending` says how much is left."""
        self.is_closed = True
        for ticket in self._blocked:
            ticket.complete(SendRefused(PRODUCER_CLOSED, "closed while it was blocked"), now_ms)
        self._blocked.clear()

    def abort(self, now_ms: int) -> None:
        """Close and give up what has no outcome yet."""
        self.close(now_ms)
        self._sender.close(now_ms)
        if self.transactions is not None:
            self.transactions.close(now_ms)
        self._finish_flushes(now_ms)

    # What the client calls

    def run(self, now_ms: int) -> None:
        self.needs_run = False
        self._admit_blocked(now_ms)
        self._run_transactions(now_ms)
        self._sender.run(now_ms, hurry=self._is_in_hurry())
        if self._admit_blocked(now_ms):
            self._sender.run(now_ms, hurry=self._is_in_hurry())
        self._run_transactions(now_ms)
        self._finish_flushes(now_ms)

    def _run_transactions(self, now_ms: int) -> None:
        if self.transactions is not None:
            self.transactions.run(now_ms, is_drained=self.pending == 0)

    def deadlines_ms(self) -> Iterable[int | None]:
        of_transactions = () if self.transactions is None else self.transactions.deadlines_ms()
        return (*self._sender.deadlines_ms(), *of_transactions, self.blocked_until_ms)

    def check(self) -> None:
        """For tests and the simulator: nothing is lost between the parts."""
        self._accumulator.check()
        if self._sender.sequences is not None:
            self._sender.sequences.check()

    def _is_in_hurry(self) -> bool:
        is_completing = self.transactions is not None and self.transactions.is_completing
        return self._lacks_room or self.is_closed or is_completing or bool(self._flushes)

    def _finish_flushes(self, now_ms: int) -> None:
        for flush in list(self._flushes):
            while flush.waits_for and flush.waits_for[-1].is_done:
                flush.waits_for.pop()
            if not flush.waits_for:
                self._flushes.remove(flush)
                if flush.then is not None:
                    flush.then(now_ms)

    # Being taken

    def _admit_blocked(self, now_ms: int) -> bool:
        """Take what can be taken now, in order; refuse what waited too long. True if any was."""
        stuck_topics: set[str] = set()
        still_blocked: list[SendTicket] = []
        blocked, self._blocked = self._blocked, []
        self._lacks_room = False
        for ticket in blocked:
            if ticket.topic not in stuck_topics and self._admit(ticket, now_ms):
                continue
            if (ticket.blocked_until_ms or 0) <= now_ms:
                self._time_out(ticket, now_ms)
                continue
            stuck_topics.add(ticket.topic)
            still_blocked.append(ticket)
        self._blocked = still_blocked + self._blocked
        return len(still_blocked) < len(blocked)

    def _time_out(self, ticket: SendTicket, now_ms: int) -> None:
        waited_ms = self._config.max_block_ms
        if self._has_metadata(ticket):
            reason = f"no room in the buffer after {waited_ms} ms"
            self._refuse(ticket, BUFFER_EXHAUSTED, reason, now_ms)
        else:
            reason = f"{_destination(ticket)} is not in the metadata after {waited_ms} ms"
            self._refuse(ticket, TIMED_OUT, reason, now_ms)

    def _refuse(self, ticket: SendTicket, error: str, reason: str, now_ms: int) -> None:
        """It never leaves; a transaction without it cannot be committed."""
        if self.transactions is not None:
            self.transactions.on_send_failed(error, reason, now_ms, was_sent=False)
        ticket.complete(SendRefused(error, reason), now_ms)

    def _admit(self, ticket: SendTicket, now_ms: int) -> bool:
        """True if it has been taken or refused; False if it must wait."""
        sequences = self._sender.sequences
        if sequences is not None and sequences.fatal is not None:
            ticket.complete(SendRefused(*sequences.fatal), now_ms)
            return True
        if self.transactions is not None and self.transactions.is_abandoned:
            reason = "its transaction was given up"
            ticket.complete(SendRefused(TRANSACTION_ABORTED, reason), now_ms)
            return True
        facts = self._client.metadata.topics.get(ticket.topic)
        if facts is not None and facts.error in _TOPIC_REFUSED:
            self._refuse(ticket, facts.error.name, f"topic {ticket.topic}", now_ms)
            return True
        if not self._has_metadata(ticket):
            self._client.refresh.request_update()
            return False
        size_bytes = record_bytes_max(ticket)
        limit_bytes = min(self._config.request_bytes_max, self._config.buffer_memory)
        if size_bytes > limit_bytes:
            reason = f"{size_bytes} bytes are more than {limit_bytes}"
            self._refuse(ticket, RECORD_TOO_LARGE, reason, now_ms)
            return True
        return not self._lacks_room and self._append(ticket, now_ms)

    def _has_metadata(self, ticket: SendTicket) -> bool:
        count = self._client.metadata.partition_count(ticket.topic)
        return count is not None and (ticket.wanted_index is None or ticket.wanted_index < count)

    def _append(self, ticket: SendTicket, now_ms: int) -> bool:
        metadata = self._client.metadata
        is_sticky = ticket.wanted_index is None and ticket.key is None
        if ticket.wanted_index is not None:
            index = ticket.wanted_index
        elif ticket.key is not None:
            count = metadata.partition_count(ticket.topic)
            assert count is not None
            index = partition_for_key(ticket.key, count)
        else:
            index = self._sticky.choose(ticket.topic, metadata)
        partition = TopicPartition(ticket.topic, index)
        appended = self._accumulator.append(ticket, partition, now_ms)
        if appended == AppendResult.NO_ROOM:
            self._lacks_room = True
            return False
        is_full = self._accumulator.last_is_full(partition)
        if is_sticky:
            size_bytes = record_bytes_max(ticket)
            self._sticky.gave(ticket.topic, size_bytes, batch_is_full=is_full)
        self.needs_run |= is_full or appended == AppendResult.INTO_NEW_BATCH
        ticket.partition = partition
        if self.transactions is not None:
            self.transactions.add_partition(partition)
        ticket.blocked_until_ms = None
        return True


class _Flush:
    """Somebody waits until these records have an outcome."""

    def __init__(self, waits_for: list[SendTicket], then: Callable[[int], None] | None) -> None:
        self.waits_for = waits_for
        self.then = then


def _destination(ticket: SendTicket) -> str:
    if ticket.wanted_index is None:
        return f"topic {ticket.topic}"
    return f"partition {ticket.topic}-{ticket.wanted_index}"
