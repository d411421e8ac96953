"""Python source in the making: what the decoder and encoder generators share.

A generator writes lines, and gathers fields of fixed size into runs, so that each run costs
one call of a compiled `struct.Struct`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tidelog.core.wire.schema import Array, Kind, Message, Nested, Scalar, Sized, Struct

SHORT_ARRAY = 8


class Source:
    """Lines of one function, the constants it uses, and its next variable names."""

    def __init__(self, message: type[Message], version: int) -> None:
        self.message = message
        self.version = version
        self.flexible = is_flexible(message, version)
        self.constants: dict[str, Any] = {}
        self.lines: list[str] = []
        self._indent = 0
        self._names = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self._indent + text)

    @contextmanager
    def block(self, text: str) -> Iterator[None]:
        """An indented block under a line such as `if x:`."""
        self.line(text)
        self._indent += 1
        yield
        self._indent -= 1

    def fresh(self, prefix: str) -> str:
        """A variable name that is not used yet."""
        self._names += 1
        return f"{prefix}{self._names}"

    def constant(self, prefix: str, value: object) -> str:
        """The name under which the function finds `value`."""
        for name, known in self.constants.items():
            if known is value:
                return name
        name = f"{prefix}_{len(self.constants)}"
        self.constants[name] = value
        return name

    def literal(self, value: object) -> str:
        """How a default value is written in the function."""
        if value is None or isinstance(value, int | str | bytes):
            return repr(value)
        return self.constant("DEFAULT", value)

    def function(self, name: str) -> Callable[..., Any]:
        """The finished function."""
        text = "\n".join(self.lines) + "\n"
        file_name = f"<{name} of {self.message.__name__} version {self.version}>"
        namespace = {"__builtins__": __builtins__, **self.constants}
        exec(compile(text, file_name, "exec"), namespace)
        made: Callable[..., Any] = namespace[name]
        return made


def is_flexible(message: type[Message], version: int) -> bool:
    """Whether this version has compact lengths and tagged fields."""
    return message.flexible_from is not None and version >= message.flexible_from


def compiled(formats: list[str]) -> struct.Struct:
    """The big-endian struct of a run of fixed fields."""
    return struct.Struct(">" + "".join(formats))


def bytes_min(kind: Kind, version: int, *, flexible: bool) -> int:
    """The fewest bytes that a value of this kind takes: what a count is checked against."""
    if isinstance(kind, Scalar):
        return kind.size_bytes
    if isinstance(kind, Sized):
        return 1 if flexible else (2 if kind.is_text else 4)
    if isinstance(kind, Array):
        return 1 if flexible else 4
    return struct_bytes_min(kind.struct, version, flexible=flexible)


def struct_bytes_min(struct_: type[Struct], version: int, *, flexible: bool) -> int:
    total = 1 if flexible else 0
    for field in struct_.schema:
        if field.tag is not None or not field.exists_in(version):
            continue
        if isinstance(field.kind, Nested) and field.is_nullable_in(version):
            total += 1
        else:
            total += bytes_min(field.kind, version, flexible=flexible)
    return total
