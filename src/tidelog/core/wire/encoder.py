"""Writes the function that encodes one version of one message into a list of parts.

Runs of fixed fields are packed together with the length that follows them. A field that the
version does not have must hold its default, unless the schema calls it ignorable.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from tidelog.core.wire.decoder import STRING_BYTES_MAX
from tidelog.core.wire.schema import Array, Field, Message, Nested, Scalar, Sized, Struct
from tidelog.core.wire.source import SHORT_ARRAY, Source, compiled
from tidelog.core.wire.varint import unsigned_varint


def make_encoder(message: type[Message], version: int) -> Callable[[Any], bytes]:
    """The function instance -> bytes for one version."""
    source = Encoder(message, version)
    with source.block("def encode(message):"):
        source.line("parts = []")
        source.line("write = parts.append")
        source.write_struct(message, "message")
        source.write_run()
        source.line("return b''.join(parts)")
    return source.function("encode")


class Encoder(Source):
    """Source whose runs are (format, expression) pairs, packed together."""

    def __init__(self, message: type[Message], version: int) -> None:
        super().__init__(message, version)
        self._run: list[tuple[str, str]] = []
        self._write = "write"
        self.constants.update(
            varint=unsigned_varint,
            join_items=join_items,
            pack_items=pack_items,
            refuse=refuse,
            refuse_long=refuse_long,
            refuse_size=refuse_size,
        )

    def write_run(self) -> None:
        """Packs the fixed fields gathered so far; an "x" is a zero byte without a value."""
        if self._run:
            self.line(self._packed(self._run))
            self._run.clear()

    def _packed(self, run: list[tuple[str, str]]) -> str:
        formats = [format_ for format_, _ in run]
        pack = self.constant("pack", compiled(formats).pack)
        values = ", ".join(value for format_, value in run if format_ != "x")
        return f"{self._write}({pack}({values}))"

    def write_varint(self, value: str) -> None:
        """Packs the run together with a varint, which nearly always is a single byte."""
        if not self._run:
            self.line(f"{self._write}(varint({value}))")
            return
        with self.block(f"if {value} < 128:"):
            self.line(self._packed([*self._run, ("B", value)]))
        with self.block("else:"):
            self.line(self._packed(self._run))
            self.line(f"{self._write}(varint({value}))")
        self._run.clear()

    def write_length(self, length: str, classic_format: str) -> None:
        """Packs the run together with a length or count, -1 for null."""
        if self.flexible:
            self.line(f"{length} += 1")
            self.write_varint(length)
        else:
            self._run.append((classic_format, length))
            self.write_run()

    def write_struct(self, struct_: type[Struct], owner: str) -> None:
        for field in struct_.schema:
            value = f"{owner}.{field.name}"
            if field.exists_in(self.version):
                if field.tag is None:
                    self.write_field(field, value)
            elif not field.ignorable:
                with self.block(f"if {self.differs(field, value)}:"):
                    name = f"{struct_.__name__}.{field.name}"
                    self.line(f"refuse({name!r}, {self.version})")
        if self.flexible:
            self.write_tags(struct_, owner)

    def differs(self, field: Field, value: str) -> str:
        """The question whether a field holds something else than its default."""
        if field.default is None:
            return f"{value} is not None"
        if isinstance(field.kind, Array):
            return f"({value} is None or len({value}))"
        if isinstance(field.kind, Nested):
            inner = (self.differs(f, f"{value}.{f.name}") for f in field.kind.struct.schema)
            return f"({' or '.join(inner)})"
        return f"{value} != {self.literal(field.default)}"

    def write_field(self, field: Field, value: str) -> None:
        nullable = field.is_nullable_in(self.version)
        kind = field.kind
        if isinstance(kind, Scalar):
            if len(kind.format) > 1:
                with self.block(f"if len({value}) != {kind.size_bytes}:"):
                    self.line(f"refuse_size({value}, {kind.size_bytes})")
            self._run.append((kind.format, value))
        elif isinstance(kind, Sized):
            self.write_sized(kind, value, nullable=nullable)
        elif isinstance(kind, Array):
            self.write_array(kind, value, nullable=nullable)
        elif nullable:
            self.write_run()
            with self.block(f"if {value} is None:"):
                self.line(rf"{self._write}(b'\xff')")
            with self.block("else:"):
                self.line(rf"{self._write}(b'\x01')")
                self.write_struct(kind.struct, value)
                self.write_run()
        else:
            variable = self.fresh("struct")
            self.line(f"{variable} = {value}")
            self.write_struct(kind.struct, variable)

    def write_sized(self, kind: Sized[Any], value: str, *, nullable: bool) -> None:
        data, length = self.fresh("data"), self.fresh("length")
        self.line(f"{data} = {value}")
        if nullable:
            with self.block(f"if {data} is None:"):
                self.line(f"{data} = b''; {length} = -1")
            with self.block("else:"):
                self.measure(kind, data, length)
        else:
            self.measure(kind, data, length)
        self.write_length(length, "h" if kind.is_text else "i")
        self.line(f"{self._write}({data})")

    def measure(self, kind: Sized[Any], data: str, length: str) -> None:
        if kind.is_text:
            self.line(f"{data} = {data}.encode()")
        self.line(f"{length} = len({data})")
        if kind.is_text and self.flexible:
            with self.block(f"if {length} > {STRING_BYTES_MAX}:"):
                self.line(f"refuse_long({length})")

    def write_array(self, kind: Array, value: str, *, nullable: bool) -> None:
        items, count = self.fresh("items"), self.fresh("count")
        self.line(f"{items} = {value}")
        if nullable:
            with self.block(f"if {items} is None:"):
                self.line(f"{items} = (); {count} = -1")
            with self.block("else:"):
                self.line(f"{count} = len({items})")
        else:
            self.line(f"{count} = len({items})")
        self.write_length(count, "i")
        item = kind.item
        if isinstance(item, Scalar):
            self.write_scalars(item, items)
            return
        one = self.fresh("item")
        with self.block(f"for {one} in {items}:"):
            if isinstance(item, Sized):
                self.write_sized(item, one, nullable=False)
            else:
                assert isinstance(item, Nested), "arrays of arrays do not exist"
                self.write_struct(item.struct, one)
                self.write_run()

    def write_scalars(self, item: Scalar[Any], items: str) -> None:
        if len(item.format) > 1:
            self.line(f"{self._write}(join_items({item.size_bytes}, {items}))")
            return
        table = [compiled([f"{n}{item.format}"]).pack for n in range(SHORT_ARRAY)]
        self.constants[f"pack_{item.format}"] = table
        with self.block(f"if len({items}) < {SHORT_ARRAY}:"):
            self.line(f"{self._write}(pack_{item.format}[len({items})](*{items}))")
        with self.block("else:"):
            self.line(f"{self._write}(pack_items({item.format!r}, {items}))")

    def write_tags(self, struct_: type[Struct], owner: str) -> None:
        """Tagged fields that hold their default are left out; the others go by tag."""
        tagged = [
            (field.tag, field)
            for field in struct_.schema
            if field.tag is not None and field.exists_in(self.version)
        ]
        if not tagged:
            self._run.append(("x", ""))
            return
        outer_run, outer_write = self._run, self._write
        tags, count = self.fresh("tags"), self.fresh("tag_count")
        self.line(f"{tags} = []")
        self.line(f"{count} = 0")
        for tag, field in sorted(tagged, key=lambda pair: pair[0]):
            value = f"{owner}.{field.name}"
            payload = self.fresh("payload")
            self._run, self._write = [], f"{payload}.append"
            with self.block(f"if {self.differs(field, value)}:"):
                self.line(f"{count} += 1")
                self.line(f"{payload} = []")
                self.write_field(field, value)
                self.write_run()
                self.line(f"{payload} = b''.join({payload})")
                self.line(f"{tags} += (varint({tag}), varint(len({payload})), {payload})")
        self._run, self._write = outer_run, outer_write
        self.write_varint(count)
        with self.block(f"if {count}:"):
            self.line(f"{self._write}(b''.join({tags}))")


def pack_items(format_: str, items: list[Any]) -> bytes:
    """A long array of numbers."""
    return struct.pack(f">{len(items)}{format_}", *items)


def join_items(size_bytes: int, items: list[bytes]) -> bytes:
    """An array of uuids."""
    for item in items:
        if len(item) != size_bytes:
            refuse_size(item, size_bytes)
    return b"".join(items)


def refuse(name: str, version: int) -> None:
    raise ValueError(f"{name} is set but does not exist in version {version}")


def refuse_long(length: int) -> None:
    raise ValueError(f"a string of {length} bytes is longer than {STRING_BYTES_MAX}")


def refuse_size(value: bytes, size_bytes: int) -> None:
    raise ValueError(f"{value!r} does not have {size_bytes} bytes")
