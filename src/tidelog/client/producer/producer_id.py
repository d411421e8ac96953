"""How an idempotent producer gets its id, and goes on under a new producer epoch after a gap."""

from __future__ import annotations

from tidelog.client.back_off import BackOff
from tidelog.client.client import Client
from tidelog.client.events import ProducerEpochBumped, ProducerIdentified
from tidelog.client.producer.sequences import Sequences
from tidelog.core.model.errors import RETRIABLE, ErrorCode
from tidelog.core.model.ids import ProducerIdAndEpoch
from tidelog.core.model.limits import INT32_MAX
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.messages.api_22_init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from tidelog.core.wire.schema import Message


class ProducerIdRequester:
    """Any broker can give an id; it is asked for once, and again only after a failure."""

    def __init__(self, client: Client, sequences: Sequences) -> None:
        self._client = client
        self._sequences = sequences
        self._back_off = BackOff(
            first_ms=client.config.retry_backoff_ms,
            most_ms=client.config.retry_backoff_max_ms,
            random=client.random,
        )
        self._is_sent = False
        self._failures = 0
        self._retry_at_ms = 0

    def run(self, now_ms: int) -> None:
        """Go on under a new producer epoch if need be, ask for an identity if there is none."""
        sequences = self._sequences
        restarted = sequences.heal()
        if restarted and sequences.identity is not None:
            self._client.trace.emit(
                ProducerEpochBumped(
                    producer_id=sequences.identity.producer_id,
                    producer_epoch=sequences.identity.producer_epoch,
                    partitions=tuple(str(each) for each in restarted),
                )
            )
        if sequences.identity is None and not self._is_sent and self._retry_at_ms <= now_ms:
            self._send(now_ms)

    def next_deadline_ms(self) -> int | None:
        is_waiting = self._sequences.identity is None and not self._is_sent
        return self._retry_at_ms if is_waiting else None

    def _send(self, now_ms: int) -> None:
        node = self._client.usable_node(now_ms)
        if node is None:
            return
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=INT32_MAX)
        version = self._client.connections.version(node, InitProducerIdRequest)
        if version is None:
            error = ErrorCode.UNSUPPORTED_VERSION
            self._sequences.fatal = (error.name, "the broker gives no producer ids")
            return
        self._is_sent = True
        self._client.connections.send(node, request, version, self._answered, now_ms=now_ms)

    def _answered(self, answer: Message | NoAnswer, now_ms: int) -> None:
        self._is_sent = False
        if not isinstance(answer, InitProducerIdResponse):
            self._retry(now_ms)
        elif answer.error_code == ErrorCode.NONE:
            self._failures = 0
            self._sequences.identify(ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch))
            self._client.trace.emit(
                ProducerIdentified(
                    producer_id=answer.producer_id, producer_epoch=answer.producer_epoch
                )
            )
        elif answer.error_code in RETRIABLE:
            self._retry(now_ms)
        else:
            error = ErrorCode.from_wire(answer.error_code)
            self._sequences.fatal = (error.name, "no producer id was given")

    def _retry(self, now_ms: int) -> None:
        self._retry_at_ms = now_ms + self._back_off.pause_ms(self._failures)
        self._failures += 1
