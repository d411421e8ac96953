"""librdkafka without Python per record: the library inside confluent-kafka, called by ctypes.

One call hands over or takes thousands of records. A Python object per record costs a microsecond or
two, which would make the client the limit long before any broker is.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import confluent_kafka

ANY_PARTITION = -1
CALL_RECORDS = 5_000
COPY = 0x2
ERROR_BYTES = 512
FULL_PAUSE_MS = 1
METADATA_TIMEOUT_MS = 60_000
FLUSH_TIMEOUT_MS = 120_000
CONSUME_TIMEOUT_MS = 60_000
PRODUCER, CONSUMER = 0, 1


class ClientFailed(Exception):
    """librdkafka refused something or got no answer in time."""


class _Message(ctypes.Structure):
    """`rd_kafka_message_t` of librdkafka's public header."""

    _fields_ = (
        ("err", c_int),
        ("rkt", c_void_p),
        ("partition", c_int32),
        ("payload", c_char_p),
        ("len", c_size_t),
        ("key", c_void_p),
        ("key_len", c_size_t),
        ("offset", c_int64),
        ("_private", c_void_p),
    )


_CONSUMED = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)
_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "rd_kafka_conf_new": (c_void_p, []),
    "rd_kafka_conf_set": (c_int, [c_void_p, c_char_p, c_char_p, c_char_p, c_size_t]),
    "rd_kafka_new": (c_void_p, [c_int, c_void_p, c_char_p, c_size_t]),
    "rd_kafka_destroy": (None, [c_void_p]),
    "rd_kafka_topic_new": (c_void_p, [c_void_p, c_char_p, c_void_p]),
    "rd_kafka_topic_destroy": (None, [c_void_p]),
    "rd_kafka_metadata": (c_int, [c_void_p, c_int, c_void_p, POINTER(c_void_p), c_int]),
    "rd_kafka_metadata_destroy": (None, [c_void_p]),
    "rd_kafka_poll": (c_int, [c_void_p, c_int]),
    "rd_kafka_flush": (c_int, [c_void_p, c_int]),
    "rd_kafka_produce_batch": (c_int, [c_void_p, c_int32, c_int, POINTER(_Message), c_int]),
    "rd_kafka_queue_new": (c_void_p, [c_void_p]),
    "rd_kafka_queue_destroy": (None, [c_void_p]),
    "rd_kafka_consume_start_queue": (c_int, [c_void_p, c_int32, c_int64, c_void_p]),
    "rd_kafka_consume_stop": (c_int, [c_void_p, c_int32]),
    "rd_kafka_consume_callback_queue": (c_int, [c_void_p, c_int, _CONSUMED, c_void_p]),
}


def _load() -> Any:
    """The shared library that confluent-kafka's wheel brings along."""
    package = Path(confluent_kafka.__file__).parent
    folders = [package.with_name("confluent_kafka.libs"), package / ".dylibs"]
    found = [path for folder in folders for path in sorted(folder.glob("librdkafka*"))]
    if not found:
        raise ClientFailed("confluent-kafka was installed without its own librdkafka")
    library = ctypes.CDLL(str(found[0]))
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class _Client:
    """A client handle with one topic; `with` gives everything back."""

    def __init__(self, kind: int, address: str, topic: str, settings: dict[str, str]) -> None:
        self._library = _load()
        error = ctypes.create_string_buffer(ERROR_BYTES)
        configuration = self._library.rd_kafka_conf_new()
        for name, value in {"bootstrap.servers": address, **settings}.items():
            if self._library.rd_kafka_conf_set(
                configuration, name.encode(), value.encode(), error, ERROR_BYTES
            ):
                raise ClientFailed(error.value.decode())
        self._handle = self._library.rd_kafka_new(kind, configuration, error, ERROR_BYTES)
        if not self._handle:
            raise ClientFailed(error.value.decode())
        self._topic = self._library.rd_kafka_topic_new(self._handle, topic.encode(), None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._library.rd_kafka_topic_destroy(self._topic)
        self._library.rd_kafka_destroy(self._handle)

    def meet(self) -> None:
        """Connect and learn who leads the topic, so that this is not measured."""
        answer = c_void_p()
        code = self._library.rd_kafka_metadata(
            self._handle, 0, self._topic, byref(answer), METADATA_TIMEOUT_MS
        )
        if code:
            raise ClientFailed(f"no metadata: librdkafka's error {code}")
        self._library.rd_kafka_metadata_destroy(answer)


class Producer(_Client):
    """Writes the same value again and again, with librdkafka's defaults unless told otherwise."""

    def __init__(self, address: str, topic: str, value: bytes, **settings: str) -> None:
        super().__init__(PRODUCER, address, topic, settings)
        self._messages = (_Message * CALL_RECORDS)()
        for message in self._messages:
            message.payload, message.len = value, len(value)

    def produce(self, records: int) -> None:
        """Hand over so many records; waits while the client's queue is full."""
        hand_over, poll = self._library.rd_kafka_produce_batch, self._library.rd_kafka_poll
        left = records
        while left:
            offered = min(left, CALL_RECORDS)
            taken = hand_over(self._topic, ANY_PARTITION, COPY, self._messages, offered)
            left -= taken
            if taken < offered:
                poll(self._handle, FULL_PAUSE_MS)

    def flush(self) -> None:
        """Until the broker has answered for everything."""
        if self._library.rd_kafka_flush(self._handle, FLUSH_TIMEOUT_MS):
            raise ClientFailed(f"not flushed within {FLUSH_TIMEOUT_MS} ms")


class Consumer(_Client):
    """Counts the records of all partitions of a topic, from their beginning on."""

    def __init__(self, address: str, topic: str, *, partitions: int, **settings: str) -> None:
        super().__init__(CONSUMER, address, topic, settings)
        self._partitions = partitions
        self._queue = self._library.rd_kafka_queue_new(self._handle)
        # What is called for every record must be C, and any function of librdkafka that only looks
        # at a record will do: this one reads its timestamp and writes the kind into an int.
        self._look = _CONSUMED(
            ctypes.cast(self._library.rd_kafka_message_timestamp, c_void_p).value or 0
        )
        self._kind = c_int()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for index in range(self._partitions):
            self._library.rd_kafka_consume_stop(self._topic, index)
        self._library.rd_kafka_queue_destroy(self._queue)
        super().__exit__(kind, error, trace)

    def consume(self, records: int) -> None:
        """Until so many records have come."""
        for index in range(self._partitions):
            if self._library.rd_kafka_consume_start_queue(self._topic, index, 0, self._queue):
                raise ClientFailed(f"partition {index} cannot be consumed")
        take = self._library.rd_kafka_consume_callback_queue
        count = 0
        while count < records:
            taken = take(self._queue, CONSUME_TIMEOUT_MS, self._look, byref(self._kind))
            if taken <= 0:
                raise ClientFailed(f"{count} of {records} records came, then nothing more")
            count += taken
