"""SaslHandshake and SaslAuthenticate, where no client has to authenticate."""

from __future__ import annotations

from tests.golden.cases.registry import case
from tests.golden.talk import Talk


@case("SaslHandshake", 0, 1)
def where_none_is_wanted(talk: Talk, version: int) -> None:
    """A listener without SASL is in no state for it."""
    talk.ask("SaslHandshake", version, mechanism="SCRAM-SHA-256")


@case("SaslAuthenticate", 0, 2)
def without_a_handshake(talk: Talk, version: int) -> None:
    """Nor for what would follow."""
    talk.ask("SaslAuthenticate", version, auth_bytes=b"n,,n=golden,r=nonce")
