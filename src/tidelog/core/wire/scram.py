"""SCRAM-SHA-256 (RFC 5802, RFC 7677): both sides prove to know a secret, and neither says it.

Each side adds a nonce of its own, so that no proof can be used a second time; whoever listens
learns neither the secret nor a proof that is good for another connection.

The salt and the iteration count are always the same. They make it expensive to guess a password
that a person has chosen; the secret of a cluster is 256 random bits, which nobody guesses. So the
keys are derived once for a process (some milliseconds), never per connection, and a server that
asks for another salt or count is refused: it could keep this process busy. The count is the lowest
that the RFC and Kafka's own clients accept.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from hashlib import pbkdf2_hmac, sha256
from hmac import compare_digest, digest
from typing import NamedTuple

from tidelog.core.model.exceptions import TidelogError

MECHANISM = "SCRAM-SHA-256"
ITERATIONS = 4_096
NONCE_BYTES = 24
_SALT = b"tidelog cluster"
_HASH = "sha256"
_NO_CHANNEL_BINDING = "n,,"
_MESSAGE_BYTES_MAX = 1_024


class BadProof(TidelogError):
    """The other side does not know the secret, or does not speak SCRAM as it is spoken here."""


class Credentials(NamedTuple):
    """What follows from a secret. With it one can prove to know the secret, and check others."""

    client_key: bytes
    stored_key: bytes
    server_key: bytes

    @classmethod
    def of(cls, secret: str) -> Credentials:
        salted = pbkdf2_hmac(_HASH, secret.encode(), _SALT, ITERATIONS)
        client_key = digest(salted, b"Client Key", _HASH)
        server_key = digest(salted, b"Server Key", _HASH)
        return cls(client_key, sha256(client_key).digest(), server_key)


class ScramClient:
    """The side that connects: `first`, then `final`, then `verify`."""

    def __init__(self, credentials: Credentials, user: str, nonce: bytes) -> None:
        self._credentials = credentials
        self._nonce = _text(nonce)
        self._first = f"n={_escaped(user)},r={self._nonce}"
        self._signature = b""

    def first(self) -> bytes:
        return f"{_NO_CHANNEL_BINDING}{self._first}".encode()

    def final(self, server_first: bytes) -> bytes:
        """The proof. Raises BadProof if the server's first message is not one for us."""
        text = _decoded(server_first)
        fields = _fields(text)
        nonce = fields.get("r", "")
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise BadProof("the nonce of the server does not continue ours")
        if fields.get("s") != _text(_SALT) or fields.get("i") != str(ITERATIONS):
            raise BadProof("the server wants another salt or iteration count")
        without_proof = f"c={_text(_NO_CHANNEL_BINDING.encode())},r={nonce}"
        exchange = f"{self._first},{text},{without_proof}".encode()
        client_key, stored_key, server_key = self._credentials
        proof = _xor(client_key, digest(stored_key, exchange, _HASH))
        self._signature = digest(server_key, exchange, _HASH)
        return f"{without_proof},p={_text(proof)}".encode()

    def verify(self, server_final: bytes) -> None:
        """Raises BadProof unless the server knows the secret, too."""
        signature = _bytes(_fields(_decoded(server_final)).get("v", ""))
        if not self._signature or not compare_digest(signature, self._signature):
            raise BadProof("the server does not know the secret")


class ScramServer:
    """The side that is connected to: `first`, then `final`. Whatever is wrong raises BadProof."""

    def __init__(self, credentials: Credentials, nonce: bytes) -> None:
        self._credentials = credentials
        self._nonce = _text(nonce)
        self._firsts = ""

    def first(self, client_first: bytes) -> bytes:
        text = _decoded(client_first)
        binding, _, rest = text.partition(",")
        authorized_as, _, bare = rest.partition(",")
        fields = _fields(bare)
        if binding != "n" or authorized_as or not fields.get("n") or not fields.get("r"):
            raise BadProof("the first message is not one of SCRAM without channel binding")
        self._nonce = fields["r"] + self._nonce
        answer = f"r={self._nonce},s={_text(_SALT)},i={ITERATIONS}"
        self._firsts = f"{bare},{answer}"
        return answer.encode()

    def final(self, client_final: bytes) -> bytes:
        text = _decoded(client_final)
        without_proof, _, proof = text.rpartition(",p=")
        fields = _fields(without_proof)
        binding = _text(_NO_CHANNEL_BINDING.encode())
        if not self._firsts or fields.get("c") != binding or fields.get("r") != self._nonce:
            raise BadProof("the final message does not continue the first ones")
        exchange = f"{self._firsts},{without_proof}".encode()
        _, stored_key, server_key = self._credentials
        client_key = _xor(_bytes(proof), digest(stored_key, exchange, _HASH))
        if not compare_digest(sha256(client_key).digest(), stored_key):
            raise BadProof("the proof is of another secret")
        return f"v={_text(digest(server_key, exchange, _HASH))}".encode()


def _decoded(message: bytes) -> str:
    if len(message) > _MESSAGE_BYTES_MAX:
        raise BadProof("the message is too long")
    try:
        return message.decode()
    except UnicodeDecodeError as error:
        raise BadProof("the message is no text") from error


def _fields(text: str) -> dict[str, str]:
    """`r=...,s=...` by the letters; what an extension may add is taken and not looked at."""
    pairs = [part.partition("=") for part in text.split(",")]
    return {letter: value for letter, _, value in pairs}


def _text(raw: bytes) -> str:
    return b64encode(raw).decode()


def _bytes(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError as error:
        raise BadProof("the proof is not base64") from error


def _xor(left: bytes, right: bytes) -> bytes:
    if len(left) != len(right):
        raise BadProof("the proof is too short or too long")
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


def _escaped(user: str) -> str:
    return user.replace("=", "=3D").replace(",", "=2C")
