"""A small client that speaks the wire itself, for what the libraries hide or forbid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.golden.plain import API_KEYS, request_of
from tests.process.waiting import PATIENCE_S, wait_until
from tidelog.client.partition_requests import (
    fetch_answer,
    fetch_request,
    init_producer_id_request,
    list_offsets_answer,
    list_offsets_request,
    produce_answer,
    produce_request,
)
from tidelog.client.shells.wire_connection import WireConnection
from tidelog.core.wire.record_batch import BatchHeader, batches, crc_is_valid
from tidelog.core.wire.records import NewRecord, Record, build, iterate

COORDINATOR_LOAD_IN_PROGRESS = 14
LATEST, EARLIEST, LARGEST_TIMESTAMP = -1, -2, -3
NO_GROUP = {"group.id": "unused", "enable.auto.commit": False}
"""librdkafka's consumers must name a group; one that only assigns never talks to it."""


class WireClient(WireConnection):
    """One connection; `ask` sends a request made of plain data and gives the decoded answer."""

    def __init__(
        self, address: str, *, name: str = "wire", receive_buffer_bytes: int | None = None
    ) -> None:
        host, port = address.split(":")
        super().__init__(
            host,
            int(port),
            client_id=name,
            timeout_s=PATIENCE_S,
            receive_buffer_bytes=receive_buffer_bytes,
        )

    # Requests and answers as plain data.

    def ask(self, api: str, version: int, **fields: Any) -> Any:
        """The answer to one request."""
        return self.request(request_of(api, fields), version)

    def send(self, api: str, version: int, **fields: Any) -> None:
        """A request whose answer is read later, or never."""
        self.send_request(request_of(api, fields), version)

    def frame(self, api: str, version: int, **fields: Any) -> bytes:
        """The bytes of a request with its size."""
        return self.next_frame(request_of(api, fields), version)

    def answer(self, api: str, version: int) -> Any:
        """The next answer, which must be the one to the request that was sent last."""
        return self.receive(API_KEYS[api], version)

    def is_closed_by_broker(self) -> bool:
        """Waits until the broker closes the connection; an answer instead is False."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    # What tests do all the time.

    def create_topic(
        self, name: str, *, partitions: int = 1, configs: dict[str, str] | None = None
    ) -> bytes:
        """Makes the topic, waits until every partition can be used, and gives its id."""
        answer = self.create_topic_answer(name, partitions=partitions, configs=configs)
        assert answer.error_code == 0, (answer.error_code, answer.error_message)

        def usable() -> bool:
            listed: Any = self.request(list_offsets_request(name, *range(partitions)), 7)
            return all(partition.error_code == 0 for partition in listed.topics[0].partitions)

        wait_until(usable, f"{partitions} partitions of {name}")
        topic_id: bytes = answer.topic_id
        return topic_id

    def create_topic_answer(
        self, name: str, *, partitions: int = 1, configs: dict[str, str] | None = None
    ) -> Any:
        """The answer for one topic, whatever it is."""
        wanted = [{"name": key, "value": value} for key, value in (configs or {}).items()]
        topic = {"name": name, "num_partitions": partitions, "replication_factor": 1}
        answer = self.ask(
            "CreateTopics", 7, topics=[{**topic, "configs": wanted}], timeout_ms=60_000
        )
        return answer.topics[0]

    def produce(
        self,
        topic: str,
        batch: bytes | bytearray,
        *,
        partition: int = 0,
        acks: int = -1,
        version: int = 9,
    ) -> Any:
        """The answer for one partition."""
        return produce_answer(
            self.request(produce_request(topic, partition, batch, acks=acks), version)
        )

    def fetch(
        self,
        topic: str,
        offset: int,
        *,
        partition: int = 0,
        bytes_max: int = 1 << 20,
        wait_ms: int = 0,
    ) -> Any:
        """The answer for one partition, with its records as raw batches."""
        request = fetch_request(
            topic,
            partition,
            offset,
            partition_bytes_max=bytes_max,
            bytes_max=bytes_max,
            wait_ms=wait_ms,
        )
        return fetch_answer(self.request(request, 11))

    def read_all(self, topic: str, *, partition: int = 0, start: int = 0) -> list[Record]:
        """Every record below the high watermark, CRC checked."""
        records: list[Record] = []
        offset = start
        while True:
            answer = self.fetch(topic, offset, partition=partition, bytes_max=16 << 20)
            assert answer.error_code == 0, answer.error_code
            if offset >= answer.high_watermark:
                return records
            found = [record for record in whole_records(answer.records) if record.offset >= offset]
            assert found, f"nothing at {offset}, below the high watermark {answer.high_watermark}"
            records += found
            offset = found[-1].offset + 1

    def offset_at(self, topic: str, timestamp: int, *, partition: int = 0) -> Any:
        """ListOffsets for one partition: LATEST, EARLIEST or a time."""
        request = list_offsets_request(topic, partition, timestamp_ms=timestamp)
        return list_offsets_answer(self.request(request, 7))

    def end_offset(self, topic: str, *, partition: int = 0) -> int:
        answer = self.offset_at(topic, LATEST, partition=partition)
        assert answer.error_code == 0, answer.error_code
        offset: int = answer.offset
        return offset

    def new_producer(self) -> tuple[int, int]:
        """Producer id and producer epoch for a new session."""

        def given() -> Any:
            answer: Any = self.request(init_producer_id_request(2**31 - 1), 4)
            assert answer.error_code in (0, COORDINATOR_LOAD_IN_PROGRESS), answer.error_code
            return answer if answer.error_code == 0 else None

        answer = wait_until(given, "a producer id")
        return answer.producer_id, answer.producer_epoch


def produce_fields(
    topic: str, batch: bytes | bytearray | None, *, partition: int = 0, acks: int = -1
) -> dict[str, Any]:
    """A Produce of one batch to one partition, as plain data."""
    data = [{"index": partition, "records": None if batch is None else bytes(batch)}]
    topics = [{"name": topic, "partition_data": data}]
    return {"transactional_id": None, "acks": acks, "timeout_ms": 60_000, "topic_data": topics}


def fetch_fields(
    topic: str, offset: int, *, partition: int = 0, bytes_max: int = 1 << 20, wait_ms: int = 0
) -> dict[str, Any]:
    """A Fetch from one partition, as plain data."""
    asked = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": bytes_max}
    return {
        "replica_id": -1,
        "max_wait_ms": wait_ms,
        "min_bytes": 1,
        "max_bytes": bytes_max,
        "isolation_level": 0,
        "topics": [{"topic": topic, "partitions": [asked]}],
    }


def batch_of(*values: bytes | None, timestamp_ms: int = 1_700_000_000_000, **options: Any) -> bytes:
    """One sound batch with a record per value."""
    records = [
        NewRecord(value=value, timestamp_ms=timestamp_ms + at) for at, value in enumerate(values)
    ]
    return bytes(build(records, **options))


def whole_records(data: bytes | memoryview | None) -> list[Record]:
    """The records of all whole batches; a wrong CRC fails the test."""
    view = memoryview(data or b"")
    records: list[Record] = []
    for position, header in batches(view):
        assert crc_is_valid(view, position, header), f"bad CRC at {header.base_offset}"
        records += iterate(view, position)
    return records


def segment_files(log_directory: Path, topic: str, *, partition: int = 0) -> list[Path]:
    """The segments of a partition on disk, oldest first."""
    return sorted((log_directory / f"{topic}-{partition}").glob("*.log"))


def batches_on_disk(
    log_directory: Path, topic: str, *, partition: int = 0
) -> list[tuple[BatchHeader, bytes]]:
    """Every batch of a partition as its segments hold it, header and bytes."""
    found = []
    for path in segment_files(log_directory, topic, partition=partition):
        view = memoryview(path.read_bytes())
        for position, header in batches(view):
            assert crc_is_valid(view, position, header), f"bad CRC at {header.base_offset}"
            found.append((header, bytes(view[position : position + header.size_bytes])))
    return found
