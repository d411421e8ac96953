"""Envelope (api key 58): a client's request, passed on to the controller with its sender."""

from __future__ import annotations

from tidelog.core.wire.schema import Message, bytes_, int16


class EnvelopeRequest(Message, api_key=58, versions="0", flexible_from=0):
    """A whole request with its header; who sent it, and from which address."""

    request_data: bytes | memoryview = bytes_()
    request_principal: bytes | memoryview | None = bytes_(nullable="0+")
    client_host_address: bytes | memoryview = bytes_()


class EnvelopeResponse(Message, api_key=58, versions="0", flexible_from=0):
    """The whole answer with its header, unless the envelope itself was refused."""

    response_data: bytes | memoryview | None = bytes_(nullable="0+", default=None)
    error_code: int = int16()
