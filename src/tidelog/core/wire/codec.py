"""Messages to bytes and back, by functions made from the schemas at their first use.

The function for one version of one message is generated when it is first asked for
(decoder.py, encoder.py) and kept with the message class.
"""

from __future__ import annotations

import struct
from typing import TypeVar

from tidelog.core.wire.decoder import make_decoder
from tidelog.core.wire.encoder import make_encoder
from tidelog.core.wire.malformed import MalformedMessage
from tidelog.core.wire.schema import Message

__all__ = ["MalformedMessage", "decode", "encode"]

M = TypeVar("M", bound=Message)


def decode(
    cls: type[M], view: memoryview, version: int, position: int = 0, *, rest_allowed: bool = False
) -> M:
    """The message that begins at `position` and ends with the view, or before it if `rest_allowed`.

    Bytes and records are slices of the view, so they live only as long as its buffer does.
    """
    decoder = cls.decoders.get(version)
    if decoder is None:
        decoder = cls.decoders[version] = make_decoder(cls, known_version(cls, version))
    try:
        message: M = decoder(view, position, rest_allowed)
    except (struct.error, IndexError):
        raise MalformedMessage(f"{cls.__name__} v{version} ends too early") from None
    except UnicodeDecodeError as error:
        raise MalformedMessage(f"{cls.__name__} v{version} has a bad string: {error}") from None
    return message


def encode(message: Message, version: int) -> bytes:
    """The bytes of a message; a value that this version cannot hold is a ValueError."""
    cls = type(message)
    encoder = cls.encoders.get(version)
    if encoder is None:
        encoder = cls.encoders[version] = make_encoder(cls, known_version(cls, version))
    try:
        return encoder(message)
    except (struct.error, TypeError, AttributeError) as error:
        raise ValueError(f"{cls.__name__} v{version} cannot be encoded: {error}") from error


def known_version(cls: type[Message], version: int) -> int:
    if version not in cls.versions:
        raise ValueError(f"{cls.__name__} has no version {version}, only {cls.versions}")
    return version
