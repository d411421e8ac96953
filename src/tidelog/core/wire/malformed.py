"""Bytes that are not what the protocol says: the one exception of this room."""

from __future__ import annotations

from tidelog.core.model.exceptions import TidelogError


class MalformedMessage(TidelogError):
    """The bytes of a peer cannot be read; the message says where and why.

    Whoever owns the connection catches it, closes the connection and logs the reason.
    """
