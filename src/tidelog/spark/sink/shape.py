"""The columns of a sink: those of Spark's own Kafka sink, as bytes.

`value` must be there; `key`, `headers`, `partition` and `topic` may be. Texts become UTF-8. Other
columns are left out, as Spark's sink does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
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
_SPARK_TYPES = {KEY: "binary", VALUE: "binary", HEADERS: _HEADERS_TYPE, PARTITION: "int"}
_ARROW_TYPES = {KEY: pa.binary(), VALUE: pa.binary(), PARTITION: pa.int32()}

Shape = Mapping[str, str]
"""What a column is for, and what it is called."""


def shape_of(schema: StructType, *, topic: str | None) -> Shape:
    """The columns that a sink uses; SinkRefused for what it cannot use.

    `topic` is the topic of all rows, so that a column of that name does not count.
    """
    found = {each.name.lower(): each for each in schema.fields}
    frame_columns = f"this frame has {', '.join(schema.names)}"
    if VALUE not in found:
        raise SinkRefused(f"a sink needs a column value: {frame_columns}")
    if topic is None and TOPIC not in found:
        raise SinkRefused(f"without topic=... a sink needs a column topic: {frame_columns}")
    roles = (TOPIC,) if topic is None else ()
    shape = {}
    for role in (*roles, KEY, VALUE, HEADERS, PARTITION):
        if role in found:
            required = _required_type(role, found[role].dataType)
            if required is not None:
                kind = found[role].dataType.simpleString()
                raise SinkRefused(f"column {found[role].name} must be {required}, and is {kind}")
            shape[role] = found[role].name
    return shape


def shaped(frame: DataFrame, *, topic: str | None, order_by: Sequence[str] = ()) -> DataFrame:
    """The frame with exactly those columns, and those that rows are to be sorted by."""
    shape = shape_of(frame.schema, topic=topic)
    columns = [
        (frame[name].cast(_SPARK_TYPES[role]) if role in _SPARK_TYPES else frame[name]).alias(role)
        for role, name in shape.items()
    ]
    names = {name.lower(): name for name in frame.columns}
    for number, name in enumerate(order_by):
        if name.lower() not in names:
            raise SinkRefused(f"order_by names {name}: this frame has {', '.join(frame.columns)}")
        columns.append(frame[name].alias(f"{ORDER} {number}"))
    return frame.select(*columns)


def shaped_batch(batch: pa.RecordBatch, shape: Shape) -> pa.RecordBatch:
    """The same for rows that have left Spark."""
    arrays = []
    for role, name in shape.items():
        array = batch.column(name)
        arrays.append(array.cast(_ARROW_TYPES[role]) if role in _ARROW_TYPES else array)
    return pa.RecordBatch.from_arrays(arrays, names=list(shape))


def _required_type(role: str, kind: DataType) -> str | None:
    """What the column would have to be; None if it is."""
    match role:
        case "topic":
            return None if isinstance(kind, StringType) else "a string"
        case "headers":
            return None if _is_headers(kind) else _HEADERS_TYPE
        case "partition":
            return None if isinstance(kind, IntegerType | NullType) else "an int"
    is_bytes = isinstance(kind, StringType | BinaryType | NullType)
    return None if is_bytes else "a string or binary (use cast, to_json or an encoder of your own)"


def _is_headers(kind: DataType) -> bool:
    struct = kind.elementType if isinstance(kind, ArrayType) else None
    fields = struct.fields if isinstance(struct, StructType) else []
    kinds = [(each.name.lower(), type(each.dataType)) for each in fields]
    return kinds == [("key", StringType), ("value", BinaryType)]
