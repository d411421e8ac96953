"""SCRAM-SHA-256: whoever knows the secret gets in, once; nobody else, and never by a replay."""

from __future__ import annotations

from random import Random

import pytest

from tidelog.core.wire.scram import NONCE_BYTES, BadProof, Credentials, ScramClient, ScramServer

SECRET = "thirty-two characters and a few more"
OURS = Credentials.of(SECRET)
THEIRS = Credentials.of(SECRET + ".")


def nonce(seed: int) -> bytes:
    return Random(seed).randbytes(NONCE_BYTES)


def test_both_sides_prove_that_they_know_the_secret() -> None:
    client, server = ScramClient(OURS, "node-1", nonce(1)), ScramServer(OURS, nonce(2))

    client.verify(server.final(client.final(server.first(client.first()))))


def test_the_secret_is_in_no_message() -> None:
    client, server = ScramClient(OURS, "node-1", nonce(1)), ScramServer(OURS, nonce(2))
    first = client.first()
    challenge = server.first(first)
    proof = client.final(challenge)
    said = b"".join((first, challenge, proof, server.final(proof)))

    assert SECRET.encode() not in said
    assert OURS.client_key not in said


def test_a_proof_of_another_secret_is_refused() -> None:
    client, server = ScramClient(THEIRS, "node-1", nonce(1)), ScramServer(OURS, nonce(2))

    proof = client.final(server.first(client.first()))

    with pytest.raises(BadProof, match="another secret"):
        server.final(proof)


def test_a_proof_cannot_be_used_again() -> None:
    """Whoever recorded a whole exchange sends it again: the server's nonce is another one now."""
    client, server = ScramClient(OURS, "node-1", nonce(1)), ScramServer(OURS, nonce(2))
    first = client.first()
    proof = client.final(server.first(first))
    server.final(proof)

    another = ScramServer(OURS, nonce(3))
    another.first(first)

    with pytest.raises(BadProof, match="does not continue"):
        another.final(proof)


def test_a_server_that_does_not_know_the_secret_is_found_out() -> None:
    client, server = ScramClient(OURS, "node-1", nonce(1)), ScramServer(THEIRS, nonce(2))
    client.final(server.first(client.first()))

    with pytest.raises(BadProof, match="the server does not know"):
        client.verify(b"v=" + b"A" * 43 + b"=")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ((b"r=", b"r=x"), "does not continue ours"),
        ((b"i=4096", b"i=400000000"), "another salt or iteration count"),
        ((b"s=", b"s=AAAA"), "another salt or iteration count"),
    ],
)
def test_a_server_sets_no_conditions(change: tuple[bytes, bytes], reason: str) -> None:
    client, server = ScramClient(OURS, "node-1", nonce(1)), ScramServer(OURS, nonce(2))
    challenge = server.first(client.first()).replace(*change, 1)

    with pytest.raises(BadProof, match=reason):
        client.final(challenge)


@pytest.mark.parametrize(
    "message",
    [b"", b"n,,", b"n,,n=a", b"n,,r=b", b"y,,n=a,r=b", b"n,a=x,n=a,r=b", b"\xff", b"n" * 9999],
)
def test_nonsense_at_the_beginning(message: bytes) -> None:
    with pytest.raises(BadProof):
        ScramServer(OURS, nonce(2)).first(message)


@pytest.mark.parametrize("proof", [b"", b"p=", b"p=!!!!", b"p=AAAA"])
def test_nonsense_in_place_of_a_proof(proof: bytes) -> None:
    client, server = ScramClient(OURS, "node-1", nonce(1)), ScramServer(OURS, nonce(2))
    good = client.final(server.first(client.first()))

    with pytest.raises(BadProof):
        server.final(good[: good.index(b"p=")] + proof)


def test_no_proof_comes_before_the_first_message() -> None:
    with pytest.raises(BadProof):
        ScramServer(OURS, nonce(2)).final(b"c=biws,r=,p=AAAA")


def test_names_may_hold_the_separators() -> None:
    client, server = ScramClient(OURS, "a=b,c", nonce(1)), ScramServer(OURS, nonce(2))
    assert b"n=a=3Db=2Cc," in client.first()

    client.verify(server.final(client.final(server.first(client.first()))))


def test_another_implementation_is_understood() -> None:
    """kafka-python's client takes our server for one that follows the standard."""
    scram = pytest.importorskip("kafka.net.sasl.scram")
    client = scram.ScramClient("somebody", SECRET, "SCRAM-SHA-256")
    server = ScramServer(OURS, nonce(2))

    client.process_server_first_message(server.first(client.first_message()))
    client.process_server_final_message(server.final(client.final_message()))
