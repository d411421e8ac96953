"""SaslHandshake (api key 17): which mechanism the authentication that follows shall use.

After version 0 the mechanism's bytes came without frames; after version 1 they come in
SaslAuthenticate.
"""

from __future__ import annotations

from tidelog.core.wire.schema import Message, array, int16, string


class SaslHandshakeRequest(Message, api_key=17, versions="0-1", flexible_from=None):
    """The mechanism that the client has chosen."""

    mechanism: str = string()


class SaslHandshakeResponse(Message, api_key=17, versions="0-1", flexible_from=None):
    """Whether it is there, and all that are."""

    error_code: int = int16()
    mechanisms: list[str] = array(string)
