"""SaslHandshake: the beginning of the proof that a connection is of a node of the cluster."""

from __future__ import annotations

import pytest

from tests.unit.core.node.strangers import Stranger
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_17_sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from tidelog.core.wire.scram import MECHANISM


@pytest.mark.parametrize(
    ("mechanism", "version", "code", "mechanisms"),
    [
        (MECHANISM, 1, ErrorCode.NONE, [MECHANISM]),
        ("PLAIN", 1, ErrorCode.UNSUPPORTED_SASL_MECHANISM, [MECHANISM]),
        (MECHANISM, 0, ErrorCode.ILLEGAL_SASL_STATE, []),
    ],
)
def test_there_is_one_mechanism(
    mechanism: str, version: int, code: ErrorCode, mechanisms: list[str]
) -> None:
    answer = Stranger().ask(SaslHandshakeRequest(mechanism=mechanism), version)

    assert answer == SaslHandshakeResponse(error_code=code, mechanisms=mechanisms)


def test_a_member_does_not_prove_it_again() -> None:
    stranger = Stranger()
    stranger.prove()

    answer = stranger.ask(SaslHandshakeRequest(mechanism=MECHANISM), 1)

    assert answer == SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


def test_a_node_without_a_secret_has_no_mechanism() -> None:
    stranger = Stranger(nodes=1, secret=None)

    answer = stranger.ask(SaslHandshakeRequest(mechanism=MECHANISM), 1)

    assert answer == SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
