"""The five codecs of record batches, with a bound on what they may unpack to.

What arrives is whatever a client sent, so the unpacked size is never taken from the input without
being compared with the bound first, and memory is touched only as far as real output reaches.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from enum import IntEnum

from tidelog.core.wire.record_batch import CorruptBatch


class Compression(IntEnum):
    """The codec numbers of the batch attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


Bytes = bytes | bytearray | memoryview


class DecompressedTooLarge(CorruptBatch):
    """The records may be sound, but unpack to more than the caller takes."""

    def __init__(self, bytes_max: int) -> None:
        super().__init__(f"the records unpack to more than {bytes_max} bytes")


_FIRST_GUESS_BYTES_MIN = 64 * 2**10
_BUFFER_TOO_SMALL = "failed to write whole buffer"
"""How cramjam says so; it has no type of error for it. The bomb test notices another wording."""
_GZIP_WINDOW_BITS = 31  # 15 bits of window, and 16 asks for gzip's header and trailer
_GZIP_PIECE_BYTES = 2**20

_LZ4_DEFAULT_LEVEL = 9
"""Kafka's default of `compression.lz4.level`; to Java it means its fast compressor, no level."""
_LZ4_FAST_LEVEL = 1

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"  # version, oldest compatible
_XERIAL_BLOCK_BYTES = 32 * 2**10
_BLOCK_SIZE = struct.Struct(">i")


def compress(codec: int, data: Bytes, *, level: int | None = None) -> Bytes:
    """Pack `data`. `level` matters to gzip, lz4 and zstd; None takes Kafka's default."""
    if codec == Compression.NONE:
        return data
    if codec == Compression.GZIP:
        return _gzip(data, -1 if level is None else level)
    if codec == Compression.SNAPPY:
        return _snappy(data)
    if codec == Compression.LZ4:
        return _lz4(data, _LZ4_DEFAULT_LEVEL if level is None else level)
    if codec == Compression.ZSTD:
        return _zstd(data, 3 if level is None else level)
    raise ValueError(f"codec {codec} is not one of 0 to 4")


def decompress(codec: int, data: Bytes, *, bytes_max: int) -> Bytes:
    """Unpack `data`; CorruptBatch if it is damaged, DecompressedTooLarge beyond `bytes_max`."""
    if codec == Compression.NONE:
        return data
    if codec == Compression.GZIP:
        return _gunzip(data, bytes_max)
    if codec == Compression.SNAPPY:
        return _unsnappy(data, bytes_max)
    if codec == Compression.LZ4:
        from cramjam import lz4

        return _unpack_growing(lz4.decompress_into, data, bytes_max)
    if codec == Compression.ZSTD:
        from cramjam import zstd

        return _unpack_growing(zstd.decompress_into, data, bytes_max)
    raise CorruptBatch(f"compression codec {codec} is not one of 0 to 4")


def _gzip(data: Bytes, level: int) -> bytes:
    packer = zlib.compressobj(level, zlib.DEFLATED, _GZIP_WINDOW_BITS)
    return packer.compress(data) + packer.flush()


def _snappy(data: Bytes) -> bytearray:
    """In the framing that Java clients write and every other client reads."""
    from cramjam import snappy

    packed = bytearray(_XERIAL_HEADER)
    view = memoryview(data)
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        packed += _BLOCK_SIZE.pack(len(block))
        packed += block
    return packed


def _lz4(data: Bytes, level: int) -> bytes:
    """Independent blocks without a content checksum: Java's reader refuses linked blocks."""
    from cramjam import lz4

    packer = lz4.Compressor(
        level=_LZ4_FAST_LEVEL if level == _LZ4_DEFAULT_LEVEL else level,
        content_checksum=False,
        block_linked=False,
    )
    packer.compress(bytes(data))
    return bytes(packer.finish())


def _zstd(data: Bytes, level: int) -> bytes:
    from cramjam import zstd

    return bytes(zstd.compress(data, level))


def _gunzip(data: Bytes, bytes_max: int) -> bytearray:
    """Every member of the stream, one after the other, as Java reads it."""
    unpacked = bytearray()
    remaining: Bytes = data
    while len(remaining):
        unpacker = zlib.decompressobj(_GZIP_WINDOW_BITS)
        while not unpacker.eof:
            room = min(_GZIP_PIECE_BYTES, bytes_max - len(unpacked) + 1)
            try:
                piece = unpacker.decompress(remaining, room)
            except zlib.error as error:
                raise CorruptBatch(f"gzip: {error}") from None
            unpacked += piece
            if len(unpacked) > bytes_max:
                raise DecompressedTooLarge(bytes_max)
            remaining = unpacker.unconsumed_tail
            if not piece and not remaining and not unpacker.eof:
                raise CorruptBatch("gzip: the stream ends too early")
        remaining = unpacker.unused_data
    return unpacked


def _unsnappy(data: Bytes, bytes_max: int) -> bytearray | memoryview:
    """Xerial-framed blocks if they begin with its magic, one raw block otherwise."""
    view = memoryview(data)
    if bytes(view[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _unsnappy_block(view, bytes_max)
    unpacked = bytearray()
    position = 0
    while position < len(view):
        if bytes(view[position : position + len(_XERIAL_MAGIC)]) == _XERIAL_MAGIC:
            position += len(_XERIAL_HEADER)
            continue
        if position + _BLOCK_SIZE.size > len(view):
            raise CorruptBatch("snappy: a block size is cut short")
        (size,) = _BLOCK_SIZE.unpack_from(view, position)
        position += _BLOCK_SIZE.size
        if not 0 <= size <= len(view) - position:
            raise CorruptBatch(f"snappy: a block of {size} bytes, {len(view) - position} are left")
        unpacked += _unsnappy_block(view[position : position + size], bytes_max - len(unpacked))
        position += size
    return unpacked


def _unsnappy_block(block: memoryview, bytes_max: int) -> bytearray:
    from cramjam import DecompressionError, snappy

    try:
        size = snappy.decompress_raw_len(block)
        if size > bytes_max:
            raise DecompressedTooLarge(bytes_max)
        unpacked = bytearray(size)
        written = snappy.decompress_raw_into(block, unpacked)
    except DecompressionError as error:
        raise CorruptBatch(str(error)) from None
    if written != size:
        raise CorruptBatch(f"snappy: {written} bytes instead of {size}")
    return unpacked


def _unpack_growing(
    unpack_into: Callable[[Bytes, bytearray], int], data: Bytes, bytes_max: int
) -> memoryview:
    """Try with a modest buffer, then with four times as much, up to the bound."""
    from cramjam import DecompressionError

    room = min(bytes_max, max(_FIRST_GUESS_BYTES_MIN, 4 * len(data)))
    while True:
        buffer = bytearray(room)
        try:
            return memoryview(buffer)[: unpack_into(data, buffer)]
        except DecompressionError as error:
            if str(error) != _BUFFER_TOO_SMALL:
                raise CorruptBatch(str(error)) from None
        if room == bytes_max:
            raise DecompressedTooLarge(bytes_max)
        room = min(bytes_max, 4 * room)
