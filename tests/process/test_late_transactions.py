"""Requests of a transaction that arrive after its end: refused, and no transaction hangs."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from tests.process.fixtures import NewTopic
from tests.process.target import IS_KAFKA
from tests.process.waiting import wait_until
from tests.process.wire import WireClient, batch_of, produce_fields
from tidelog.core.model.errors import ErrorCode

TRANSACTION_KEY = 1
SEEN_BEFORE, NEVER_SEEN = 0, 1
"""A partition that knows the aborted transaction, and one that never heard of its producer."""


class TransactionProtocol(NamedTuple):
    """The versions that clients of one transaction protocol send."""

    produce: int
    end_txn: int
    adds_partitions: bool

    @property
    def name(self) -> str:
        return "classic" if self.adds_partitions else "version-2"


CLASSIC = TransactionProtocol(produce=11, end_txn=4, adds_partitions=True)
VERSION_2 = TransactionProtocol(produce=12, end_txn=5, adds_partitions=False)


class RawProducer:
    """A transactional producer that sends what it is told to, when it is told to."""

    def __init__(self, wire: WireClient, topic: str, protocol: TransactionProtocol) -> None:
        self._wire = wire
        self._protocol = protocol
        self.topic = topic
        wait_until(self._has_coordinator, "a coordinator")
        begun = self._again("InitProducerId", 4, transaction_timeout_ms=60_000)
        assert begun.error_code == 0, begun
        self.producer_id: int = begun.producer_id
        self.producer_epoch: int = begun.producer_epoch

    def begin_again(self) -> ErrorCode:
        """As one who has lost count of its sequences."""
        answer = self._again(
            "InitProducerId",
            4,
            transaction_timeout_ms=60_000,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
        )
        return ErrorCode(answer.error_code)

    def add(self, partition: int) -> None:
        if self._protocol.adds_partitions:
            topics = [{"name": self.topic, "partitions": [partition]}]
            answer = self._wire.ask(
                "AddPartitionsToTxn",
                3,
                v3_and_below_transactional_id=self.topic,
                v3_and_below_producer_id=self.producer_id,
                v3_and_below_producer_epoch=self.producer_epoch,
                v3_and_below_topics=topics,
            )
            [result] = answer.results_by_topic_v3_and_below
            assert result.results_by_partition[0].partition_error_code == 0, answer

    def write(
        self,
        value: bytes,
        sequence: int,
        partition: int = SEEN_BEFORE,
        producer_epoch: int | None = None,
    ) -> ErrorCode:
        batch = batch_of(
            value,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch if producer_epoch is None else producer_epoch,
            base_sequence=sequence,
            transactional=True,
        )
        fields = {**produce_fields(self.topic, batch, partition=partition)}
        answer = self._wire.ask(
            "Produce", self._protocol.produce, **{**fields, "transactional_id": self.topic}
        )
        return ErrorCode(answer.responses[0].partition_responses[0].error_code)

    def end(self, *, commits: bool, producer_epoch: int | None = None) -> ErrorCode:
        """Goes on with the epoch that the answer has."""
        answer = self._again(
            "EndTxn",
            self._protocol.end_txn,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch if producer_epoch is None else producer_epoch,
            committed=commits,
        )
        if answer.error_code == 0 and not self._protocol.adds_partitions:
            self.producer_epoch = answer.producer_epoch
        return ErrorCode(answer.error_code)

    def marker(self, *, coordinator_epoch: int, commits: bool) -> ErrorCode:
        """As a coordinator of this epoch would send it to the first partition."""
        marker = {
            "producer_id": self.producer_id,
            "producer_epoch": self.producer_epoch,
            "transaction_result": commits,
            "topics": [{"name": self.topic, "partition_indexes": [0]}],
            "coordinator_epoch": coordinator_epoch,
        }
        answer = self._wire.ask("WriteTxnMarkers", 1, markers=[marker])
        return ErrorCode(answer.markers[0].topics[0].partitions[0].error_code)

    def wait_until_ended(self) -> None:
        def is_ended() -> bool:
            answer = self._wire.ask("DescribeTransactions", 0, transactional_ids=[self.topic])
            state: str = answer.transaction_states[0].transaction_state
            return state.startswith("Complete")

        wait_until(is_ended, "the markers")

    def last_stable_offset(self, partition: int) -> int:
        offset: int = self._wire.fetch(self.topic, 0, partition=partition).last_stable_offset
        return offset

    def _again(self, api: str, version: int, **fields: Any) -> Any:
        """Until no marker is under way."""

        def decided() -> Any:
            answer = self._wire.ask(api, version, transactional_id=self.topic, **fields)
            return None if answer.error_code in RETRIED else answer

        return wait_until(decided, f"an answer to {api}")

    def _has_coordinator(self) -> bool:
        answer = self._wire.ask(
            "FindCoordinator", 4, key_type=TRANSACTION_KEY, coordinator_keys=[self.topic]
        )
        return bool(answer.coordinators[0].error_code == 0)


RETRIED = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
EACH_PROTOCOL = pytest.mark.parametrize("protocol", [CLASSIC, VERSION_2], ids=lambda it: it.name)


@pytest.mark.scenario("X-19", "D1-S4")
@EACH_PROTOCOL
def test_a_batch_that_comes_after_the_abort_opens_nothing(
    wire: WireClient, new_topic: NewTopic, protocol: TransactionProtocol
) -> None:
    """To a partition of the transaction, and to one that never saw its producer."""
    producer = RawProducer(wire, new_topic(partitions=2), protocol)
    old_epoch = producer.producer_epoch
    producer.add(SEEN_BEFORE)
    assert producer.write(b"in time", 0) is ErrorCode.NONE
    assert producer.end(commits=False) is ErrorCode.NONE
    producer.wait_until_ended()

    late = producer.write(b"late", 1, producer_epoch=old_epoch)
    elsewhere = producer.write(b"late", 0, partition=NEVER_SEEN, producer_epoch=old_epoch)

    expected = ErrorCode.INVALID_PRODUCER_EPOCH
    if protocol is CLASSIC:
        expected = ErrorCode.TRANSACTION_ABORTABLE
    assert (late, elsewhere) == (expected, expected)
    assert producer.last_stable_offset(SEEN_BEFORE) == 2
    assert producer.last_stable_offset(NEVER_SEEN) == 0


@pytest.mark.scenario("D1-S3", "D1-S4", "N21")
@EACH_PROTOCOL
def test_a_batch_that_comes_after_the_next_producer_is_refused(
    wire: WireClient, new_topic: NewTopic, protocol: TransactionProtocol
) -> None:
    """By the abort marker's epoch in a partition that has one, by the coordinator elsewhere."""
    topic = new_topic(partitions=2)
    old = RawProducer(wire, topic, protocol)
    old.add(SEEN_BEFORE)
    assert old.write(b"open", 0) is ErrorCode.NONE
    heir = RawProducer(wire, topic, protocol)
    assert heir.producer_id == old.producer_id and heir.producer_epoch > old.producer_epoch

    assert old.write(b"late", 1) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert old.write(b"late", 0, partition=NEVER_SEEN) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert old.end(commits=True) is ErrorCode.PRODUCER_FENCED

    heir.add(SEEN_BEFORE)
    assert heir.write(b"heir", 0) is ErrorCode.NONE
    assert heir.end(commits=True) is ErrorCode.NONE
    heir.wait_until_ended()
    assert heir.last_stable_offset(SEEN_BEFORE) == 4, "two records, two markers"
    assert heir.last_stable_offset(NEVER_SEEN) == 0


@pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka aborts the heir's transaction before it refuses")
@pytest.mark.scenario("D1-S3")
@EACH_PROTOCOL
def test_an_outdated_producer_that_asks_for_an_epoch_leaves_its_heir_alone(
    wire: WireClient, new_topic: NewTopic, protocol: TransactionProtocol
) -> None:
    """kafka-python asks for one when a write is refused, not knowing that it has an heir."""
    topic = new_topic()
    old, heir = RawProducer(wire, topic, protocol), RawProducer(wire, topic, protocol)
    heir.add(SEEN_BEFORE)
    assert heir.write(b"first", 0) is ErrorCode.NONE

    assert old.begin_again() is ErrorCode.PRODUCER_FENCED

    assert heir.write(b"second", 1) is ErrorCode.NONE
    assert heir.end(commits=True) is ErrorCode.NONE
    heir.wait_until_ended()
    assert heir.last_stable_offset(SEEN_BEFORE) == 3


@pytest.mark.scenario("X-29")
@EACH_PROTOCOL
def test_the_marker_of_a_former_coordinator_is_refused(
    wire: WireClient, new_topic: NewTopic, protocol: TransactionProtocol
) -> None:
    """The new coordinator has aborted; the old one, who wanted to commit, comes too late."""
    producer = RawProducer(wire, new_topic(), protocol)
    producer.add(0)
    assert producer.write(b"open", 0) is ErrorCode.NONE

    assert producer.marker(coordinator_epoch=7, commits=False) is ErrorCode.NONE
    late = producer.marker(coordinator_epoch=6, commits=True)

    assert late is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert producer.last_stable_offset(0) == 2, "one record and one marker"


@pytest.mark.scenario("X-21", "X-25")
def test_a_commit_that_comes_again_does_not_end_the_next_transaction(
    wire: WireClient, new_topic: NewTopic
) -> None:
    """Each transaction has an epoch of its own. The retry is ok before the next one begins."""
    producer = RawProducer(wire, new_topic(), VERSION_2)
    first = producer.producer_epoch
    assert producer.write(b"first", 0) is ErrorCode.NONE
    assert producer.end(commits=True) is ErrorCode.NONE
    assert producer.producer_epoch == first + 1
    producer.wait_until_ended()
    assert producer.end(commits=True, producer_epoch=first) is ErrorCode.NONE
    assert producer.producer_epoch == first + 1

    assert producer.write(b"second", 0) is ErrorCode.NONE
    assert producer.end(commits=True, producer_epoch=first) is ErrorCode.PRODUCER_FENCED
    assert producer.last_stable_offset(0) == 2, "the second is open"
    assert producer.end(commits=False) is ErrorCode.NONE
    producer.wait_until_ended()
    assert producer.last_stable_offset(0) == 4


@pytest.mark.scenario("X-21")
def test_in_the_older_protocol_a_commit_that_comes_again_is_taken_for_the_next_one(
    wire: WireClient, new_topic: NewTopic
) -> None:
    """The hazard that an epoch per transaction ends, in Apache Kafka as well."""
    producer = RawProducer(wire, new_topic(), CLASSIC)
    producer.add(0)
    assert producer.write(b"first", 0) is ErrorCode.NONE
    assert producer.end(commits=True) is ErrorCode.NONE
    producer.wait_until_ended()
    producer.add(0)
    assert producer.write(b"second", 1) is ErrorCode.NONE

    late = producer.end(commits=True)

    assert late is ErrorCode.NONE
    producer.wait_until_ended()
    assert producer.last_stable_offset(0) == 4
    assert producer.end(commits=False) is ErrorCode.INVALID_TXN_STATE
