"""Our transactional producer in both protocols, on a broker of ours and on Apache Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.kafka import KafkaBroker
from tests.process.broker import Setting
from tests.process.target import running_target
from tests.process.transactional_stories import STORIES, TransactionStage

SETTINGS: dict[str, Setting] = {
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with running_target(SETTINGS) as target:
        yield target.address


@pytest.mark.parametrize("protocol", ["auto", "classic"])
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_transactions(
    address: str, protocol: str, story: Callable[[TransactionStage], None]
) -> None:
    """What the story says holds on our broker."""
    story(TransactionStage(address, story.__name__, protocol))


@pytest.mark.java
@pytest.mark.long
def test_transactions_on_apache_kafka() -> None:
    """The same stories hold on Apache Kafka, so they are Kafka's and not ours."""
    settings: dict[str, str | None] = {key: str(value) for key, value in SETTINGS.items()}
    with KafkaBroker(settings=settings) as kafka:
        for protocol in ("auto", "classic"):
            for story in STORIES:
                story(TransactionStage(kafka.address, story.__name__, protocol))
