"""A disk that takes no more: never acknowledged, said clearly, and nothing acknowledged is lost."""

from __future__ import annotations

import pytest

from tests.process.fixtures import StartBroker
from tests.process.target import IS_KAFKA
from tests.process.wire import WireClient, batch_of
from tidelog.core.model.errors import ErrorCode

FILE_BYTES_MAX = 300_000
BATCH_VALUE_BYTES = 40_000


@pytest.mark.scenario("X-31")
def test_a_write_that_fails_in_the_middle_stops_the_broker_and_loses_nothing(
    start_broker: StartBroker,
) -> None:
    """The single log directory takes only a part of a batch: error or no answer, then the end.

    A limit on the size of files plays the full disk: the write stops in mid-batch, the next one
    fails. With room again the broker serves exactly what it acknowledged.
    """
    broker = start_broker({"message.max.bytes": 2_000_000})
    acknowledged: list[bytes] = []
    refused: list[int | str] = []
    with WireClient(broker.address) as wire:
        wire.create_topic("orders")
        broker.limit_file_size(FILE_BYTES_MAX if not IS_KAFKA else 11 << 20)
        value_bytes = BATCH_VALUE_BYTES if not IS_KAFKA else 1_500_000
        for n in range(20):
            value = b"%06d" % n * (value_bytes // 6)
            try:
                answer = wire.produce("orders", batch_of(value))
            except ConnectionError:
                refused.append("closed")
                break
            if answer.error_code != 0:
                refused.append(answer.error_code)
                break
            assert answer.base_offset == n
            acknowledged.append(value)
    assert refused in ([ErrorCode.KAFKA_STORAGE_ERROR], ["closed"])
    assert 5 <= len(acknowledged) <= 9

    assert broker.exit_code_within() != 0
    said = broker.log_text().lower()
    assert str(broker.log_directory).lower() in said
    assert any(word in said for word in ("file too large", "efbig", "no space")), said[-2000:]

    broker.start()
    with WireClient(broker.address) as wire:
        kept = [record.value for record in wire.read_all("orders")]
        assert kept == acknowledged
        assert wire.produce("orders", batch_of(b"room again")).base_offset == len(acknowledged)


@pytest.mark.scenario("X-31")
def test_a_topic_that_cannot_be_written_down_is_not_acknowledged(
    start_broker: StartBroker,
) -> None:
    """The metadata log cannot grow: no topic is promised that is gone after a restart."""
    if IS_KAFKA:
        pytest.skip("its metadata log writes elsewhere first")
    broker = start_broker()
    promised: list[str] = []
    with WireClient(broker.address) as wire:
        size = max(path.stat().st_size for path in broker.log_directory.rglob("*.log"))
        broker.limit_file_size(max(size, len(broker.log_text().encode())) + 20_000)
        for n in range(2_000):
            name = f"topic-{n}-" + "x" * 200
            try:
                answer = wire.create_topic_answer(name)
            except ConnectionError:
                break
            if answer.error_code != 0:
                break
            promised.append(name)
    assert 0 < len(promised) < 2_000
    assert broker.exit_code_within() != 0

    broker.start()
    with WireClient(broker.address) as wire:
        answer = wire.ask("Metadata", 9, topics=None, allow_auto_topic_creation=False)
    assert {topic.name for topic in answer.topics} >= set(promised)
