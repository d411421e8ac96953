"""In-sync sets on their way to the controller: one request at a time, with all that is proposed.

A leader proposes (core/replication), the controller decides, and everyone reads the metadata log.
The answer may come before the metadata does; the partition epoch says which of them is newer.
"""

from __future__ import annotations

from collections.abc import Callable

from tidelog.core.model.alarms import Alarm, Alarms
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.trace import Trace
from tidelog.core.node.controller.controller_channel import ControllerChannel
from tidelog.core.node.replicas.hosted_partitions import HostedPartitions
from tidelog.core.replication import events
from tidelog.core.replication.in_sync import Proposal
from tidelog.core.replication.partition import Partition
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.messages.api_56_alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartition,
    AlterPartitionRequestTopic,
    AlterPartitionResponse,
    AlterPartitionResponsePartition,
    BrokerState,
)
from tidelog.core.wire.schema import Message
from tidelog.core.wire.sentinels import UNKNOWN_BROKER_EPOCH

VERSION = 3
RETRY_MS = 50

_NOT_APPLIED = frozenset({ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED})
"""The controller knows our state and surely did not do it: back to what is committed."""

_OUTDATED = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)
"""The metadata will say more; until then the larger set counts, and nothing else is proposed."""


class IsrChanges:
    """Invariant: whatever is wanted is asked for again until it is decided or void."""

    def __init__(
        self,
        *,
        node_id: int,
        lag_ms_max: int,
        partitions: HostedPartitions,
        alarms: Alarms,
        trace: Trace,
        channel: ControllerChannel,
        broker_epoch: Callable[[], int | None],
    ) -> None:
        self._node_id = node_id
        self._interval_ms = max(1, lag_ms_max // 2)
        self._partitions = partitions
        self._alarms = alarms
        self._trace = trace
        self._channel = channel
        self._broker_epoch = broker_epoch
        self.wanted: dict[Partition, Proposal] = {}
        self._is_asking = False
        self._retry: Alarm | None = None

    def start(self, now_ms: int) -> None:
        """From now on look for slow followers, every half of the time that they are given."""
        self._alarms.at(now_ms + self._interval_ms, self._look_for_slow_followers)

    def propose(self, partition: Partition, proposal: Proposal) -> None:
        """Ask the controller at the end of the tick."""
        self.wanted[partition] = proposal
        self._trace.emit(
            events.IsrProposed(
                partition=str(partition.topic_partition),
                broker_id=partition.node_id,
                leader_epoch=proposal.leader_epoch,
                before=partition.isr,
                isr=proposal.isr,
                high_watermark=partition.high_watermark,
                log_end_offset=partition.log.log_end_offset,
            )
        )

    def consider(self, partition: Partition, now_ms: int) -> None:
        """Something that kept a follower out of the set may be over."""
        if len(partition.isr) < len(partition.replicas):
            proposal = partition.propose_growth(now_ms)
            if proposal is not None:
                self.propose(partition, proposal)

    def settle(self, now_ms: int) -> None:
        """At the end of each tick: ask, unless an answer or a pause is awaited."""
        if self.wanted and not self._is_asking and self._retry is None:
            self._ask(now_ms)

    def _look_for_slow_followers(self, now_ms: int) -> None:
        for partition in self._partitions:
            leadership = partition.leadership
            if leadership is None or not leadership.followers or partition.log.failed is not None:
                continue
            proposal = partition.propose_shrinking(now_ms)
            if proposal is not None:
                self.propose(partition, proposal)
            # Time alone may move the high watermark: it no longer waits for who was about to join.
            self._partitions.touch(partition)
        self.start(now_ms)

    def _ask(self, now_ms: int) -> None:
        self.wanted = {
            partition: proposal
            for partition, proposal in self.wanted.items()
            if partition.is_pending(proposal)
        }
        broker_epoch = self._broker_epoch()
        if not self.wanted:
            return
        if broker_epoch is None:
            self._pause(now_ms)
            return
        proposed = dict(self.wanted)
        self._is_asking = True

        def then(answer: Message | NoAnswer, now_ms: int) -> None:
            self._is_asking = False
            if not isinstance(answer, AlterPartitionResponse) or answer.error_code:
                self._pause(now_ms)
            else:
                self._on_answer(answer, proposed, now_ms)

        request = AlterPartitionRequest(
            broker_id=self._node_id,
            broker_epoch=broker_epoch,
            topics=self._topics(proposed, broker_epoch),
        )
        self._channel.ask(request, VERSION, then, now_ms=now_ms)

    def _topics(
        self, proposed: dict[Partition, Proposal], broker_epoch: int
    ) -> list[AlterPartitionRequestTopic]:
        topics: dict[bytes, AlterPartitionRequestTopic] = {}
        for partition, proposal in proposed.items():
            topic = topics.get(partition.topic_id)
            if topic is None:
                topic = AlterPartitionRequestTopic(topic_id=partition.topic_id, partitions=[])
                topics[partition.topic_id] = topic
            topic.partitions.append(self._alter_partition(partition, proposal, broker_epoch))
        return list(topics.values())

    def _alter_partition(
        self, partition: Partition, proposal: Proposal, own_broker_epoch: int
    ) -> AlterPartitionRequestPartition:
        assert partition.leadership is not None, "void proposals are left out"
        members = []
        for broker_id, broker_epoch in partition.leadership.proposed_by:
            if broker_id == partition.node_id:
                broker_epoch = own_broker_epoch
            if broker_epoch is None:
                broker_epoch = UNKNOWN_BROKER_EPOCH
            members.append(BrokerState(broker_id=broker_id, broker_epoch=broker_epoch))
        return AlterPartitionRequestPartition(
            partition_index=partition.topic_partition.index,
            leader_epoch=proposal.leader_epoch,
            new_isr_with_epochs=members,
            partition_epoch=proposal.partition_epoch,
        )

    def _on_answer(
        self, answer: AlterPartitionResponse, proposed: dict[Partition, Proposal], now_ms: int
    ) -> None:
        decided = {
            (topic.topic_id, each.partition_index): each
            for topic in answer.topics
            for each in topic.partitions
        }
        for partition, proposal in proposed.items():
            verdict = decided.get((partition.topic_id, partition.topic_partition.index))
            if verdict is None or self._is_to_be_repeated(partition, proposal, verdict, now_ms):
                continue
            if self.wanted.get(partition) is proposal:
                del self.wanted[partition]
        if any(self.wanted.get(partition) is proposal for partition, proposal in proposed.items()):
            self._pause(now_ms)

    def _is_to_be_repeated(
        self,
        partition: Partition,
        proposal: Proposal,
        verdict: AlterPartitionResponsePartition,
        now_ms: int,
    ) -> bool:
        if not partition.is_pending(proposal):
            return False  # the metadata was faster than the answer
        code = verdict.error_code
        if code == ErrorCode.NONE and not set(partition.isr) <= set(verdict.isr):
            # 1. The minimum becomes 2, then our set {1, 2} becomes {1}: 2 stays eligible.
            # 2. We hear that 2 has left, but not yet of the minimum, and commit alone.
            # 3. We die, 2 is elected. So whoever leaves counts until the metadata says all this.
            return False
        if code == ErrorCode.NONE:
            partition.on_isr_committed(
                tuple(verdict.isr),
                leader_epoch=verdict.leader_epoch,
                partition_epoch=verdict.partition_epoch,
            )
            self.consider(partition, now_ms)
            self._partitions.touch(partition)
            return False
        self._trace.emit(
            events.IsrRefused(
                partition=str(partition.topic_partition),
                broker_id=partition.node_id,
                leader_epoch=proposal.leader_epoch,
                isr=proposal.isr,
                error=ErrorCode(code).name,
            )
        )
        if code in _NOT_APPLIED:
            partition.withdraw_proposal()
            self._partitions.touch(partition)
            return False
        return code not in _OUTDATED

    def _pause(self, now_ms: int) -> None:
        """Ask again soon: another controller may be there by then."""

        def ask_again(now_ms: int) -> None:
            self._retry = None
            self.settle(now_ms)

        if self._retry is None:
            self._retry = self._alarms.at(now_ms + RETRY_MS, ask_again)

    def check(self) -> None:
        """At the end of a tick: what is wanted is under way, or will be asked for again."""
        assert not self.wanted or self._is_asking or self._retry is not None, "forgotten proposals"
        assert self._retry is None or self._retry.is_pending, "nobody asks again"
        for partition, proposal in self.wanted.items():
            if partition.is_pending(proposal):
                assert proposal.leader_epoch == partition.leader_epoch, partition.topic_partition
                assert partition.node_id in proposal.isr, partition.topic_partition
