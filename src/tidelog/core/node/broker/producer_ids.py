"""The producer ids that this broker may hand out: a block at a time, each id once.

Whoever asks while there is none waits; the controller gives a block only after its record is
committed, and never the same one twice. Nobody waits for long: a connection's answers leave in
order, and behind this one may stand the metadata that would lead the client elsewhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from tidelog.core.model.alarms import Alarms
from tidelog.core.node.controller.controller_channel import RETRY_MS, ControllerChannel
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.messages.api_67_allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from tidelog.core.wire.schema import Message
from tidelog.core.wire.sentinels import UNKNOWN_BROKER_EPOCH

VERSION = 0
WAIT_MS = 2_000
"""A block comes within milliseconds where there is a controller. Kafka does not wait at all."""

Then = Callable[[int | None], None]


class ProducerIds:
    """Invariant: nobody waits while there are ids, and at most one block is on its way."""

    def __init__(
        self,
        *,
        node_id: int,
        alarms: Alarms,
        channel: ControllerChannel,
        broker_epoch: Callable[[], int | None],
    ) -> None:
        self._node_id = node_id
        self._alarms = alarms
        self._channel = channel
        self._broker_epoch = broker_epoch
        self._block = range(0)
        self._waiting: deque[tuple[int, Then]] = deque()
        self._is_asking = False

    def take(self, then: Then, *, now_ms: int) -> None:
        """Call `then` with an id that nobody else gets, or with None if none comes in time."""
        self._waiting.append((now_ms + WAIT_MS, then))
        self._serve(now_ms)
        if self._waiting:
            self._alarms.at(now_ms + WAIT_MS, self._give_up)

    def check(self) -> None:
        assert not self._waiting or self._is_asking, "a request waits, and no block is on its way"

    def _give_up(self, now_ms: int) -> None:
        while self._waiting and self._waiting[0][0] <= now_ms:
            self._waiting.popleft()[1](None)

    def _serve(self, now_ms: int) -> None:
        while self._waiting and self._block:
            producer_id = self._block[0]
            self._block = self._block[1:]
            self._waiting.popleft()[1](producer_id)
        if self._waiting and not self._is_asking:
            self._is_asking = True
            self._ask(now_ms)

    def _ask(self, now_ms: int) -> None:
        broker_epoch = self._broker_epoch()
        request = AllocateProducerIdsRequest(
            broker_id=self._node_id,
            broker_epoch=UNKNOWN_BROKER_EPOCH if broker_epoch is None else broker_epoch,
        )
        self._channel.ask(request, VERSION, self._on_answer, now_ms=now_ms)

    def _on_answer(self, answer: Message | NoAnswer, now_ms: int) -> None:
        if not isinstance(answer, AllocateProducerIdsResponse) or answer.error_code != 0:
            self._alarms.at(now_ms + RETRY_MS, self._ask)
            return
        first = answer.producer_id_start
        self._block = range(first, first + answer.producer_id_len)
        self._is_asking = False
        self._serve(now_ms)
