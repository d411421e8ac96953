"""Clients of group coordinators: who finds one, asks it, and goes on looking when it is gone.

They send wire requests and take no part in a group: committers of a group without members, a reader
of committed offsets, and an administrator. Members are in groups_members.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from tidelog.core.wire.messages.api_09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from tidelog.core.wire.messages.api_10_find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tidelog.core.wire.messages.api_42_delete_groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from tidelog.core.wire.messages.api_47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from tidelog.core.wire.schema import Message
from tidelog.judge.groups.group_history import (
    NO_GENERATION,
    OffsetCommitted,
    OffsetFetched,
    OffsetsRemoved,
    RequestUnanswered,
)
from tidelog.judge.history import CallOutcome
from tidelog.worlds.simulator.client import CallFailed
from tidelog.worlds.simulator.client import Outcome as Reply
from tidelog.worlds.simulator.profiles.groups_context import GroupsContext, outcome_of
from tidelog.worlds.simulator.profiles.groups_plan import SOLO
from tidelog.worlds.simulator.profiles.wire_clients import BrokerClients
from tidelog.worlds.simulator.steps import PlanStep

FIND_VERSION = 4
COMMIT_VERSION = 9
FETCH_VERSION = 8
DELETE_VERSION = 2
TIMEOUT_MS = 2_500
"""Longer than any answer waits for its commit."""
ELSEWHERE_CHANCE = 0.2
WRONG_COORDINATOR = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})


class CoordinatorAnswer(NamedTuple):
    """An answer, or none, and under which circumstances it came."""

    reply: Reply
    invoked_us: int
    from_deposed: bool


class Committer(NamedTuple):
    """As whom an offset is committed."""

    member: str = ""
    instance: str | None = None
    generation: int = NO_GENERATION


class CoordinatorClient(BrokerClients):
    """A client that knows, or seeks, the coordinator of one group."""

    def __init__(self, context: GroupsContext, name: str, group: str) -> None:
        super().__init__(context, name)
        self.groups = context
        self.group = group
        self.coordinator: int | None = None
        self._is_finding = False
        self._offsets: dict[str, int] = {}

    def find_coordinator(self) -> None:
        """Ask any broker."""
        if self._is_finding:
            return
        self._is_finding = True

        def on_answer(answer: Reply) -> None:
            self._is_finding = False
            if isinstance(answer, FindCoordinatorResponse):
                found = answer.coordinators[0]
                if found.error_code == ErrorCode.NONE:
                    self.coordinator = found.node_id

        request = FindCoordinatorRequest(key_type=0, coordinator_keys=[self.group])
        self.ask(request, FIND_VERSION, on_answer, timeout_ms=TIMEOUT_MS + 1_000)

    def ask_coordinator(
        self,
        request: Message,
        version: int,
        then: Callable[[CoordinatorAnswer], None],
        *,
        timeout_ms: int = TIMEOUT_MS,
        at: int | None = None,
    ) -> None:
        """Only when it is known, or a broker is named; without an answer it is looked for again."""
        broker = self.coordinator if at is None else at
        assert broker is not None, "find it first"
        invoked_us = self.groups.world.now_us
        is_deposed = self.deposition_watch(broker)

        def on_answer(reply: Reply) -> None:
            if isinstance(reply, CallFailed):
                self.coordinator = None
                if reply.reason == "timed out" and self.groups.is_healed:
                    self._note_unanswered(request, broker, invoked_us)
            then(CoordinatorAnswer(reply, invoked_us, is_deposed()))

        self.ask(request, version, on_answer, broker=broker, timeout_ms=timeout_ms)

    def deposition_watch(self, broker: int) -> Callable[[], bool]:
        """Whether, from now on, the broker was at some time not the newest leader, unknowingly."""
        newest = self.groups.coordinator_of(self.group)
        own = self.groups.coordinator_known_to(broker, self.group)

        def is_deposed() -> bool:
            now = self.groups.coordinator_of(self.group)
            # Whoever knew all the time that another leads has no excuse.
            own_now = self.groups.coordinator_known_to(broker, self.group)
            knew = own == own_now and own.leader != broker
            return (newest != now or now.leader != broker) and not knew

        return is_deposed

    def look_again(self, error: int) -> None:
        if error in WRONG_COORDINATOR:
            self.coordinator = None

    def commit(
        self, partition: str, committer: Committer, then: Callable[[ErrorCode | None], None]
    ) -> None:
        """Commit the next offset of a partition; `then` gets the error, None if there was none."""
        offset = self._offsets[partition] = self._offsets.get(partition, 0) + 1
        now_us = self.groups.world.now_us
        begun = OffsetCommitted(
            at_us=now_us,
            invoked_us=now_us,
            group=self.group,
            partition=partition,
            token=self.groups.new_token(self.name),
            offset=offset,
            outcome=CallOutcome.UNKNOWN,
            member=committer.member,
            instance=committer.instance,
            generation=committer.generation,
        )
        self.groups.begin_commit(begun)

        def on_answer(answer: CoordinatorAnswer) -> None:
            error: ErrorCode | CallFailed
            if isinstance(answer.reply, OffsetCommitResponse):
                error = ErrorCode(answer.reply.topics[0].partitions[0].error_code)
                self.look_again(error)
            else:
                assert isinstance(answer.reply, CallFailed)
                error = answer.reply
            self.groups.record_group(
                replace(
                    begun,
                    at_us=self.groups.world.now_us,
                    outcome=outcome_of(error),
                    error=error.name if isinstance(error, ErrorCode) else error.reason,
                )
            )
            then(error if isinstance(error, ErrorCode) else None)

        self.ask_coordinator(_commit_request(begun), COMMIT_VERSION, on_answer)

    def _note_unanswered(self, request: Message, broker: int, invoked_us: int) -> None:
        self.groups.record_group(
            RequestUnanswered(
                at_us=self.groups.world.now_us,
                invoked_us=invoked_us,
                client=self.name,
                request=type(request).__name__,
                broker=broker,
            )
        )


class SoloCommitter(CoordinatorClient):
    """Commits for a group without members, as simple consumers do; several at a time."""

    def __init__(self, context: GroupsContext, name: str) -> None:
        super().__init__(context, name, SOLO)

    def start(self) -> None:
        self.groups.later(self.random, 30, 160, self._go_on)

    def _go_on(self) -> None:
        if self.groups.is_over:
            return
        if self.coordinator is None:
            self.find_coordinator()
        else:
            for _ in range(self.random.choice((1, 1, 2))):
                if self.coordinator is not None:
                    partition = self.random.choice(self.groups.subscribed)
                    self.commit(partition, Committer(), lambda _error: None)
        self.start()


class OffsetReader(CoordinatorClient):
    """Fetches the offsets of one group again and again."""

    def __init__(self, context: GroupsContext, group: str) -> None:
        super().__init__(context, f"reader-of-{group}", group)

    def start(self) -> None:
        self.groups.later(self.random, 20, 120, self._go_on)

    def _go_on(self) -> None:
        if self.groups.is_over:
            return
        if self.coordinator is None:
            self.find_coordinator()
        elif self.in_flight < 3:
            self.fetch()
        self.start()

    def fetch(self, then: Callable[[bool], None] = lambda _is_answered: None) -> None:
        """All partitions at once; now and then from a broker that may have been the coordinator."""
        topic = self.groups.groups.topic
        request = OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group_id=self.group,
                    topics=[
                        OffsetFetchRequestTopics(
                            name=topic.name, partition_indexes=list(range(topic.partitions))
                        )
                    ],
                )
            ]
        )

        def on_answer(answer: CoordinatorAnswer) -> None:
            is_answered = False
            if isinstance(answer.reply, OffsetFetchResponse):
                group = answer.reply.groups[0]
                self.look_again(group.error_code)
                is_answered = group.error_code == ErrorCode.NONE
                if is_answered:
                    self._record(answer, answer.reply)
            then(is_answered)

        at = None
        if not self.groups.is_over and self.random.random() < ELSEWHERE_CHANCE:
            at = self.random.choice(self.groups.cluster.node_ids)
        self.ask_coordinator(request, FETCH_VERSION, on_answer, at=at)

    def _record(self, answer: CoordinatorAnswer, response: OffsetFetchResponse) -> None:
        for topic in response.groups[0].topics:
            for partition in topic.partitions:
                assert partition.error_code == ErrorCode.NONE, partition
                has_offset = partition.committed_offset >= 0
                self.groups.record_group(
                    OffsetFetched(
                        at_us=self.groups.world.now_us,
                        invoked_us=answer.invoked_us,
                        group=self.group,
                        partition=f"{topic.name}-{partition.partition_index}",
                        token=partition.metadata if has_offset else None,
                        offset=partition.committed_offset,
                        reader=self.name,
                        from_deposed=answer.from_deposed,
                    )
                )


class GroupAdmin:
    """Deletes groups and offsets."""

    def __init__(self, context: GroupsContext) -> None:
        self._context = context
        self._clients: dict[str, CoordinatorClient] = {}
        self._verbs: Mapping[str, Callable[[str], None]] = {
            "delete group": self._delete_group,
            "delete offset": self._delete_offset,
        }

    @property
    def clients(self) -> list[CoordinatorClient]:
        return list(self._clients.values())

    def knows(self, step: PlanStep) -> bool:
        return step.verb in self._verbs

    def act(self, step: PlanStep) -> None:
        """When the coordinator is known; otherwise it is looked for, and tried once more."""
        group = step.who[0]
        client = self._clients.get(group)
        if client is None:
            client = CoordinatorClient(self._context, f"admin-of-{group}", group)
            self._clients[group] = client
        if client.coordinator is None:
            client.find_coordinator()
            self._context.world.after(60_000, lambda: self._try(step, client))
        else:
            self._try(step, client)

    def _try(self, step: PlanStep, client: CoordinatorClient) -> None:
        if client.coordinator is not None and not self._context.is_over:
            self._verbs[step.verb](step.who[0])

    def _delete_group(self, group: str) -> None:
        client = self._clients[group]

        def on_answer(answer: CoordinatorAnswer) -> None:
            reply = answer.reply
            code = reply.results[0].error_code if isinstance(reply, DeleteGroupsResponse) else None
            self._record(client, answer, None, code)

        client.ask_coordinator(DeleteGroupsRequest(groups_names=[group]), DELETE_VERSION, on_answer)

    def _delete_offset(self, group: str) -> None:
        client = self._clients[group]
        partition = client.random.choice(self._context.subscribed)
        topic, _, index = partition.rpartition("-")
        request = OffsetDeleteRequest(
            group_id=group,
            topics=[
                OffsetDeleteRequestTopic(
                    name=topic,
                    partitions=[OffsetDeleteRequestPartition(partition_index=int(index))],
                )
            ],
        )

        def on_answer(answer: CoordinatorAnswer) -> None:
            reply, code = answer.reply, None
            if isinstance(reply, OffsetDeleteResponse):
                code = reply.error_code
                if code == ErrorCode.NONE:
                    code = reply.topics[0].partitions[0].error_code
            self._record(client, answer, partition, code)

        client.ask_coordinator(request, 0, on_answer)

    def _record(
        self,
        client: CoordinatorClient,
        answer: CoordinatorAnswer,
        partition: str | None,
        code: int | None,
    ) -> None:
        outcome = CallOutcome.UNKNOWN
        if code is not None:
            client.look_again(code)
            outcome = outcome_of(ErrorCode(code))
        elif isinstance(answer.reply, CallFailed):
            outcome = outcome_of(answer.reply)
        self._context.record_group(
            OffsetsRemoved(
                at_us=self._context.world.now_us,
                invoked_us=answer.invoked_us,
                group=client.group,
                partition=partition,
                outcome=outcome,
            )
        )


def _commit_request(commit: OffsetCommitted) -> OffsetCommitRequest:
    topic, _, index = commit.partition.rpartition("-")
    offset = OffsetCommitRequestPartition(
        partition_index=int(index),
        committed_offset=commit.offset,
        committed_metadata=commit.token,
    )
    return OffsetCommitRequest(
        group_id=commit.group,
        generation_id_or_member_epoch=commit.generation,
        member_id=commit.member,
        group_instance_id=commit.instance,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[offset])],
    )
