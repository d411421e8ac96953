"""Membership: nodes of one cluster prove to each other that they know its secret.

Whoever opens a link between nodes proves it first (core/wire/member_proof.py), and asks the same
of the other side. A connection that did so is a member's: only over those is served what nodes ask
of each other. The secret never travels; without one there are no members but this node itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tidelog.core.model.trace import Trace
from tidelog.core.wire.member_proof import MemberProof
from tidelog.core.wire.scram import NONCE_BYTES, Credentials, ScramServer

REPEAT_MS = 60_000
"""How long nothing more is said of the same host: nodes try again many times in a second."""
_HOSTS_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkNotAuthenticated:
    """This node and another one do not agree on the secret of the cluster: nothing is asked."""

    node_id: int
    host: str
    port: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerNotAuthenticated:
    """Somebody wanted to be a member of the cluster and could not prove it."""

    node_id: int
    peer: str
    reason: str


class Membership:
    """Both sides of the proof for one node, and what its trace says of failed ones."""

    def __init__(self, *, node_id: int, secret: str | None, random: Random, trace: Trace) -> None:
        self._node_id = node_id
        self._credentials = None if secret is None else Credentials.of(secret)
        self._random = random
        self._trace = trace
        self._quiet_until_ms: dict[tuple[str, str], int] = {}

    @property
    def has_secret(self) -> bool:
        return self._credentials is not None

    # Of links

    def introduction(self) -> MemberProof:
        assert self._credentials is not None, "a node without a secret has no links to others"
        return MemberProof(self._credentials, user=f"node-{self._node_id}", random=self._random)

    def on_refused(self, host: str, port: int, reason: str, now_ms: int) -> None:
        if self._is_news(f"{host}:{port}", reason, now_ms):
            self._trace.emit(
                LinkNotAuthenticated(node_id=self._node_id, host=host, port=port, reason=reason)
            )

    # Of connections

    def challenge(self) -> ScramServer:
        assert self._credentials is not None, "there is nothing to prove"
        return ScramServer(self._credentials, self._random.randbytes(NONCE_BYTES))

    def on_bad_proof(self, peer: str, reason: str, now_ms: int) -> None:
        if self._is_news(peer.rpartition(":")[0], reason, now_ms):
            self._trace.emit(PeerNotAuthenticated(node_id=self._node_id, peer=peer, reason=reason))

    def _is_news(self, host: str, reason: str, now_ms: int) -> bool:
        known = self._quiet_until_ms.get((host, reason))
        if known is not None and now_ms < known:
            return False
        if len(self._quiet_until_ms) >= _HOSTS_MAX:
            self._quiet_until_ms.clear()
        self._quiet_until_ms[host, reason] = now_ms + REPEAT_MS
        return True
