"""The language in which messages are written down: one class per struct, one line per field.

A field line says its kind and the versions that have it; the annotation is what callers see.
The codecs (codec.py) are generated from these lines. The layout of Produce and Fetch is written a
second time, by hand, for speed (`*_fast.py`, fetch_follower.py); tests hold the two equal. Usage::

    from tidelog.core.wire.codec import MalformedMessage, decode, encode
    from tidelog.core.wire.schema import Message, Struct, array, int16, int32, string

    class Pet(Struct):                                   # a nested struct has no versions itself
        name: str = string()                             # every version of the message
        friend: str | None = string("2+", nullable="2+", default=None, ignorable=True)
        toys: list[int] = array(int32, "1-3")            # versions 1 to 3

    class PetsResponse(Message, api_key=99, versions="0-4", flexible_from=3):
        pets: list[Pet] = array(Pet)
        error_code: int = int16("4+", tag=0)             # a tagged field of versions 4 and up

    frame = encode(PetsResponse(pets=[Pet(name="Rex")]), 4)
    message = decode(PetsResponse, memoryview(frame), 4)       # or raises MalformedMessage
    assert message.pets[0].name == "Rex" and message.pets[0].toys == []

Structs take keywords only, default to Kafka's defaults, compare by value and have slots.
An error code is a plain int, a uuid 16 bytes. `bytes_` and `record_bytes` fields decode to slices
of the given view: they live and change with its buffer, so copy what outlives the frame.

Metadata records are messages too: `api_key` is their record type and `flexible_from` is 0.

Versions are written as in Kafka's own tables: "3+", "0-12", "7". A field with a `tag` is a
tagged field in every version that has it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar, cast, dataclass_transform, overload

T = TypeVar("T")
S = TypeVar("S", bound="Struct")

ZERO_UUID = bytes(16)
EVERY_VERSION = "0+"
NO_VERSION = ""


class Field:
    """One line of a schema: what a field holds and which versions have it."""

    __slots__ = ("default", "ignorable", "kind", "name", "nullable", "tag", "versions")

    name: str

    def __init__(
        self,
        kind: Kind,
        versions: str,
        default: object,
        *,
        nullable: str = NO_VERSION,
        tag: int | None = None,
        ignorable: bool = False,
    ) -> None:
        self.kind = kind
        self.versions = versions
        self.default = default
        self.nullable = nullable
        self.tag = tag
        self.ignorable = ignorable

    def exists_in(self, version: int) -> bool:
        return includes(self.versions, version)

    def is_nullable_in(self, version: int) -> bool:
        return includes(self.nullable, version)


def includes(versions: str, version: int) -> bool:
    """Whether "3+", "0-12" or "7" (or "", none) includes this version."""
    if versions == EVERY_VERSION:
        return True
    if versions == NO_VERSION:
        return False
    first, to, last = versions.partition("-")
    if to:
        return int(first) <= version <= int(last)
    if versions.endswith("+"):
        return int(versions[:-1]) <= version
    return int(versions) == version


class Scalar(Generic[T]):
    """A kind of fixed size, known to `struct` by a format; calling it declares a field."""

    __slots__ = ("format", "size_bytes", "zero")

    def __init__(self, format_: str, size_bytes: int, zero: T) -> None:
        self.format = format_
        self.size_bytes = size_bytes
        self.zero = zero

    def __call__(
        self,
        versions: str = EVERY_VERSION,
        *,
        default: T | None = None,
        tag: int | None = None,
        ignorable: bool = False,
    ) -> T:
        value = self.zero if default is None else default
        return cast("T", Field(self, versions, value, tag=tag, ignorable=ignorable))


class Sized(Generic[T]):
    """A kind that carries its length: text or bytes; calling it declares a field."""

    __slots__ = ("empty", "is_text")

    def __init__(self, empty: T, *, is_text: bool) -> None:
        self.empty = empty
        self.is_text = is_text

    @overload
    def __call__(
        self,
        versions: str = ...,
        *,
        default: T | None = ...,
        tag: int | None = ...,
        ignorable: bool = ...,
    ) -> T: ...

    @overload
    def __call__(
        self,
        versions: str = ...,
        *,
        nullable: str,
        default: T | None = ...,
        tag: int | None = ...,
        ignorable: bool = ...,
    ) -> T | None: ...

    def __call__(
        self,
        versions: str = EVERY_VERSION,
        *,
        nullable: str = NO_VERSION,
        default: Any = ...,
        tag: int | None = None,
        ignorable: bool = False,
    ) -> Any:
        value = self.empty if default is ... else default
        return Field(self, versions, value, nullable=nullable, tag=tag, ignorable=ignorable)


class Array:
    """A kind: a count, then that many items."""

    __slots__ = ("item",)

    def __init__(self, item: Kind) -> None:
        self.item = item


class Nested:
    """A kind: a struct inside a struct."""

    __slots__ = ("struct",)

    def __init__(self, struct: type[Struct]) -> None:
        self.struct = struct


Kind = Scalar[Any] | Sized[Any] | Array | Nested

boolean: Scalar[bool] = Scalar("?", 1, False)
int8: Scalar[int] = Scalar("b", 1, 0)
int16: Scalar[int] = Scalar("h", 2, 0)
uint16: Scalar[int] = Scalar("H", 2, 0)
int32: Scalar[int] = Scalar("i", 4, 0)
uint32: Scalar[int] = Scalar("I", 4, 0)
int64: Scalar[int] = Scalar("q", 8, 0)
float64: Scalar[float] = Scalar("d", 8, 0.0)
uuid: Scalar[bytes] = Scalar("16s", 16, ZERO_UUID)
string: Sized[str] = Sized("", is_text=True)
bytes_: Sized[bytes | memoryview] = Sized(b"", is_text=False)
record_bytes: Sized[bytes | memoryview] = Sized(b"", is_text=False)


@overload
def array(
    item: Scalar[T] | Sized[T] | type[T],
    versions: str = ...,
    *,
    tag: int | None = ...,
    ignorable: bool = ...,
) -> list[T]: ...


@overload
def array(
    item: Scalar[T] | Sized[T] | type[T],
    versions: str = ...,
    *,
    nullable: str,
    default: None = ...,
    tag: int | None = ...,
    ignorable: bool = ...,
) -> list[T] | None: ...


def array(
    item: Any,
    versions: str = EVERY_VERSION,
    *,
    nullable: str = NO_VERSION,
    default: Any = ...,
    tag: int | None = None,
    ignorable: bool = False,
) -> Any:
    """A field that holds a list of scalars, texts or structs; empty unless `default=None`."""
    is_struct = isinstance(item, type) and issubclass(item, Struct)
    kind = Array(Nested(item) if is_struct else item)
    value = [] if default is ... else default
    return Field(kind, versions, value, nullable=nullable, tag=tag, ignorable=ignorable)


@overload
def nested(
    struct: type[S], versions: str = ..., *, tag: int | None = ..., ignorable: bool = ...
) -> S: ...


@overload
def nested(
    struct: type[S],
    versions: str = ...,
    *,
    nullable: str,
    default: None = ...,
    tag: int | None = ...,
    ignorable: bool = ...,
) -> S | None: ...


def nested(
    struct: type[Struct],
    versions: str = EVERY_VERSION,
    *,
    nullable: str = NO_VERSION,
    default: Any = ...,
    tag: int | None = None,
    ignorable: bool = False,
) -> Any:
    """A field that holds one struct; a struct of defaults unless `default=None`."""
    kind = Nested(struct)
    return Field(kind, versions, default, nullable=nullable, tag=tag, ignorable=ignorable)


@dataclass_transform(kw_only_default=True)
class StructType(type):
    """Turns the field lines of a class body into its `schema` and its slots."""

    schema: tuple[Field, ...]

    def __new__(
        mcs, name: str, bases: tuple[type, ...], body: dict[str, Any], **keywords: Any
    ) -> StructType:
        fields = []
        for field_name, value in list(body.items()):
            if isinstance(value, Field):
                value.name = field_name
                fields.append(value)
                del body[field_name]
        body["__slots__"] = tuple(field.name for field in fields)
        body["schema"] = tuple(fields)
        return super().__new__(mcs, name, bases, body, **keywords)


class Struct(metaclass=StructType):
    """A value with a schema: part of a message, or a message itself."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, **values: Any) -> None:
        """Stands in until the first call makes the constructor of this very class."""
        made = type(self)
        made.__init__ = _constructor(made)  # type: ignore[method-assign]
        made.__init__(self, **values)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        names = (field.name for field in type(self).schema)
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def __repr__(self) -> str:
        values = ((field.name, getattr(self, field.name)) for field in type(self).schema)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in values)})"


