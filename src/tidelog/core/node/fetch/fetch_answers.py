"""Assembling a Fetch answer: what is readable for whom, and waiting until there is enough of it."""

from __future__ import annotations

from typing import cast

from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.connections.request import Request
from tidelog.core.node.fetch.fetch_refusals import answer_error
from tidelog.core.node.fetch.fetch_sessions import FetchHost, FetchSession, SessionPartition
from tidelog.core.node.ports import Part
from tidelog.core.node.replicas.partition_lookup import (
    endpoints_of,
    leader_of,
    refuse_unhosted,
)
from tidelog.core.replication.partition import Partition
from tidelog.core.storage.disk import DiskError
from tidelog.core.storage.log import OffsetOutOfRange
from tidelog.core.wire.fast_fields import Endpoint, Topic
from tidelog.core.wire.fetch_fast import FetchCall, FetchPartitionAnswer, encode_fetch_answer
from tidelog.core.wire.record_batch import CorruptBatch
from tidelog.core.wire.sentinels import NO_NODE

READ_COMMITTED = 1

_NONE = ErrorCode.NONE
Answers = list[tuple[SessionPartition, FetchPartitionAnswer]]


class ParkedFetch:
    """A fetch that waits for data; it lives on its session."""

    __slots__ = ("call", "is_dirty", "node", "request", "session", "timeout_ms")

    def __init__(
        self, node: FetchHost, request: Request, session: FetchSession, call: FetchCall
    ) -> None:
        self.node = node
        self.request = request
        self.session = session
        self.call = call
        self.timeout_ms = call.wait_ms_max
        self.is_dirty = False

    def on_data(self) -> None:
        """Something moved: look again at the end of the tick, once, however much moved."""
        if not self.is_dirty:
            self.is_dirty = True
            self.node.dirty_fetches.append(self)

    def look_again(self, now_ms: int) -> None:
        self.is_dirty = False
        if self.session.parked is not self:
            return
        answers, is_enough = assemble(self.node, self.session, self.call, None)
        if is_enough:
            self._finish(answers, now_ms)

    def on_expired(self, now_ms: int) -> None:
        if self.session.parked is self:
            answers, _ = assemble(self.node, self.session, self.call, None)
            self._finish(answers, now_ms)

    def supersede(self, now_ms: int) -> None:
        """The client sent the session's next request without waiting for this answer.

        A follower does so when it has another partition to ask for; it hears that nothing is new.
        """
        self._unpark()
        if self.session.is_follower and not self.session.sends_all:
            answer(self.node, self.request, self.session, [], now_ms)
        else:
            answer_error(self.request, ErrorCode.INVALID_FETCH_SESSION_EPOCH, self.session.id)

    def drop(self) -> None:
        """The connection is gone: nobody waits any more."""
        self._unpark()
        if not self.session.id:
            self.session.close()

    def _finish(self, answers: Answers, now_ms: int) -> None:
        self._unpark()
        answer(self.node, self.request, self.session, answers, now_ms)

    def _unpark(self) -> None:
        self.session.parked = None
        self.node.timeouts.discard(self, timeout_ms=self.timeout_ms)


def assemble(
    node: FetchHost, session: FetchSession, call: FetchCall, fetched_ms: int | None
) -> tuple[Answers, bool]:
    """What could be answered now, and whether that is worth answering at once.

    `asked_ms` is None when a parked request is looked at again: that is no new sign of life.
    """
    bytes_left = min(call.bytes_max, node.fetch_bytes_max)
    bytes_min = min(call.bytes_min, bytes_left)
    total_bytes, is_enough, readable = 0, False, 0
    if fetched_ms is not None and session.outsiders:
        session.pending.update(session.outsiders)
    answers: Answers = []
    for entry in list(session.pending):  # a disk that fails here makes other entries pending
        partition = node.find_partition(entry.topic, entry.call.partition_index)
        if partition is None:
            answers.append((entry, _unknown(node, entry)))
            continue
        readable += 1
        is_new = entry.partition is not partition
        entry.watch(partition)
        found = read(node, partition, entry, call, bytes_left=bytes_left, is_first=not total_bytes)
        answers.append((entry, found))
        total_bytes += found.records_bytes
        bytes_left -= min(bytes_left, found.records_bytes)
        if (
            found.error_code != _NONE
            or found.diverging is not None
            or found.preferred_read_replica >= 0
        ):
            is_enough = True
        elif call.replica_id >= 0:
            is_enough |= _is_urgent(node, entry, found)
            if fetched_ms is not None:
                _count(node, partition, entry, call, fetched_ms)
            elif is_new:
                # It came while the fetch waited, and its follower may never mention it again.
                session.outsiders[entry] = None
    return answers, is_enough or total_bytes >= bytes_min or not _waits(session, answers, readable)


