"""The first exchange on a link between nodes: SaslHandshake and SaslAuthenticate with SCRAM.

The handshake and SCRAM's first message leave together, so a link costs two round trips more. What
the node wants to ask leaves only when both sides have proved that they know the secret of their
cluster: an answer is never taken from a stranger, nor is anything told to one.
"""

from __future__ import annotations

from random import Random

from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.links import IntroductionFailed, Outgoing
from tidelog.core.wire.messages.api_17_sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from tidelog.core.wire.messages.api_36_sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from tidelog.core.wire.schema import Message
from tidelog.core.wire.scram import MECHANISM, NONCE_BYTES, BadProof, Credentials, ScramClient

HANDSHAKE_VERSION, AUTHENTICATE_VERSION = 1, 2


class MemberProof:
    """Of the side that connects, for one connection: an Introduction of links.py."""

    def __init__(self, credentials: Credentials, *, user: str, random: Random) -> None:
        self._scram = ScramClient(credentials, user, random.randbytes(NONCE_BYTES))
        self._has_proved = False
        self.is_over = False

    def begin(self) -> list[Outgoing]:
        handshake = SaslHandshakeRequest(mechanism=MECHANISM)
        return [(handshake, HANDSHAKE_VERSION), _authenticate(self._scram.first())]

    def on_answer(self, answer: Message) -> list[Outgoing]:
        if isinstance(answer, SaslHandshakeResponse):
            if answer.error_code != ErrorCode.NONE:
                raise IntroductionFailed(_why(ErrorCode.from_wire(answer.error_code)))
            return []
        assert isinstance(answer, SaslAuthenticateResponse)
        if answer.error_code != ErrorCode.NONE:
            raise IntroductionFailed(_why(ErrorCode.from_wire(answer.error_code)))
        try:
            if not self._has_proved:
                self._has_proved = True
                return [_authenticate(self._scram.final(bytes(answer.auth_bytes)))]
            self._scram.verify(bytes(answer.auth_bytes))
        except BadProof as error:
            raise IntroductionFailed(str(error)) from error
        self.is_over = True
        return []


def _authenticate(message: bytes) -> Outgoing:
    return SaslAuthenticateRequest(auth_bytes=message), AUTHENTICATE_VERSION


def _why(code: ErrorCode) -> str:
    if code == ErrorCode.SASL_AUTHENTICATION_FAILED:
        return "the other node has another tidelog.cluster.secret"
    if code == ErrorCode.ILLEGAL_SASL_STATE:
        return "the other node has no tidelog.cluster.secret"
    return f"the other node answered {code.name}"
