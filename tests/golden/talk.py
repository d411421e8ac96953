"""A conversation: what a case says to a broker, and the record of what it heard.

A case's function gets a `Talk` and asks. Every `ask` is a step whose request and answer are
recorded, names and clocks taken out. Preparations (`new_topic`, `fill`, ...) are not recorded: they
must simply work.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from tests.golden.batches import batch
from tests.golden.broker import Broker, Connection, Silence
from tests.golden.names import Names, quorum_without_accidents
from tests.golden.plain import decode_answer, encode_request, error_codes, raw_header, to_plain

CLIENT_ID = "golden"
CLOSED = "<connection closed>"
NOTHING = "<no answer>"
SETTLE_TRIES = 12_000
SETTLE_PAUSE_MS = 10
FORGETTING_MS = 1_000
"""How long a change of settings may take to reach the log on a broker that is not at once."""
SHORT_PATIENCE_S = 2.0
ORDERED_APIS = {"AssignReplicasToDirs", "DescribeTopicPartitions"}
"""Where the order of the answer is part of it."""
BUSY = frozenset({14, 15, 16, 51})
"""A coordinator that loads, is not there yet, or still writes the markers of a transaction."""
BUSY_TRIES, BUSY_TRIES_AT_ONCE = 3_000, 100
MADE_UP_ID = bytes(range(1, 17))

Place = Hashable
"""A name for one of a case's connections: what is asked on the same place shares a connection."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that a preparation made."""

    name: str
    id: bytes


class PreparationFailed(Exception):
    """A step that a case takes for granted did not work."""