def _count(
    node: FetchHost, partition: Partition, entry: SessionPartition, call: FetchCall, now_ms: int
) -> None:
    """A follower's fetch is its acknowledgement of everything before the offset."""
    wanted = entry.call
    proposal = partition.on_follower_fetch(
        call.replica_id,
        fetch_offset=wanted.fetch_offset,
        log_start_offset=wanted.log_start_offset,
        broker_epoch=None if call.replica_epoch < 0 else call.replica_epoch,
        session=entry.session,
        now_ms=now_ms,
    )
    if proposal is not None:
        node.isr_changes.propose(partition, proposal)
    if call.replica_id in partition.isr:
        entry.session.outsiders.pop(entry, None)
    else:
        entry.session.outsiders[entry] = None
    node.touch(partition)


def _is_urgent(node: FetchHost, entry: SessionPartition, found: FetchPartitionAnswer) -> bool:
    """Fences that a follower should not hear of only when its wait is over.

    A deletion is answered when all followers have done it, too. Their high watermark matters at
    once only if clients read there; otherwise it would double the number of fetches.
    """
    if entry.sent_log_start is None:
        return False
    if found.log_start_offset != entry.sent_log_start:
        return True
    return node.replica_selector is not None and found.high_watermark != entry.sent_high_watermark


def _waits(session: FetchSession, answers: Answers, readable: int) -> bool:
    """Waiting makes sense only if some partition exists whose data can arrive."""
    return readable > 0 or len(answers) < len(session.entries)


def read(
    node: FetchHost,
    partition: Partition,
    entry: SessionPartition,
    call: FetchCall,
    *,
    bytes_left: int,
    is_first: bool,
) -> FetchPartitionAnswer:
    """One partition's share of the answer."""
    wanted = entry.call
    is_follower = call.replica_id >= 0
    code = refuse(node, partition, entry, call)
    if code is not _NONE:
        return _error(wanted.partition_index, code, partition)
    log = partition.log
    fences = (log.high_watermark, log.last_stable_offset, log.log_start_offset)
    if call.rack_id and node.replica_selector is not None and not is_follower:
        replica = node.replica_selector.choose(partition, call.rack_id, wanted.fetch_offset)
        if replica is not None:
            return FetchPartitionAnswer(
                wanted.partition_index, 0, *fences, preferred_read_replica=replica
            )
    if wanted.last_fetched_epoch >= 0:
        diverging = _diverging(partition, wanted.last_fetched_epoch, wanted.fetch_offset)
        if isinstance(diverging, ErrorCode):
            return _error(wanted.partition_index, diverging, partition)
        if diverging is not None:
            return FetchPartitionAnswer(wanted.partition_index, 0, *fences, diverging=diverging)
    bytes_max = min(wanted.bytes_max, bytes_left)
    if bytes_max < 0:
        return _error(wanted.partition_index, ErrorCode.UNKNOWN_SERVER_ERROR, partition)
    is_committed = call.isolation_level == READ_COMMITTED and not is_follower
    fence = log.last_stable_offset if is_committed else log.high_watermark
    if is_follower:
        fence = log.log_end_offset
        held = node.held_replicas
        if held and (call.replica_id, partition.topic_partition) in held:
            return FetchPartitionAnswer(wanted.partition_index, 0, *fences)
    aborted = None
    try:
        found = log.read(
            wanted.fetch_offset, bytes_max=bytes_max, end_offset=fence, at_least_one=is_first
        )
        if is_committed:
            aborted = log.aborted_transactions(wanted.fetch_offset, fence) if found else []
    except (OffsetOutOfRange, CorruptBatch, DiskError) as error:
        return _error(wanted.partition_index, _unreadable(node, partition, error), partition)
    size_bytes = 0 if found is None else found.size_bytes
    return FetchPartitionAnswer(wanted.partition_index, 0, *fences, aborted, found, size_bytes)


def _unreadable(node: FetchHost, partition: Partition, error: Exception) -> ErrorCode:
    """Nothing there, bytes that went bad after they were written, or a disk that failed."""
    if isinstance(error, OffsetOutOfRange):
        return ErrorCode.OFFSET_OUT_OF_RANGE
    if isinstance(error, DiskError):
        partition.log.fail(error)
        node.on_log_failed(partition.log)
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.CORRUPT_MESSAGE


def refuse(
    node: FetchHost, partition: Partition, entry: SessionPartition, call: FetchCall
) -> ErrorCode:
    """The first reason not to read: another leader epoch, not the leader, not a replica.

    Clients that can be sent to a follower (those that send their rack) may read from one.
    """
    if partition.log.failed is not None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    claimed_leader_epoch = entry.call.current_leader_epoch
    code = partition.refuse_leader_epoch(None if claimed_leader_epoch < 0 else claimed_leader_epoch)
    if code is not _NONE:
        return code
    if call.replica_id < 0:
        if partition.is_leader or entry.session.may_read_from_followers:
            return _NONE
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if not partition.is_leader:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return _refuse_follower(node, partition, call, claimed_leader_epoch)


