"""How clients differ before anything goes wrong: what they promise by default, what they refuse.

These are facts about other people's programs. They are tests since the timelines rely on them, and
a new version of a client may change them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import confluent_kafka
import kafka.errors
import pytest

from tests.process.fixtures import NewTopic
from tests.process.java_producer import JavaRefuses
from tests.process.producers import Ok, ProducerOptions, TimelineProducer
from tests.process.target import Target
from tests.process.timelines import make_producer
from tests.process.waiting import wait_until
from tests.process.wire import WireClient, batches_on_disk
from tidelog.client.settings import ConfigError

CLIENTS = [
    *("librdkafka", "kafka-python", "tidelog"),
    pytest.param("java", marks=[pytest.mark.java, pytest.mark.long]),
]
NO_OFFSET = {"librdkafka": None, "kafka-python": 0, "tidelog": None, "java": -1}
"""What they tell when nobody has told them; kafka-python makes up a 0 for every record."""
REFUSALS = {
    "librdkafka": confluent_kafka.KafkaException,
    "kafka-python": kafka.errors.KafkaConfigurationError,
    "tidelog": ConfigError,
    "java": JavaRefuses,
}
Make = Callable[[str, ProducerOptions | None], TimelineProducer]


@pytest.fixture
def make(bootstrap: str, request: pytest.FixtureRequest) -> Iterator[Make]:
    made: list[TimelineProducer] = []

    def start(client: str, options: ProducerOptions | None) -> TimelineProducer:
        made.append(make_producer(client, bootstrap, options, request))
        return made[-1]

    yield start
    for producer in made:
        producer.close()


@pytest.mark.scenario("N26", "D4-I9")
@pytest.mark.parametrize("client", CLIENTS)
def test_idempotence_is_the_default_of_all_but_librdkafka(
    broker: Target, new_topic: NewTopic, make: Make, client: str
) -> None:
    """Told nothing but an address they number their batches; librdkafka does not."""
    topic = new_topic()
    assert make(client, None).send(topic, "order").wait() == Ok(0)

    [(header, _)] = batches_on_disk(broker.log_directory, topic)
    assert (header.producer_id >= 0) == (client != "librdkafka")
    assert (header.base_sequence == 0) == (client != "librdkafka")


@pytest.mark.scenario("N25", "N26", "D4-I9")
@pytest.mark.parametrize("client", CLIENTS)
def test_idempotence_with_less_than_all_acks_is_refused_by_the_client(
    make: Make, client: str
) -> None:
    with pytest.raises(REFUSALS[client]):
        make(client, ProducerOptions(acks="1", enable_idempotence=True))


@pytest.mark.scenario("N25")
@pytest.mark.parametrize("client", CLIENTS)
def test_acks_0_is_content_with_having_sent(
    wire: WireClient, new_topic: NewTopic, make: Make, client: str
) -> None:
    """A success without an offset; the records are there, but nobody has said so."""
    topic = new_topic()
    producer = make(client, ProducerOptions(acks="0", enable_idempotence=False))

    for value in ("first", "second"):
        assert producer.send(topic, value).wait() == Ok(NO_OFFSET[client])
    wait_until(lambda: wire.end_offset(topic) == 2, "the records")
    assert [record.value for record in wire.read_all(topic)] == [b"first", b"second"]