class Talk:
    """One case's conversation with one broker."""

    def __init__(self, broker: Broker, case_name: str) -> None:
        self.steps: list[dict[str, Any]] = []
        self._broker = broker
        self._case_name = case_name
        self._names = Names(broker)
        self._names.learn_topic_id(MADE_UP_ID, "made-up")
        self._connections: dict[Place, Connection] = {}
        self._correlation_id = 0

    # What is recorded.

    def ask(
        self,
        api: str,
        version: int,
        *,
        on: Place = 1,
        answer_version: int | None = None,
        shown: Callable[[Any], Any] | None = None,
        **fields: Any,
    ) -> Any:
        """One request and its answer as plain data (None if the connection was closed).

        `shown` leaves out what belongs to other cases, where an answer tells of everything.
        """
        expected_id = self._send(api, version, on, fields)
        return self._record(
            {"ask": f"{api} v{version}", "fields": fields},
            api,
            version if answer_version is None else answer_version,
            self._receive(on, expected_id),
            shown,
        )

    def ask_patiently(
        self,
        api: str,
        version: int,
        *,
        on: Place = 1,
        busy: frozenset[int] = BUSY,
        shown: Callable[[Any], Any] | None = None,
        **fields: Any,
    ) -> Any:
        """The same, again and again while the answer says "later"; only the last is recorded."""
        for _ in range(BUSY_TRIES if self._broker.is_eventual else BUSY_TRIES_AT_ONCE):
            answer = self._receive(on, self._send(api, version, on, fields))
            if answer is None:
                break
            if not busy & error_codes(to_plain(decode_answer(api, version, answer), version)):
                break
            self._broker.pause(SETTLE_PAUSE_MS)
        step = {"ask": f"{api} v{version}", "fields": fields}
        return self._record(step, api, version, answer, shown)

    def start(self, api: str, version: int, *, on: Place = 1, **fields: Any) -> Callable[[], Any]:
        """Send a request; calling what comes back waits for the answer and records it."""
        expected_id = self._send(api, version, on, fields)

        def finish() -> Any:
            step = {"ask": f"{api} v{version}", "fields": fields}
            return self._record(step, api, version, self._receive(on, expected_id))

        return finish

    def ask_in_vain(self, api: str, version: int, *, on: Place = 1, **fields: Any) -> None:
        """A request that Kafka never answers: a short silence is the outcome then."""
        self._send(api, version, on, fields)
        step = {"ask": f"{api} v{version}", "fields": fields}
        try:
            answer = self._connection(on).receive(SHORT_PATIENCE_S)
        except Silence:
            self._connections.pop(on).close()
            self._add(step, NOTHING)
        else:
            self._record(step, api, version, answer)

    def tell(self, api: str, version: int, *, on: Place = 1, **fields: Any) -> None:
        """A request that should get no answer (acks=0): the next answer must be another's."""
        self._send(api, version, on, fields)
        probe_id = self._send("ApiVersions", 0, on, {})
        answer = self._receive_any(on)
        outcome: Any = CLOSED
        if answer is not None:
            outcome = NOTHING if _correlation_id(answer) == probe_id else "<an answer>"
        self._add({"ask": f"{api} v{version}", "fields": fields}, outcome)

    def throw(
        self, what: str, data: bytes, *, on: Place = 1, answer_as: tuple[str, int] | None = None
    ) -> None:
        """Any bytes as one frame; the answer, if one comes, is read as this API and version."""
        self.throw_bytes(what, len(data).to_bytes(4, "big") + data, on=on, answer_as=answer_as)

    def throw_bytes(
        self, what: str, data: bytes, *, on: Place = 1, answer_as: tuple[str, int] | None = None
    ) -> None:
        """Any bytes, not even a frame."""
        self._connection(on).send(data)
        answer = self._receive_any(on)
        step = {"throw": what, "size_bytes": len(data)}
        if answer is None or answer_as is None:
            self._add(step, CLOSED if answer is None else "<an answer>")
        else:
            self._record(step, *answer_as, answer)

    def look(self, what: str, found: Any) -> None:
        """Something that no single answer says; the case has found it out."""
        self._add({"look": what}, self._names.normal(found, in_order=True))

    # Building blocks of requests.

    def label(self, data: bytes, label: str) -> bytes:
        """From now on these bytes, as the whole of a field, are recorded as `<label>`."""
        self._names.learn_bytes(data, label)
        return data

    def name(self, short: str = "t") -> str:
        """A topic name that no other case has."""
        return f"{self._case_name}-{short}"

    def encoded(self, api: str, version: int, **fields: Any) -> bytes:
        """A request's bytes, to be damaged and thrown."""
        self._correlation_id += 1
        return encode_request(
            api, version, fields, correlation_id=self._correlation_id, client_id=CLIENT_ID
        )

    def header(self, api_key: int, version: int, *, flexible: bool) -> bytes:
        """A request header for any API key and version."""
        self._correlation_id += 1
        return raw_header(api_key, version, self._correlation_id, CLIENT_ID, flexible=flexible)

    def clock_ms(self) -> int:
        return self._broker.clock_ms()

    def pass_time(self, duration_ms: int) -> None:
        self._broker.pause(duration_ms)

    # Preparations: not recorded, but they must work.

    def new_topic(
        self, short: str = "t", *, partitions: int = 1, configs: dict[str, str] | None = None
    ) -> Topic:
        """Create a topic and wait until its partitions can be used."""
        name = self.name(short)
        configuration = [{"name": key, "value": value} for key, value in (configs or {}).items()]
        topic = {
            "name": name,
            "num_partitions": partitions,
            "replication_factor": 1,
            "configs": configuration,
        }
        answer = self.quietly("CreateTopics", 7, topics=[topic], timeout_ms=60_000)
        made = answer["topics"][0]
        if made["error_code"] != 0:
            raise PreparationFailed(f"{name}: {made}")
        self.wait_for_partitions(name, partitions)
        self._names.learn_topic_id(made["topic_id"], name)
        return Topic(name, made["topic_id"])

    def fill(self, topic: Topic, *data: bytes, partition: int = 0) -> None:
        """Append these batches, one request each."""
        for one in data or (batch("a"),):
            answer = self.quietly("Produce", 9, **produce_fields(topic.name, one, partition))
            code = answer["responses"][0]["partition_responses"][0]["error_code"]
            if code != 0:
                raise PreparationFailed(f"filling {topic.name}: error {code}")

    def new_producer_id(self) -> int:
        """A fresh producer id of this broker."""
        answer = self.quietly("InitProducerId", 4, transactional_id=None)
        producer_id: int = answer["producer_id"]
        self._names.learn_producer_id(producer_id)
        return producer_id

    def learn_member(self, member_id: str) -> None:
        """From now on this member id has a placeholder."""
        self._names.learn_member(member_id)

    def learn_random_member(self, member_id: str) -> None:
        """The same for an id that is all chance."""
        self._names.learn_random_member(member_id)

    def wait_a_moment(self) -> None:
        """Until a request that nobody can be asked about has been taken up."""
        self.wait_for_settings()

    def alter(self, topic: Topic, **configs: str) -> None:
        """Set topic configs (with underscores for dots) and wait until they hold."""
        changes = [
            {"name": key.replace("_", "."), "config_operation": 0, "value": value}
            for key, value in configs.items()
        ]
        resource = {"resource_type": 2, "resource_name": topic.name, "configs": changes}
        answer = self.quietly("IncrementalAlterConfigs", 1, resources=[resource])
        if answer["responses"][0]["error_code"] != 0:
            raise PreparationFailed(f"altering {topic.name}: {answer}")
        self.wait_for_settings()

    def wait_for_settings(self) -> None:
        """Until changed settings reach the logs."""
        if self._broker.is_eventual:
            self._broker.pause(FORGETTING_MS)

    def wait_for_partitions(self, name: str, partitions: int) -> None:
        """Until each of them answers ListOffsets."""
        asked = [{"partition_index": index, "timestamp": -1} for index in range(partitions)]
        topics = [{"name": name, "partitions": asked}]

        def usable() -> bool:
            answer = self.quietly("ListOffsets", 7, replica_id=-1, topics=topics)
            return all(p["error_code"] == 0 for p in answer["topics"][0]["partitions"])

        self.wait_for(usable, f"{name} with {partitions} partitions")

    def wait_until_gone(self, name: str) -> None:
        """Until Metadata does not know the topic any more."""

        def gone() -> bool:
            fields = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
            return bool(self.quietly("Metadata", 9, **fields)["topics"][0]["error_code"] == 3)

        self.wait_for(gone, f"{name} gone")

    def quietly(self, api: str, version: int, *, on: Place = 0, **fields: Any) -> Any:
        """A request of a preparation, on a connection of its own."""
        expected_id = self._send(api, version, on, fields)
        answer = self._receive(on, expected_id)
        if answer is None:
            raise PreparationFailed(f"{api} v{version}: the connection was closed")
        return to_plain(decode_answer(api, version, answer), version)

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        """Until the condition holds; a broker that does all at once gets one chance."""
        if not self._broker.is_eventual:
            self._broker.pause(0)
            return
        for _ in range(SETTLE_TRIES):
            if condition():
                return
            self._broker.pause(SETTLE_PAUSE_MS)
        raise PreparationFailed(f"waited in vain for {what}")

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    # Below here: how.

    def _connection(self, on: Place) -> Connection:
        if on not in self._connections:
            self._connections[on] = self._connect(on)
        return self._connections[on]

    def _connect(self, on: Place) -> Connection:
        """There is one broker, so every place is a connection to it."""
        return self._broker.connect()

    def _send(self, api: str, version: int, on: Place, fields: dict[str, Any]) -> int:
        frame = self.encoded(api, version, **fields)
        self._connection(on).send(len(frame).to_bytes(4, "big") + frame)
        return self._correlation_id

    def _receive(self, on: Place, expected_id: int) -> bytes | None:
        answer = self._receive_any(on)
        if answer is not None and _correlation_id(answer) != expected_id:
            raise PreparationFailed(
                f"the answer to {_correlation_id(answer)} came instead of {expected_id}"
            )
        return answer

    def _receive_any(self, on: Place) -> bytes | None:
        connection = self._connection(on)
        try:
            answer = connection.receive()
        except Silence as silence:
            raise PreparationFailed(f"{self._case_name}: {silence}") from None
        if answer is None:
            connection.close()
            del self._connections[on]
        return answer

    def _record(
        self,
        step: dict[str, Any],
        api: str,
        version: int,
        answer: bytes | None,
        shown: Callable[[Any], Any] | None = None,
    ) -> Any:
        if answer is None:
            self._add(step, CLOSED)
            return None
        plain = to_plain(decode_answer(api, version, answer), version)
        self._names.learn(plain)
        if api in ("InitProducerId", "EndTxn") and "producer_id" in plain:
            self._names.learn_producer_id(plain["producer_id"])
        told = plain if shown is None else shown(plain)
        if api == "DescribeQuorum":
            told = quorum_without_accidents(told)
        self._add(step, self._names.normal(told, in_order=api in ORDERED_APIS))
        return plain

    def _add(self, step: dict[str, Any], answer: Any) -> None:
        if "fields" in step:
            in_order = step["ask"].split()[0] in ORDERED_APIS
            fields = _without_records(step["fields"])
            step["fields"] = self._names.normal(fields, in_order=in_order)
        self.steps.append({**step, "answer": answer})


def produce_fields(
    topic: str,
    records: bytes | None,
    partition: int = 0,
    *,
    acks: int = -1,
    timeout_ms: int = 10_000,
    transactional_id: str | None = None,
) -> dict[str, Any]:
    """A Produce request for one partition, by topic name."""
    data = {"index": partition, "records": records}
    return {
        "transactional_id": transactional_id,
        "acks": acks,
        "timeout_ms": timeout_ms,
        "topic_data": [{"name": topic, "partition_data": [data]}],
    }


def _without_records(fields: Any) -> Any:
    """The request as a reader wants to see it: records only by their size."""
    if isinstance(fields, dict):
        return {
            name: f"<{len(value)} bytes>"
            if name == "records" and isinstance(value, bytes)
            else _without_records(value)
            for name, value in fields.items()
        }
    if isinstance(fields, list):
        return [_without_records(item) for item in fields]
    return fields


def _correlation_id(answer: bytes) -> int:
    return int.from_bytes(answer[:4], "big", signed=True)
