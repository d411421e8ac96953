"""SaslAuthenticate: a proof makes a member of a connection, a wrong one ends it."""

from __future__ import annotations

from tests.unit.core.node.strangers import Stranger
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.links import IntroductionFailed
from tidelog.core.wire.messages.api_17_sasl_handshake import SaslHandshakeRequest
from tidelog.core.wire.messages.api_36_sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from tidelog.core.wire.scram import MECHANISM
from tidelog.worlds.simulator.client import CallFailed


def test_two_steps_make_a_member() -> None:
    stranger = Stranger()

    stranger.prove()

    assert [each.is_member for each in stranger.connections()] == [True]


def test_without_a_handshake_there_is_nothing_to_prove() -> None:
    answer = Stranger().ask(SaslAuthenticateRequest(auth_bytes=b"n,,n=a,r=b"), 2)

    assert isinstance(answer, SaslAuthenticateResponse)
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_the_first_step_alone_makes_no_member() -> None:
    stranger = Stranger()
    stranger.ask(SaslHandshakeRequest(mechanism=MECHANISM), 1)
    stranger.ask(SaslAuthenticateRequest(auth_bytes=b"n,,n=a,r=b"), 2)

    assert [each.is_member for each in stranger.connections()] == [False]


def test_a_wrong_proof_is_answered_and_ends_the_connection() -> None:
    stranger = Stranger()

    error = stranger.prove(secret="another secret of enough characters")

    assert isinstance(error, IntroductionFailed)
    assert "another tidelog.cluster.secret" in str(error)
    stranger.run()
    assert stranger.connections() == []
    assert "PeerNotAuthenticated(" in "".join(stranger.world.trace.lines())


def test_nonsense_in_place_of_the_first_step_ends_the_connection() -> None:
    stranger = Stranger()
    stranger.ask(SaslHandshakeRequest(mechanism=MECHANISM), 1)

    answer = stranger.ask(SaslAuthenticateRequest(auth_bytes=b"\xff"), 2)
    stranger.run()

    assert isinstance(answer, SaslAuthenticateResponse)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert not isinstance(answer, CallFailed)
    assert stranger.connections() == []
