"""Writes the function that reads one version of one message, straight down the bytes.

The function trusts nothing: a run of fixed fields is read by `struct`, which refuses to read
past the end; a length or count is compared with the bytes that are left before anything is
made of it; and all items of a message's arrays are counted against `ITEMS_MAX`. What the
sender did wrong leaves as MalformedMessage, also the errors of `struct`, of the UTF-8 reader
and of an index past the end, which codec.py translates.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NoReturn

from tidelog.core.wire.malformed import MalformedMessage
from tidelog.core.wire.schema import Array, Field, Message, Nested, Scalar, Sized, Struct
from tidelog.core.wire.source import SHORT_ARRAY, Source, bytes_min, compiled
from tidelog.core.wire.varint import read_unsigned_varint

# A struct of ten bytes becomes an object of some 200: without a limit of its own, a frame of
# 100 MB full of the smallest structs would cost gigabytes.
ITEMS_MAX = 1_000_000
STRING_BYTES_MAX = 2**15 - 1


def make_decoder(message: type[Message], version: int) -> Callable[[memoryview, int, bool], Any]:
    """The function (view, position, may something follow?) -> instance for one version."""
    source = Decoder(message, version)
    with source.block("def decode(view, position, rest_allowed):"):
        source.line("size = len(view)")
        source.line("items_left = ITEMS_MAX")
        source.read_struct(message, "message", path=message.__name__)
        source.read_run()
        with source.block("if position != size and not (rest_allowed and position < size):"):
            source.line("refuse_rest(position, size)")
        source.line("return message")
    return source.function("decode")


class Decoder(Source):
    """Source whose runs are (format, target) pairs, read together."""

    def __init__(self, message: type[Message], version: int) -> None:
        super().__init__(message, version)
        self._run: list[tuple[str, str]] = []
        self.constants.update(
            ITEMS_MAX=ITEMS_MAX,
            new=object.__new__,
            unpack_from=struct.unpack_from,
            varint=read_unsigned_varint,
            skip_tags=skip_tags,
            refuse_length=refuse_length,
            refuse_count=refuse_count,
            refuse_tag=refuse_tag,
            refuse_rest=refuse_rest,
        )

    def read_run(self) -> None:
        """Reads the fixed fields gathered so far."""
        if not self._run:
            return
        formats = [format_ for format_, _ in self._run]
        targets = [target for _, target in self._run]
        self._run.clear()
        run = compiled(formats)
        if formats == ["B"]:
            self.line(f"{targets[0]} = view[position]")
        else:
            unpack = self.constant("unpack", run.unpack_from)
            self.line(f"{', '.join(targets)}, = {unpack}(view, position)")
        self.line(f"position += {run.size}")

    def read_length(self, classic_format: str) -> str:
        """Reads a length or count (with the run before it) so that null is -1."""
        length = self.fresh("length")
        self._run.append(("B" if self.flexible else classic_format, length))
        self.read_run()
        if self.flexible:
            with self.block(f"if {length} > 127:"):
                self.line(f"{length}, position = varint(view, position - 1)")
            self.line(f"{length} -= 1")
        return length

    def read_struct(self, struct_: type[Struct], target: str, *, path: str) -> None:
        self.line(f"{target} = new({self.constant(struct_.__name__, struct_)})")
        for field in struct_.schema:
            if field.tag is None and field.exists_in(self.version):
                self.read_field(field, f"{target}.{field.name}", path=f"{path}.{field.name}")
            else:
                self.set_default(field, f"{target}.{field.name}")
        if self.flexible:
            self.read_tags(struct_, target, path=path)

    def set_default(self, field: Field, target: str) -> None:
        if field.default is None:
            self.line(f"{target} = None")
        elif isinstance(field.kind, Array):
            self.line(f"{target} = []")
        elif isinstance(field.kind, Nested):
            variable = self.fresh("default")
            nested = field.kind.struct
            self.line(f"{variable} = new({self.constant(nested.__name__, nested)})")
            for inner in nested.schema:
                self.set_default(inner, f"{variable}.{inner.name}")
            self.line(f"{target} = {variable}")
        else:
            self.line(f"{target} = {self.literal(field.default)}")

    def read_field(self, field: Field, target: str, *, path: str) -> None:
        nullable = field.is_nullable_in(self.version)
        kind = field.kind
        if isinstance(kind, Scalar):
            self._run.append((kind.format, target))
        elif isinstance(kind, Sized):
            self.read_sized(kind, target, nullable=nullable, path=path)
        elif isinstance(kind, Array):
            self.read_array(kind, target, nullable=nullable, path=path)
        elif nullable:
            self.read_nullable_struct(kind, target, path=path)
        else:
            variable = self.fresh("struct")
            self.read_struct(kind.struct, variable, path=path)
            self.line(f"{target} = {variable}")

    def read_sized(self, kind: Sized[Any], target: str, *, nullable: bool, path: str) -> None:
        length = self.read_length("h" if kind.is_text else "i")
        if nullable:
            with self.block(f"if {length} == -1:"):
                self.line(f"{target} = None")
            with self.block("else:"):
                self.read_slice(kind, target, length, path=path)
        else:
            self.read_slice(kind, target, length, path=path)

    def read_slice(self, kind: Sized[Any], target: str, length: str, *, path: str) -> None:
        fits = f"0 <= {length} <= {STRING_BYTES_MAX}" if kind.is_text else f"{length} >= 0"
        self.line(f"end = position + {length}")
        with self.block(f"if not {fits} or end > size:"):
            self.line(f"refuse_length({path!r}, {length}, size - position)")
        value = "view[position:end].tobytes().decode()" if kind.is_text else "view[position:end]"
        self.line(f"{target} = {value}")
        self.line("position = end")

    def read_array(self, kind: Array, target: str, *, nullable: bool, path: str) -> None:
        count = self.read_length("i")
        if nullable:
            with self.block(f"if {count} == -1:"):
                self.line(f"{target} = None")
            with self.block("else:"):
                self.read_items(kind, target, count, path=path)
        else:
            self.read_items(kind, target, count, path=path)

    def read_items(self, kind: Array, target: str, count: str, *, path: str) -> None:
        item = kind.item
        smallest = bytes_min(item, self.version, flexible=self.flexible)
        assert smallest > 0, (path, "items of no size cannot be counted")
        with self.block(f"if {count} < 0 or {count} * {smallest} > size - position:"):
            self.line(f"refuse_count({path!r}, {count}, size - position)")
        if isinstance(item, Scalar):
            self.read_scalars(item, target, count)
            return
        self.line(f"items_left -= {count}")
        with self.block("if items_left < 0:"):
            self.line(f"refuse_count({path!r}, {count}, size - position)")
        items, one = self.fresh("items"), self.fresh("item")
        self.line(f"{items} = []")
        with self.block(f"for _ in range({count}):"):
            if isinstance(item, Sized):
                self.read_sized(item, one, nullable=False, path=path)
            else:
                assert isinstance(item, Nested), (path, "arrays of arrays do not exist")
                self.read_struct(item.struct, one, path=path)
                self.read_run()
            self.line(f"{items}.append({one})")
        self.line(f"{target} = {items}")

    def read_scalars(self, item: Scalar[Any], target: str, count: str) -> None:
        """Short arrays, nearly all there are, find their unpacker in a table."""
        self.line(f"end = position + {count} * {item.size_bytes}")
        if len(item.format) > 1:
            starts = f"range(position, end, {item.size_bytes})"
            slices = f"view[start : start + {item.size_bytes}].tobytes() for start in {starts}"
            self.line(f"{target} = [{slices}]")
        else:
            table = [compiled([f"{n}{item.format}"]).unpack_from for n in range(SHORT_ARRAY)]
            self.constants[f"unpack_{item.format}"] = table
            short = f"unpack_{item.format}[{count}](view, position)"
            long = f"unpack_from(f'>{{{count}}}{item.format}', view, position)"
            self.line(f"{target} = [*({short} if {count} < {SHORT_ARRAY} else {long})]")
        self.line("position = end")

    def read_nullable_struct(self, kind: Nested, target: str, *, path: str) -> None:
        present, variable = self.fresh("present"), self.fresh("struct")
        self._run.append(("b", present))
        self.read_run()
        with self.block(f"if {present} < 0:"):
            self.line(f"{target} = None")
        with self.block("else:"):
            self.read_struct(kind.struct, variable, path=path)
            self.read_run()
            self.line(f"{target} = {variable}")

    def read_tags(self, struct_: type[Struct], target: str, *, path: str) -> None:
        """Known tags fill their fields, the last of two wins; unknown ones are skipped."""
        count = self.fresh("tags")
        self._run.append(("B", count))
        self.read_run()
        known = [f for f in struct_.schema if f.tag is not None and f.exists_in(self.version)]
        with self.block(f"if {count} > 127:"):
            self.line(f"{count}, position = varint(view, position - 1)")
        if not known:
            with self.block(f"if {count}:"):
                self.line(f"position = skip_tags(view, position, {count})")
            return
        tag, end = self.fresh("tag"), self.fresh("tag_end")
        with self.block(f"while {count}:"):
            self.line(f"{count} -= 1")
            self.line(f"{tag}, position = varint(view, position)")
            self.line(f"{end}, position = varint(view, position)")
            self.line(f"{end} += position")
            with self.block(f"if {end} > size:"):
                self.line(f"refuse_tag({path!r}, {tag})")
            for index, field in enumerate(known):
                with self.block(f"{'elif' if index else 'if'} {tag} == {field.tag}:"):
                    name = f"{path}.{field.name}"
                    self.read_field(field, f"{target}.{field.name}", path=name)
                    self.read_run()
            with self.block("else:"):
                self.line(f"position = {end}")
            with self.block(f"if position != {end}:"):
                self.line(f"refuse_tag({path!r}, {tag})")


def skip_tags(view: memoryview, position: int, count: int) -> int:
    """The position after `count` unknown tagged fields."""
    for _ in range(count):
        tag, position = read_unsigned_varint(view, position)
        size, position = read_unsigned_varint(view, position)
        position += size
        if position > len(view):
            raise MalformedMessage(f"the unknown tagged field {tag} is longer than the message")
    return position


def refuse_length(path: str, length: int, bytes_left: int) -> NoReturn:
    if length == -1:
        raise MalformedMessage(f"{path} may not be null")
    raise MalformedMessage(f"{path} has the length {length}, with {bytes_left} bytes left")


def refuse_count(path: str, count: int, bytes_left: int) -> NoReturn:
    if count == -1:
        raise MalformedMessage(f"{path} may not be null")
    raise MalformedMessage(f"{path} has {count} items, with {bytes_left} bytes left")


def refuse_tag(path: str, tag: int) -> NoReturn:
    raise MalformedMessage(f"the tagged field {tag} of {path} has a wrong size")


def refuse_rest(position: int, size: int) -> NoReturn:
    raise MalformedMessage(f"{size - position} bytes are left after the message")
