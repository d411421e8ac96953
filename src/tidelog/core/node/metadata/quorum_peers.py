"""Requests to the other voters: votes, and who leads. One link each; repeated until answered.

What to ask is decided by the machine. The same request is on its way to a voter once at a time.
A voter that cannot be reached is tried again after a while, and after a longer one each time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.model.alarms import Alarm
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.model.topic_name import METADATA_TOPIC
from tidelog.core.model.voters import Voter
from tidelog.core.node.metadata.metadata_port import MetadataPort
from tidelog.core.quorum.roles import Role
from tidelog.core.quorum.values import BeginEpoch, Call, EndEpoch, VoteAnswer, VoteCall
from tidelog.core.wire.links import Link, NoAnswer
from tidelog.core.wire.messages.api_52_vote import (
    VoteRequest,
    VoteRequestPartition,
    VoteRequestTopic,
    VoteResponse,
)
from tidelog.core.wire.messages.api_53_begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochRequestPartition,
    BeginQuorumEpochRequestTopic,
    BeginQuorumEpochResponse,
)
from tidelog.core.wire.messages.api_54_end_quorum_epoch import (
    EndQuorumEpochRequest,
    EndQuorumEpochRequestPartition,
    EndQuorumEpochRequestTopic,
    EndQuorumEpochResponse,
    ReplicaInfo,
)
from tidelog.core.wire.schema import Message

if TYPE_CHECKING:
    from tidelog.core.node.metadata.metadata_log import MetadataLog
    from tidelog.core.node.metadata.metadata_quorum import MetadataQuorum

PARTITION = TopicPartition(METADATA_TOPIC, 0)
PURPOSE = "quorum"
VOTE_VERSION, BEGIN_VERSION, END_VERSION = 2, 1, 1
BACKOFF_DOUBLINGS_MAX = 3
NO_DIRECTORY = bytes(16)


class Backoff:
    """How long to leave a peer alone after failures in a row."""

    def __init__(self, first_ms: int) -> None:
        self._first_ms = first_ms
        self._failures = 0
        self.until_ms = 0

    def failed(self, now_ms: int) -> None:
        doublings = min(self._failures, BACKOFF_DOUBLINGS_MAX)
        self.until_ms = now_ms + (self._first_ms << doublings)
        self._failures += 1

    def worked(self) -> None:
        self._failures = 0
        self.until_ms = 0


class QuorumPeer:
    """One other voter."""

    def __init__(self, voter: Voter, backoff: Backoff) -> None:
        self.voter = voter
        self.backoff = backoff
        self.link: Link | None = None
        self.sent: Call | None = None
        """The newest request without an answer."""
        self.alarm: Alarm | None = None


class QuorumPeers:
    """Inputs: `look`, after anything that may have changed what the machine asks for."""

    def __init__(self, port: MetadataPort, metadata: MetadataLog, quorum: MetadataQuorum) -> None:
        self._port = port
        self._metadata = metadata
        self._quorum = quorum
        settings = port.settings
        backoff_ms = settings.integer("controller.quorum.retry.backoff.ms")
        self._timeout_ms = settings.integer("controller.quorum.request.timeout.ms")
        self._peers = [
            QuorumPeer(voter, Backoff(backoff_ms))
            for voter in settings.voters
            if voter.node_id != settings.node_id and settings.is_controller
        ]

    def look(self, now_ms: int) -> None:
        """Send what the machine asks for and is not on its way."""
        machine = self._quorum.machine
        for peer in self._peers:
            call = machine.request_for(peer.voter.node_id, now_ms)
            if call is None:
                if peer.link is None and self._is_probing and self._may_try(peer, now_ms):
                    self._open(peer)
            elif call != peer.sent and self._may_try(peer, now_ms):
                self._ask(peer, call, now_ms)

    @property
    def _is_probing(self) -> bool:
        """At the start, so that an election begins as soon as a majority is there."""
        machine = self._quorum.machine
        return (
            machine.role is Role.UNATTACHED
            and machine.leader_id is None
            and not self._quorum.is_stopping
        )

    def _may_try(self, peer: QuorumPeer, now_ms: int) -> bool:
        if now_ms >= peer.backoff.until_ms:
            return True
        if peer.alarm is None or not peer.alarm.is_pending:
            peer.alarm = self._port.alarms.at(peer.backoff.until_ms, self.look)
        return False

    def _open(self, peer: QuorumPeer) -> Link:
        def on_opened(now_ms: int) -> None:
            peer.backoff.worked()
            machine = self._quorum.machine
            reachable = sum(p.link is not None and p.link.is_open for p in self._peers)
            self._quorum.step(machine.on_reachable(reachable, now_ms), now_ms)

        def on_closed(reason: str, now_ms: int) -> None:
            if peer.link is link:
                peer.link = peer.sent = None
                peer.backoff.failed(now_ms)
                self.look(now_ms)

        voter = peer.voter
        link = peer.link = self._port.links.open(
            voter.host, voter.port, PURPOSE, on_opened=on_opened, on_closed=on_closed
        )
        return link

    def _ask(self, peer: QuorumPeer, call: Call, now_ms: int) -> None:
        link = peer.link or self._open(peer)
        request, version = self._request(peer.voter.node_id, call)
        peer.sent = call

        def then(answer: Message | NoAnswer, now_ms: int) -> None:
            if peer.sent is call:
                peer.sent = None
            if not isinstance(answer, NoAnswer):
                self._on_answer(peer, call, answer, now_ms)

        link.ask(request, version, then, timeout_ms=self._timeout_ms, now_ms=now_ms)

    def _on_answer(self, peer: QuorumPeer, call: Call, answer: Message, now_ms: int) -> None:
        machine, voter = self._quorum.machine, peer.voter.node_id
        heard = _heard(answer)
        if heard is None:
            peer.backoff.failed(now_ms)
            self.look(now_ms)
            return
        error, leader_id, quorum_epoch, is_granted = heard
        if isinstance(call, VoteCall):
            voted = VoteAnswer(
                error=error,
                quorum_epoch=quorum_epoch,
                leader_id=leader_id,
                is_granted=is_granted,
            )
            ready = machine.on_vote_answer(voter, call, voted, now_ms)
        elif isinstance(call, BeginEpoch):
            ready = machine.on_begin_answer(voter, leader_id, quorum_epoch, now_ms)
        else:
            ready = machine.on_end_answer(voter, leader_id, quorum_epoch, now_ms)
        if machine.request_for(voter, now_ms) == call:
            peer.backoff.failed(now_ms)  # the answer settled nothing: ask again, but not at once
        self._quorum.step(ready, now_ms)

    def _request(self, voter: int, call: Call) -> tuple[Message, int]:
        cluster_id = self._metadata.cluster_id
        if isinstance(call, VoteCall):
            return _vote(cluster_id, voter, call), VOTE_VERSION
        if isinstance(call, BeginEpoch):
            return _begin(cluster_id, voter, call), BEGIN_VERSION
        return _end(cluster_id, call), END_VERSION


def _vote(cluster_id: str, voter: int, call: VoteCall) -> VoteRequest:
    partition = VoteRequestPartition(
        partition_index=PARTITION.index,
        replica_epoch=call.quorum_epoch,
        replica_id=call.candidate_id,
        replica_directory_id=NO_DIRECTORY,
        voter_directory_id=NO_DIRECTORY,
        last_offset_epoch=call.position.quorum_epoch,
        last_offset=call.position.end_offset,
        pre_vote=call.is_pre_vote,
    )
    topic = VoteRequestTopic(topic_name=PARTITION.topic, partitions=[partition])
    return VoteRequest(cluster_id=cluster_id, voter_id=voter, topics=[topic])


def _begin(cluster_id: str, voter: int, call: BeginEpoch) -> BeginQuorumEpochRequest:
    partition = BeginQuorumEpochRequestPartition(
        partition_index=PARTITION.index,
        voter_directory_id=NO_DIRECTORY,
        leader_id=call.leader_id,
        leader_epoch=call.quorum_epoch,
    )
    topic = BeginQuorumEpochRequestTopic(topic_name=PARTITION.topic, partitions=[partition])
    return BeginQuorumEpochRequest(cluster_id=cluster_id, voter_id=voter, topics=[topic])


def _end(cluster_id: str, call: EndEpoch) -> EndQuorumEpochRequest:
    partition = EndQuorumEpochRequestPartition(
        partition_index=PARTITION.index,
        leader_id=call.leader_id,
        leader_epoch=call.quorum_epoch,
        preferred_candidates=[
            ReplicaInfo(candidate_id=voter, candidate_directory_id=NO_DIRECTORY)
            for voter in call.preferred
        ],
    )
    topic = EndQuorumEpochRequestTopic(topic_name=PARTITION.topic, partitions=[partition])
    return EndQuorumEpochRequest(cluster_id=cluster_id, topics=[topic])


def _heard(answer: Message) -> tuple[ErrorCode, int | None, int, bool] | None:
    """(error, leader, quorum epoch, granted); None for an answer that says nothing of these."""
    assert isinstance(answer, VoteResponse | BeginQuorumEpochResponse | EndQuorumEpochResponse)
    if answer.error_code or not answer.topics or not answer.topics[0].partitions:
        return None
    partition = answer.topics[0].partitions[0]
    leader_id = None if partition.leader_id < 0 else partition.leader_id
    is_granted = getattr(partition, "vote_granted", False)
    return ErrorCode.from_wire(partition.error_code), leader_id, partition.leader_epoch, is_granted
