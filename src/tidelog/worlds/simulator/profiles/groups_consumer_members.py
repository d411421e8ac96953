"""A member of a KIP-848 group: the client room's own machine, on a host whose processes die.

What it sends and is answered goes into the history. Its commits are single requests under the epoch
that the machine has, since a machine that sends a commit again makes two of one; now and then one
comes under the epoch before, as from a program that was paused between two instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tidelog.client.client import Client
from tidelog.client.group.config import group_config
from tidelog.client.group.consumer_group_member import ConsumerGroupMember
from tidelog.client.group.member import MembershipState
from tidelog.client.group.offset_requests import OffsetAndMetadata
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.messages.api_68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatTopicPartitions,
)
from tidelog.core.wire.schema import Message
from tidelog.judge.groups.group_history import MemberHeartbeat
from tidelog.worlds.simulator.client_host import ClientHost
from tidelog.worlds.simulator.profiles.groups_clients import Committer, CoordinatorClient
from tidelog.worlds.simulator.profiles.groups_context import GroupsContext
from tidelog.worlds.simulator.profiles.groups_members import (
    LATE_COMMIT_CHANCE,
    TURN_MS,
    MemberPhase,
)
from tidelog.worlds.simulator.profiles.groups_plan import MemberPlan
from tidelog.worlds.simulator.profiles.writers import IMPATIENT

NO_TOPIC = "nowhere"


class ConsumerProtocolMember(CoordinatorClient):
    """One host, on which one process of the member after the other may run."""

    def __init__(self, context: GroupsContext, plan: MemberPlan) -> None:
        super().__init__(context, plan.name, plan.group)
        self.plan = plan
        self._life = 0
        self._host: ClientHost | None = None
        self._member: ConsumerGroupMember | None = None
        self._next_commit_us = 0
        self._before: tuple[Committer, tuple[str, ...]] = (Committer(), ())
        """As who it was before its epoch moved, with what it owned then."""

    # What it is

    @property
    def state(self) -> MemberPhase:
        if self._member is None:
            return MemberPhase.DOWN
        if self._member.state is MembershipState.STABLE:
            return MemberPhase.STABLE
        return MemberPhase.OUTSIDE

    @property
    def generation(self) -> int:
        return -1 if self._member is None else self._member.member_epoch

    @property
    def owned(self) -> tuple[str, ...]:
        return () if self._member is None else tuple(map(str, self._member.owned))

    # Processes

    def start(self) -> None:
        """A new process: it knows nothing."""
        if self._member is not None:
            return
        self._life += 1
        context, plan, life = self.groups, self.plan, self._life
        self._before = (Committer(), ())
        host = self._host = ClientHost(world=context.world, network=context.network, name=plan.name)
        config = group_config(
            {
                **IMPATIENT,
                "bootstrap.servers": context.cluster.bootstrap_servers,
                "group.id": plan.group,
                "group.instance.id": plan.instance or "",
                "group.protocol": "consumer",
                "group.remote.assignor": plan.remote_assignor,
                "max.poll.interval.ms": plan.rebalance_timeout_ms,
                "default.api.timeout.ms": plan.revocation_ms,
            }
        )
        random = context.world.random_for(f"{plan.name}/process {life}")
        client = Client(host, config.consumer.client, random=random, trace=host.trace)
        host.run(client)
        self._member = ConsumerGroupMember(client, config, [context.groups.topic.name], self)
        self._member.on_heartbeat_sent = self._on_heartbeat_sent
        host.do(lambda now_ms: None)
        self._turn(life)

    def kill(self) -> None:
        """It says no farewell."""
        self._life += 1
        self._member = None
        self.disconnect()
        if self._host is not None:
            self._host.kill()
            self._host = None

    def leave(self) -> None:
        """It says farewell, and has a moment to be heard."""
        if self._member is None or self._host is None:
            return
        host, member, life = self._host, self._member, self._life
        host.do(member.leave)

        def end() -> None:
            if life == self._life:
                self.kill()

        self.groups.world.after(50_000, end)

    def reconnect(self) -> None:
        """The machine finds its connections anew by itself."""
        self.disconnect()

    def _turn(self, life: int) -> None:
        member = self._member
        if life != self._life or member is None:
            return
        if member.is_over and member.state is MembershipState.FAILED:
            # As a supervisor does: the instance id may still be another process's.
            self.kill()
            life = self._life
            self.groups.later(self.random, 100, 200, lambda: self._restart(life))
            return
        self.coordinator = member.coordinator_id
        is_due = self.groups.world.now_us >= self._next_commit_us
        if is_due and not self.groups.is_over and self.coordinator is not None:
            self._next_commit_us = self.groups.world.now_us + self.plan.commit_interval_ms * 1_000
            self._commit_owned(member)
        self.groups.later(self.random, *TURN_MS, lambda: self._turn(life))

    def _restart(self, life: int) -> None:
        """Not if it was killed meanwhile, perhaps for good."""
        if life == self._life:
            self.start()

    def _commit_owned(self, member: ConsumerGroupMember) -> None:
        identity = member.identity
        if identity is None:
            return
        now = Committer(identity.member_id, self.plan.instance, identity.generation_id)
        before, had = self._before
        is_late = 0 < before.generation != now.generation
        if is_late and self.random.random() < LATE_COMMIT_CHANCE:
            for partition in had:
                self._commit(partition, before)
        self._before = (now, self.owned)
        for partition in self.owned:
            self._commit(partition, now)

    def _commit(self, partition: str, committer: Committer) -> None:
        if self.coordinator is not None:
            self.commit(partition, committer, lambda _error: None)

    # What the machine tells

    def on_assigned(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | None], now_ms: int
    ) -> None:
        """It is in the history already, as the answer to a heartbeat."""

    def on_revoked(self, partitions: Sequence[TopicPartition], now_ms: int) -> None:
        """Its program takes a while to finish: a commit for a topic that does not exist is tried
        until its time is over, and until then nothing is released."""
        if self._member is not None:
            offsets = {TopicPartition(NO_TOPIC, 0): OffsetAndMetadata(0)}
            self._member.commit(offsets, lambda _outcome, _now_ms: None, now_ms=now_ms)

    def on_lost(self, partitions: Sequence[TopicPartition], now_ms: int) -> None:
        """The next process, or another member, reads on."""

    def _on_heartbeat_sent(
        self, request: ConsumerGroupHeartbeatRequest, broker: int
    ) -> Callable[[Message | NoAnswer], None]:
        invoked_us = self.groups.world.now_us
        is_deposed = self.deposition_watch(broker)

        def on_answer(answer: Message | NoAnswer) -> None:
            member_epoch, assigned, member = None, None, request.member_id
            error: str | None = "no answer"
            if isinstance(answer, ConsumerGroupHeartbeatResponse):
                code = ErrorCode.from_wire(answer.error_code)
                error = None if code is ErrorCode.NONE else code.name
                if error is None:
                    member_epoch, member = answer.member_epoch, answer.member_id or member
                    if answer.assignment is not None:
                        assigned = self._names(answer.assignment.topic_partitions)
            owned = request.topic_partitions
            self.groups.record_group(
                MemberHeartbeat(
                    at_us=self.groups.world.now_us,
                    invoked_us=invoked_us,
                    group=self.group,
                    member=member,
                    sent_epoch=request.member_epoch,
                    owned=None if owned is None else self._names(owned),
                    member_epoch=member_epoch,
                    assigned=assigned,
                    error=error,
                    from_deposed=is_deposed(),
                )
            )

        return on_answer

    def _names(self, topics: Sequence[ConsumerGroupHeartbeatTopicPartitions]) -> tuple[str, ...]:
        name = self.groups.groups.topic.name
        return tuple(f"{name}-{index}" for topic in topics for index in topic.partitions)
