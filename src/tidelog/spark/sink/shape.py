"""The columns of a sink: those of Spark's own Kafka sink, as bytes.

`value` must be there; `key`, `headers`, `partition` and `topic` may be. Texts become UTF-8. Other
columns are left out, as Spark's sink does.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    NullType,
    StringType,
    StructType,
)

from tidelog.client.sink.errors import SinkRefused

KEY, VALUE, HEADERS, PARTITION, TOPIC = "key", "value", "headers", "partition", "topic"
ORDER = "order"
"""How the columns are called by which rows are sorted before they are written."""
_HEADERS_TYPE = "array<struct<key: string, value: binary>>"


def shaped(frame: DataFrame, *, topic: str | None, order_by: Sequence[str] = ()) -> DataFrame:
    """The frame with exactly the columns that a sink uses; SinkRefused for those it cannot use."""
    found = {each.name.lower(): each for each in frame.schema.fields}
    columns: list[Column] = []
    if VALUE not in found:
        raise SinkRefused(f"a sink needs a column value: {_told(frame)}")
    if topic is None:
        if TOPIC not in found:
            raise SinkRefused(f"without topic=... a sink needs a column topic: {_told(frame)}")
        columns.append(_text(frame, found[TOPIC].name, found[TOPIC].dataType))
    columns += [
        _bytes(frame, found[name].name, found[name].dataType).alias(name)
        for name in (KEY, VALUE)
        if name in found
    ]
    if HEADERS in found:
        columns.append(_headers(frame, found[HEADERS].name, found[HEADERS].dataType))
    if PARTITION in found:
        columns.append(_partition(frame, found[PARTITION].name, found[PARTITION].dataType))
    for number, name in enumerate(order_by):
        if name.lower() not in found:
            raise SinkRefused(f"order_by names {name}: {_told(frame)}")
        columns.append(frame[name].alias(f"{ORDER} {number}"))
    return frame.select(*columns)


def _told(frame: DataFrame) -> str:
    return f"this frame has {', '.join(frame.columns)}"


def _text(frame: DataFrame, name: str, kind: DataType) -> Column:
    if not isinstance(kind, StringType):
        raise SinkRefused(f"column {name} must be a string, and is {kind.simpleString()}")
    return frame[name].alias(TOPIC)


def _bytes(frame: DataFrame, name: str, kind: DataType) -> Column:
    if not isinstance(kind, StringType | BinaryType | NullType):
        raise SinkRefused(
            f"column {name} must be a string or binary, and is {kind.simpleString()}: use"
            f" cast('string'), to_json or an encoder of your own"
        )
    return frame[name].cast("binary")


def _headers(frame: DataFrame, name: str, kind: DataType) -> Column:
    struct = kind.elementType if isinstance(kind, ArrayType) else None
    fields = struct.fields if isinstance(struct, StructType) else []
    kinds = [(each.name.lower(), type(each.dataType)) for each in fields]
    if kinds != [("key", StringType), ("value", BinaryType)]:
        raise SinkRefused(f"column {name} must be {_HEADERS_TYPE}, and is {kind.simpleString()}")
    return frame[name].cast(_HEADERS_TYPE).alias(HEADERS)


def _partition(frame: DataFrame, name: str, kind: DataType) -> Column:
    if not isinstance(kind, IntegerType | NullType):
        raise SinkRefused(f"column {name} must be an int, and is {kind.simpleString()}")
    return frame[name].cast("int").alias(PARTITION)
