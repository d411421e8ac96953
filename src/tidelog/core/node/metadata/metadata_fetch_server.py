"""Fetches of the metadata log, at its leader: records, where to truncate, or a snapshot's name.

A fetch that has nothing to get waits. It is answered when records come, and as soon as the high
watermark moves beyond the one that the replica knows (KIP-1166): voters and observers alike would
otherwise hear of a commit only with their next fetch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import METADATA_TOPIC_ID
from tidelog.core.model.topic_name import METADATA_TOPIC
from tidelog.core.node.connections.request import Request
from tidelog.core.node.metadata.metadata_port import MetadataPort
from tidelog.core.quorum.divergence import Diverged, NeedsSnapshot, judge_fetch
from tidelog.core.quorum.values import LogPosition
from tidelog.core.storage.disk import DiskError, read_slice
from tidelog.core.wire.messages.api_01_fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    SnapshotId,
)
from tidelog.core.wire.sentinels import NO_NODE, UNKNOWN_OFFSET

if TYPE_CHECKING:
    from tidelog.core.node.metadata.metadata_log import MetadataLog
    from tidelog.core.node.metadata.metadata_quorum import MetadataQuorum


class ParkedMetadataFetch:
    """A fetch that waits for data; it is assembled again at the end of a tick."""

    def __init__(
        self,
        fetch_server: MetadataFetchServer,
        request: Request,
        fetch: FetchRequest,
        timeout_ms: int,
    ) -> None:
        self._server = fetch_server
        self._request = request
        self._fetch = fetch
        self.timeout_ms = timeout_ms

    def look_again(self, now_ms: int) -> None:
        if self in self._server.parked:
            answer = self._server.assemble(self._fetch)
            if self._server.is_news(answer, self._fetch):
                self.finish(answer)

    def on_expired(self, now_ms: int) -> None:
        self.finish(self._server.assemble(self._fetch))

    def drop(self) -> None:
        """The connection is gone: nobody waits any more."""
        self._server.unpark(self)

    def finish(self, answer: PartitionData) -> None:
        self._server.unpark(self)
        self._server.answer(self._request, answer)

    def refuse(self) -> None:
        self.finish(self._server.assemble(self._fetch))


class ReplicaObserver(Protocol):
    """Hears what replicas of the metadata log say by their fetches."""

    def on_metadata_fetched(self, broker_id: int, *, connection: int | None) -> None: ...

    def on_metadata_read(self, broker_id: int, end_offset: int) -> None: ...


class MetadataFetchServer:
    """Invariant: only a leader has parked fetches."""

    def __init__(self, port: MetadataPort, metadata: MetadataLog, quorum: MetadataQuorum) -> None:
        self._port = port
        self._metadata = metadata
        self._quorum = quorum
        self.parked: dict[ParkedMetadataFetch, None] = {}
        self.observers: list[ReplicaObserver] = []
        self.directory_ids: dict[int, bytes] = {}
        """The directory that each replica keeps its copy in, as it says itself."""

    def handle(self, request: Request, now_ms: int) -> None:
        """A Fetch of the metadata log, from a voter, an observer or a curious client."""
        fetch = request.decode(FetchRequest)
        if fetch.cluster_id not in (None, self._metadata.cluster_id):
            request.answer(FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
            return
        if len(fetch.topics) != 1 or len(fetch.topics[0].partitions) != 1:
            request.answer(FetchResponse(error_code=ErrorCode.INVALID_REQUEST))
            return
        answer = self.assemble(fetch)
        if answer.error_code == ErrorCode.NONE and not _is_elsewhere(answer):
            self._note_progress(fetch, request.connection_id, now_ms)
            answer = self.assemble(fetch)
        if fetch.max_wait_ms <= 0 or self.is_news(answer, fetch):
            self.answer(request, answer)
            return
        parked = ParkedMetadataFetch(self, request, fetch, fetch.max_wait_ms)
        self.parked[parked] = None
        request.parked = parked
        self._port.timeouts.add(parked, timeout_ms=parked.timeout_ms, now_ms=now_ms)

    def _note_progress(self, fetch: FetchRequest, connection: int | None, now_ms: int) -> None:
        """Its offset is what a replica has, and voters have it durably."""
        machine = self._quorum.machine
        replica_id = _replica_of(fetch)
        if replica_id is not None and replica_id != machine.node_id:
            follower = fetch.topics[0].partitions[0]
            self.directory_ids[replica_id] = follower.replica_directory_id
            self._quorum.step(machine.on_fetch(replica_id, follower.fetch_offset, now_ms), now_ms)
            published = machine.published_high_watermark
            says_so = published is not None and follower.high_watermark <= published
            for observer in self.observers:
                observer.on_metadata_fetched(replica_id, connection=connection)
                if says_so:  # otherwise the replica does not know a high watermark
                    observer.on_metadata_read(replica_id, follower.high_watermark)

    def on_moved(self) -> None:
        """The log or the high watermark moved: look again when the tick ends."""
        self._port.on_data(self.parked)

    def on_leadership_lost(self) -> None:
        for parked in list(self.parked):
            parked.refuse()

    def unpark(self, parked: ParkedMetadataFetch) -> None:
        self.parked.pop(parked, None)
        self._port.timeouts.discard(parked, timeout_ms=parked.timeout_ms)

    # The answer

    def is_news(self, answer: PartitionData, fetch: FetchRequest) -> bool:
        known = fetch.topics[0].partitions[0].high_watermark
        return (
            answer.error_code != ErrorCode.NONE
            or bool(answer.records)
            or _is_elsewhere(answer)
            or answer.high_watermark > known
        )

    def assemble(self, fetch: FetchRequest) -> PartitionData:
        follower = fetch.topics[0].partitions[0]
        quorum = self._quorum
        machine, log = quorum.machine, self._metadata.log
        answer = PartitionData(
            partition_index=follower.partition,
            error_code=self._refuse(follower, fetch),
            high_watermark=UNKNOWN_OFFSET,
            log_start_offset=log.log_start_offset,
            current_leader=LeaderIdAndEpoch(
                leader_id=NO_NODE if machine.leader_id is None else machine.leader_id,
                leader_epoch=machine.quorum_epoch,
            ),
        )
        if answer.error_code != ErrorCode.NONE:
            return answer
        published = machine.published_high_watermark
        answer.high_watermark = UNKNOWN_OFFSET if published is None else published
        snapshots = self._metadata.snapshots
        verdict = judge_fetch(
            LogPosition(follower.last_fetched_epoch, follower.fetch_offset),
            quorum.log_view,
            oldest_snapshot=snapshots.oldest,
            newest_snapshot=snapshots.newest,
        )
        if isinstance(verdict, Diverged):
            answer.diverging_epoch = EpochEndOffset(
                epoch=verdict.at.quorum_epoch, end_offset=verdict.at.end_offset
            )
        elif isinstance(verdict, NeedsSnapshot):
            answer.snapshot_id = SnapshotId(
                end_offset=verdict.snapshot.end_offset, epoch=verdict.snapshot.quorum_epoch
            )
        else:
            self._read(answer, follower, fetch.max_bytes)
        return answer

    def _read(self, answer: PartitionData, follower: FetchPartition, bytes_max: int) -> None:
        log = self._metadata.log
        try:
            found = log.read(
                follower.fetch_offset,
                bytes_max=max(0, min(bytes_max, follower.partition_max_bytes)),
                end_offset=log.log_end_offset,
            )
            answer.records = None if found is None else read_slice(found)
        except DiskError:
            self._port.on_log_failed(log)
            answer.error_code = ErrorCode.KAFKA_STORAGE_ERROR

    def _refuse(self, follower: FetchPartition, fetch: FetchRequest) -> ErrorCode:
        if (
            fetch.max_wait_ms < 0
            or follower.fetch_offset < 0
            or follower.last_fetched_epoch < 0
            or follower.last_fetched_epoch > follower.current_leader_epoch
        ):
            return ErrorCode.INVALID_REQUEST
        return self._quorum.refuse_as_leader(follower.current_leader_epoch)

    def answer(self, request: Request, answer: PartitionData) -> None:
        by_name = request.version < 13
        topic = FetchableTopicResponse(partitions=[answer])
        if by_name:
            topic.topic = METADATA_TOPIC
        else:
            topic.topic_id = METADATA_TOPIC_ID
        response = FetchResponse(responses=[topic])
        leader = self._quorum.addresses.get(answer.current_leader.leader_id)
        if leader is not None and request.version >= 16:
            response.node_endpoints = [
                NodeEndpoint(node_id=leader.node_id, host=leader.host, port=leader.port)
            ]
        request.answer(response)


def _is_elsewhere(answer: PartitionData) -> bool:
    """The replica must first truncate its log, or take a snapshot."""
    return answer.diverging_epoch.epoch >= 0 or answer.snapshot_id.epoch >= 0


def _replica_of(fetch: FetchRequest) -> int | None:
    replica_id = max(fetch.replica_id, fetch.replica_state.replica_id)
    return None if replica_id < 0 else replica_id
