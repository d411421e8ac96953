"""SaslAuthenticate (api key 36): one message of the mechanism that SaslHandshake has agreed on."""

from __future__ import annotations

from tidelog.core.wire.schema import Message, bytes_, int16, int64, string


class SaslAuthenticateRequest(Message, api_key=36, versions="0-2", flexible_from=2):
    """What the client's side of the mechanism says."""

    auth_bytes: bytes | memoryview = bytes_()


class SaslAuthenticateResponse(Message, api_key=36, versions="0-2", flexible_from=2):
    """What the server's side answers, or why it refuses."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    auth_bytes: bytes | memoryview = bytes_()
    session_lifetime_ms: int = int64("1+", ignorable=True)