def _refuse_follower(
    node: FetchHost, partition: Partition, call: FetchCall, claimed_leader_epoch: int
) -> ErrorCode:
    leadership = partition.leadership
    assert leadership is not None, "only leaders are asked"
    if call.replica_id not in leadership.followers:
        # Its metadata or ours is older; in this leader epoch it can only be ours.
        if claimed_leader_epoch >= 0:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    broker = node.image.brokers.get(call.replica_id)
    if broker is not None and 0 <= call.replica_epoch < broker.broker_epoch:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER  # the broker's former self
    return _NONE


def _diverging(
    partition: Partition, last_fetched_epoch: int, fetch_offset: int
) -> tuple[int, int] | ErrorCode | None:
    """Where our log leaves the reader's, judged by the leader epoch of what it read last."""
    end = partition.leader_epoch_end(last_fetched_epoch)
    if end is None or fetch_offset < partition.log.log_start_offset:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    if end[0] < last_fetched_epoch or end[1] < fetch_offset:
        return end
    return None


def answer(
    node: FetchHost, request: Request, session: FetchSession, answers: Answers, now_ms: int
) -> None:
    """Send what was assembled; an incremental session leaves out what its client knows."""
    if session.wants_id:
        node.fetch_sessions.keep(session, now_ms)
    topics: list[tuple[Topic, list[FetchPartitionAnswer]]] = []
    for entry, found in answers:
        has_changed = session.sends_all or _has_changed(entry, found)
        if not _is_starved(session, entry, found):
            session.pending.pop(entry, None)
        if not has_changed:
            continue
        _remember(session, entry, found)
        if topics and topics[-1][0] == entry.topic:
            topics[-1][1].append(found)
        else:
            topics.append((entry.topic, [found]))
    parts = encode_fetch_answer(
        topics,
        request.version,
        prefix=request.header(),
        session_id=session.id,
        endpoints=() if session.is_follower else _endpoints(node, answers),
    )
    session.sends_all = False
    request.answer_parts(cast("list[Part]", parts))
    if not session.id:
        session.close()


def _has_changed(entry: SessionPartition, found: FetchPartitionAnswer) -> bool:
    return (
        found.records_bytes > 0
        or found.error_code != _NONE
        or found.diverging is not None
        or found.preferred_read_replica >= 0
        or found.high_watermark != entry.sent_high_watermark
        or found.log_start_offset != entry.sent_log_start
    )


def _is_starved(
    session: FetchSession, entry: SessionPartition, found: FetchPartitionAnswer
) -> bool:
    """There is data, but no room was left for it: it stays pending, before those that got some.

    A batch that is larger than the limits is given only to the first partition of an answer.
    """
    if found.error_code != _NONE or found.records_bytes or entry.partition is None:
        return False
    if found.diverging is not None or found.preferred_read_replica >= 0:
        return False
    log = entry.partition.log
    fence = log.log_end_offset if session.is_follower else log.high_watermark
    return entry.call.fetch_offset < fence


def _remember(session: FetchSession, entry: SessionPartition, found: FetchPartitionAnswer) -> None:
    """Errors and data that may have been cut short are looked at again next time, and so are those
    who were sent to another replica, should they come all the same."""
    entry.sent_high_watermark = found.high_watermark
    entry.sent_log_start = found.log_start_offset
    if found.error_code != _NONE or found.diverging is not None:
        entry.sent_high_watermark = None  # a follower that has to cut takes no fences
    if found.error_code != _NONE or found.records_bytes or found.preferred_read_replica >= 0:
        session.pending[entry] = None


def _endpoints(node: FetchHost, answers: Answers) -> list[Endpoint]:
    """Where the leaders are to which clients are sent: seldom any."""
    leaders = [found.current_leader[0] for _, found in answers if found.current_leader is not None]
    return endpoints_of(node, leaders) if leaders else []


def _unknown(node: FetchHost, entry: SessionPartition) -> FetchPartitionAnswer:
    """Not here: it never was, or a session still knows a topic that was deleted under it."""
    topic, index = entry.topic, entry.call.partition_index
    code = refuse_unhosted(node, topic, index)
    if code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        leader = leader_of(node, topic, index)
        return FetchPartitionAnswer(index, code, -1, -1, -1, None, current_leader=leader)
    if entry.partition is not None:
        if entry.partition.topic_partition.topic not in node.image.topics:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return FetchPartitionAnswer(index, code, -1, -1, -1, [])
        return FetchPartitionAnswer(index, ErrorCode.INCONSISTENT_TOPIC_ID, -1, -1, -1)
    return FetchPartitionAnswer(index, code, -1, -1, -1, [])


def _error(index: int, code: ErrorCode, partition: Partition) -> FetchPartitionAnswer:
    leader = None
    if code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
        leader_id = NO_NODE if partition.leader_id is None else partition.leader_id
        leader = (leader_id, partition.leader_epoch)
    return FetchPartitionAnswer(index, code, -1, -1, -1, None, current_leader=leader)
