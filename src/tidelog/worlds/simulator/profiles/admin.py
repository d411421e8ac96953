"""An administrator of a run: creates and deletes, elects and changes settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidelog.client.partition_requests import list_offsets_answer
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages.api_03_metadata import MetadataResponse
from tidelog.core.wire.messages.api_19_create_topics import CreateTopicsResponse
from tidelog.core.wire.messages.api_20_delete_topics import DeleteTopicsResponse
from tidelog.core.wire.messages.api_37_create_partitions import CreatePartitionsResponse
from tidelog.core.wire.messages.api_43_elect_leaders import ElectLeadersResponse
from tidelog.core.wire.messages.api_45_alter_partition_reassignments import (
    AlterPartitionReassignmentsResponse,
)
from tidelog.core.wire.sentinels import MAX_TIMESTAMP
from tidelog.judge.anomalies import UNEXPECTED_ANSWER
from tidelog.judge.history import CallOutcome, HeadDeleted, TopicRequested, TopicsListed
from tidelog.worlds.simulator import requests
from tidelog.worlds.simulator.client import CallFailed
from tidelog.worlds.simulator.client import Outcome as Reply
from tidelog.worlds.simulator.profiles.context import RunContext
from tidelog.worlds.simulator.profiles.plan import TopicPlan
from tidelog.worlds.simulator.profiles.wire_clients import (
    LIST_OFFSETS_VERSION,
    METADATA_VERSION,
    BrokerClients,
)
from tidelog.worlds.simulator.requests import TopicName
from tidelog.worlds.simulator.steps import PlanStep

CREATE_VERSION = 7
HALF_CHANCE = 0.6
SEARCH_REFUSED = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
    }
)
UNCERTAIN = frozenset(
    {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)
"""After these it is unknown whether the controller did it: a broker that forwards a request may
have done so twice, and got only the second reply."""


@dataclass(frozen=True, slots=True)
class AdminAction:
    """What an administrator requested, and its outcome."""

    what: str
    outcome: str


class WireAdmin(BrokerClients):
    """Each method sends one request, which is not repeated."""

    def __init__(self, context: RunContext) -> None:
        super().__init__(context, "admin")
        self._topic_ids: dict[str, bytes] = {}
        self._partitions: dict[str, int] = {}
        self._verbs: dict[str, Callable[[PlanStep], None]] = {
            "elect preferred": self._elect,
            "elect uncleanly": self._elect,
            "change minimum": self._set("min.insync.replicas"),
            "allow unclean": self._set("unclean.leader.election.enable"),
            "add partition": self._add_partition,
            "create topic": self._create_extra,
            "delete topic": self._delete_extra,
            "delete records": self._delete_records,
            "unregister": self._unregister,
            "search by time": self._search_by_time,
            "reassign": self._reassign,
            "cancel reassignment": self._reassign,
        }

    def knows(self, step: PlanStep) -> bool:
        return step.verb in self._verbs

    def act(self, step: PlanStep) -> None:
        self._verbs[step.verb](step)

    def know_topic(self, name: str, partitions: int) -> None:
        """A topic that the cluster itself creates: its leaders can be elected."""
        self._partitions[name] = partitions

    def create(self, plan: TopicPlan, then: Callable[[bool], None] | None = None) -> None:
        """Create a topic; `then` gets whether it is certainly there."""
        invoked_us = self.context.world.now_us
        request = requests.create_topic(
            plan.name,
            partitions=plan.partitions,
            replication_factor=plan.replication_factor,
            configs=plan.configs,
        )

        def on_answer(answer: Reply) -> None:
            outcome, topic_id = CallOutcome.UNKNOWN, None
            if isinstance(answer, CreateTopicsResponse):
                outcome = _outcome(answer.topics[0].error_code)
                if outcome is CallOutcome.OK:
                    topic_id = answer.topics[0].topic_id
                    self._topic_ids[plan.name] = topic_id
                    self._partitions[plan.name] = plan.partitions
                    self.context.add_topic(plan.name, topic_id, plan.partitions)
                    self._note_retention(plan)
            self._record_topic_call(plan.name, True, outcome, topic_id, invoked_us)
            if then is not None:
                then(outcome is CallOutcome.OK)

        self.ask(request, CREATE_VERSION, on_answer)

    def _note_retention(self, plan: TopicPlan) -> None:
        for index in range(plan.partitions if plan.has_retention else 0):
            self._record_head_deleted(TopicPartition(plan.name, index), None)

    def _record_head_deleted(
        self, topic_partition: TopicPartition, below_offset: int | None
    ) -> None:
        self.context.record(
            HeadDeleted(
                at_us=self.context.world.now_us,
                partition=self.context.name_of(topic_partition),
                below_offset=below_offset,
            ),
            count=0,
        )

    def list_topics(self, broker: int) -> None:
        invoked_us = self.context.world.now_us

        def on_answer(answer: Reply) -> None:
            if isinstance(answer, MetadataResponse):
                topics = tuple((str(each.name), each.topic_id.hex()) for each in answer.topics)
                self.context.record(
                    TopicsListed(
                        at_us=self.context.world.now_us, invoked_us=invoked_us, topics=topics
                    )
                )

        self.ask(requests.list_topics(), METADATA_VERSION, on_answer, broker=broker)

    # Requests of the plan.

    def _create_extra(self, step: PlanStep) -> None:
        """Its name may be that of a deleted topic, once nobody writes to that one any more."""
        name = step.who[0]
        exists = name in self._topic_ids and name not in self.context.deleted
        if exists or self.context.has_open_writes(name):
            return
        planned = {topic.name: topic for topic in self.context.plan.extra_topics}
        brokers = len(self.context.plan.brokers)
        small = TopicPlan(
            name=name,
            partitions=1,
            replication_factor=min(2, brokers),
            configs={"min.insync.replicas": "1"},
        )
        self.create(planned.get(name, small))

    def _delete_extra(self, step: PlanStep) -> None:
        extras = [
            name
            for name in self._topic_ids
            if name.startswith("extra") and name not in self.context.deleted
        ]
        if not extras:
            return
        name, invoked_us = extras[0], self.context.world.now_us
        topic_id = self._topic_ids[name]
        self.context.forget_topic(name)

        def on_answer(answer: Reply) -> None:
            outcome = CallOutcome.UNKNOWN
            if isinstance(answer, DeleteTopicsResponse):
                outcome = _outcome(answer.responses[0].error_code)
            self._record_topic_call(name, False, outcome, topic_id, invoked_us)

        topic = TopicName(name, topic_id)
        self.ask(requests.delete_topic(topic), requests.DELETE_BY_ID, on_answer)

    def _add_partition(self, step: PlanStep) -> None:
        name = step.who[0]
        count = self._partitions.get(name, 0) + 1
        if count == 1:
            return

        def on_answer(answer: Reply) -> None:
            if isinstance(answer, CreatePartitionsResponse):
                outcome = _outcome(answer.results[0].error_code)
                if outcome is CallOutcome.OK:
                    self._partitions[name] = count
                    topic_partition = TopicPartition(name, count - 1)
                    self.context.add_partition(topic_partition, self._topic_ids[name])
                self._emit_action(step, outcome.value)

        self.ask(requests.create_partitions(name, count), 3, on_answer)

    def _elect(self, step: PlanStep) -> None:
        name = step.who[0]
        indexes = list(range(self._partitions.get(name, 0)))
        is_unclean = step.verb == "elect uncleanly"
        request = requests.elect_leaders(name, indexes, unclean=is_unclean)
        partitions = [f"{name}-{index}" for index in indexes] if is_unclean else []
        for partition in partitions:
            self.context.checker.on_unclean_election_requested(partition)

        def on_answer(answer: Reply) -> None:
            if isinstance(answer, ElectLeadersResponse) and not _is_uncertain(answer):
                for partition in partitions:
                    self.context.checker.on_unclean_election_answered(partition)
            self._emit_action(step, _outcome_text(answer))

        self.ask(request, 2, on_answer)

    def _delete_records(self, step: PlanStep) -> None:
        """Half of what is committed goes from the head of a partition, or all of it."""
        name, _, index = step.who[0].rpartition("-")
        partition = self.context.checker.model.partitions.get(step.who[0])
        if partition is None or partition.leader is None:
            return
        end_offset = self.context.checker.model.committed_log(step.who[0]).end_offset
        offset = end_offset // 2 if self.random.random() < HALF_CHANCE else end_offset
        self._record_head_deleted(TopicPartition(name, int(index)), offset)
        topic = TopicName(name, self._topic_ids.get(name, b""))
        request = requests.delete_records(topic, int(index), offset)
        self.ask(
            request,
            2,
            lambda answer: self._emit_action(step, _outcome_text(answer)),
            broker=partition.leader,
        )

    def _unregister(self, step: PlanStep) -> None:
        """As if it would never come back; it does, and registers anew."""
        request = requests.unregister_broker(self.context.node_of(step.who[0]))
        self.ask(request, 0, lambda answer: self._emit_action(step, _outcome_text(answer)))

    def _search_by_time(self, step: PlanStep) -> None:
        """Refused only for a failing disk, a new leader, or where damage may hide the record."""
        partition = step.who[0]
        name, _, index = partition.rpartition("-")
        leader = self.context.leader_of(partition)
        if leader is None:
            return
        wall_ms = self.context.cluster.process(leader).wall_ms(self.context.world.now_ms)
        timestamp_ms = self.random.choice((MAX_TIMESTAMP, wall_ms - self.random.randint(0, 2_000)))

        def on_answer(answer: Reply) -> None:
            self._emit_action(step, _outcome_text(answer))
            if isinstance(answer, CallFailed):
                return
            code = list_offsets_answer(answer).error_code
            is_damaged = (partition, leader) in self.context.observation.damaged
            if code not in SEARCH_REFUSED and not (
                is_damaged and code == ErrorCode.CORRUPT_MESSAGE
            ):
                self.context.report_anomaly(
                    UNEXPECTED_ANSWER, partition, request=step.verb, answer=code
                )

        topic = TopicName(name, self._topic_ids.get(name, b""))
        request = requests.list_offset(topic, int(index), timestamp_ms)
        self.ask(request, LIST_OFFSETS_VERSION, on_answer, broker=leader)

    def _reassign(self, step: PlanStep) -> None:
        """Move a partition to the brokers of the step; without any, cancel what is under way."""
        name, _, index = step.who[0].rpartition("-")
        replicas = [int(each) for each in step.who[1].split(",")] if step.who[1:] else None
        request = requests.reassign(name, int(index), replicas)

        def on_answer(answer: Reply) -> None:
            outcome = _outcome_text(answer)
            if isinstance(answer, AlterPartitionReassignmentsResponse) and answer.responses:
                outcome = ErrorCode(answer.responses[0].partitions[0].error_code).name
            self._emit_action(step, outcome)

        self.ask(request, 1, on_answer)

    def _set(self, key: str) -> Callable[[PlanStep], None]:
        def act(step: PlanStep) -> None:
            request = requests.set_topic_config(step.who[0], key, step.who[1])
            self.ask(request, 1, lambda answer: self._emit_action(step, _outcome_text(answer)))

        return act

    def _emit_action(self, step: PlanStep, outcome: str) -> None:
        self.context.world.trace.emit(self.name, AdminAction(str(step).strip(), outcome))

    def _record_topic_call(
        self,
        name: str,
        creation: bool,
        outcome: CallOutcome,
        topic_id: bytes | None,
        invoked_us: int,
    ) -> None:
        self.context.record(
            TopicRequested(
                at_us=self.context.world.now_us,
                invoked_us=invoked_us,
                topic=name,
                is_creation=creation,
                outcome=outcome,
                topic_id=topic_id.hex() if topic_id is not None else None,
            )
        )


def _outcome(code: int) -> CallOutcome:
    if code == ErrorCode.NONE:
        return CallOutcome.OK
    return CallOutcome.UNKNOWN if code in UNCERTAIN else CallOutcome.REFUSED


def _is_uncertain(answer: ElectLeadersResponse) -> bool:
    topics = answer.replica_election_results
    codes = [each.error_code for topic in topics for each in topic.partition_result]
    return not UNCERTAIN.isdisjoint([answer.error_code, *codes])


def _outcome_text(answer: Reply) -> str:
    return answer.reason if isinstance(answer, CallFailed) else "answered"