class Message(Struct):
    """A struct that travels by itself, in one of several versions."""

    api_key: ClassVar[int]
    versions: ClassVar[range]
    flexible_from: ClassVar[int | None]
    decoders: ClassVar[dict[int, Callable[[memoryview, int, bool], Any]]]
    encoders: ClassVar[dict[int, Callable[[Any], bytes]]]

    def __init_subclass__(
        cls, *, versions: str, flexible_from: int | None, api_key: int | None = None
    ) -> None:
        if api_key is not None:
            cls.api_key = api_key
        first, _, last = versions.partition("-")
        cls.versions = range(int(first), int(last or first) + 1)
        cls.flexible_from = flexible_from
        cls.decoders = {}
        cls.encoders = {}


def _constructor(struct: type[Struct]) -> Callable[..., None]:
    """An `__init__` with one keyword per field, as one would write it by hand."""
    constants: dict[str, Any] = {"MISSING": object()}
    parameters, lines = [], []
    for field in struct.schema:
        fresh = None
        if isinstance(field.kind, Array) and field.default is not None:
            fresh = "[]"
        elif isinstance(field.kind, Nested) and field.default is not None:
            fresh = f"{field.kind.struct.__name__}()"
            constants[field.kind.struct.__name__] = field.kind.struct
        default = f"DEFAULT_{field.name}" if fresh is None else "MISSING"
        constants.setdefault(default, field.default)
        parameters.append(f"{field.name}={default}")
        value = f"{fresh} if {field.name} is MISSING else {field.name}" if fresh else field.name
        lines.append(f"    self.{field.name} = {value}")
    keywords = f", *, {', '.join(parameters)}" if parameters else ""
    body = "\n".join(lines) or "    pass"
    exec(f"def __init__(self{keywords}):\n{body}\n", constants)
    return cast("Callable[..., None]", constants["__init__"])
