"""Bytes that are not what the protocol says: the exception of all decoders of messages."""

from __future__ import annotations

from tidelog.core.model.exceptions import TidelogError


class MalformedMessage(TidelogError):
    """The bytes of a peer cannot be read; the message says where and why.

    Whoever owns the bytes catches it: a node closes the connection that they came from, a reader of
    a file reports the file as damaged.
    """
