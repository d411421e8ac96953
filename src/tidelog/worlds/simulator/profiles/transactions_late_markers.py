"""Markers that come again: a coordinator sent them twice, and one copy took its time.

With an epoch for each transaction such a copy has the epoch of the transaction that is open now,
while this one's own marker has the next. A leader that ends a transaction by it tears it apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidelog.core.coordinator.key_hash import partition_of
from tidelog.core.model.limits import EPOCH_PER_TRANSACTION
from tidelog.core.model.topic_name import TRANSACTIONS_TOPIC
from tidelog.core.wire.messages.api_27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tidelog.worlds.simulator.profiles.transactions_context import TransactionsContext
from tidelog.worlds.simulator.profiles.transactions_producers import TransactionalProducer
from tidelog.worlds.simulator.profiles.wire_clients import BrokerClients
from tidelog.worlds.simulator.steps import PlanStep

VERSION = 2
TIMES = 5
EVERY_US = 40_000


class LateMarkers(BrokerClients):
    """Sends to every partition that a producer may be writing to."""

    def __init__(
        self,
        context: TransactionsContext,
        producers: Mapping[str, Sequence[TransactionalProducer]],
    ) -> None:
        super().__init__(context, "late-markers")
        self._run = context
        self._producers = producers

    def send(self, step: PlanStep) -> None:
        """Again and again, for a little while."""
        for times in range(TIMES):
            delay_us = times * EVERY_US + self.random.randint(0, EVERY_US)
            self._run.world.after(delay_us, lambda: self._send(step.who[0]))

    def _send(self, transactional_id: str) -> None:
        if self._run.is_healed:
            return
        producer = self._producers[transactional_id][-1]
        identity = producer.identity
        if identity.producer_id < 0:
            return
        index = partition_of(transactional_id, self._run.transactions.transactions_partitions)
        known = self._run.checker.model.partitions.get(f"{TRANSACTIONS_TOPIC}-{index}")
        if known is None:
            return
        is_commit = self.random.random() < 0.5
        for partition in self._run.data_partitions:
            leader = self._run.leader_of(self._run.name_of(partition))
            if leader is None:
                continue
            marker = WritableTxnMarker(
                producer_id=identity.producer_id,
                producer_epoch=identity.producer_epoch,
                transaction_result=is_commit,
                topics=[
                    WritableTxnMarkerTopic(
                        name=partition.topic, partition_indexes=[partition.index]
                    )
                ],
                coordinator_epoch=known.leader_epoch,
                transaction_version=EPOCH_PER_TRANSACTION,
            )
            request = WriteTxnMarkersRequest(markers=[marker])
            self.ask(request, VERSION, lambda _reply: None, broker=leader)
