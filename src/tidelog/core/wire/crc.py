"""CRC-32C, the checksum of record batches, computed over a memoryview without copying it.

The `crc32c` package spends 30 to 80 ms of a broker's start on looking up its own version through
`importlib.metadata`, so its extension module is loaded by itself. Where that fails (another layout
of the package, no extension for this interpreter) the package is imported the ordinary way.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import cast

Checksum = Callable[[bytes | bytearray | memoryview], int]


def _load() -> Checksum:
    package = PathFinder.find_spec("crc32c")
    locations = package.submodule_search_locations if package is not None else None
    extension = PathFinder.find_spec("_crc32c", locations) if locations is not None else None
    if extension is None or extension.loader is None:
        return _load_package()
    module = module_from_spec(extension)
    extension.loader.exec_module(module)
    return cast(Checksum, module.crc32c)


def _load_package() -> Checksum:
    from crc32c import crc32c as checksum

    return checksum


crc32c: Checksum = _load()
"""The checksum of the bytes, as an unsigned 32-bit number."""
