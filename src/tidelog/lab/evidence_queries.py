"""Evidence: what a story finds out about the cluster, by asking its brokers and reading its disks.

A story mostly has one partition, so the one that was made first is meant where none is named.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tidelog.client.partition_requests import (
    fetch_answer,
    fetch_request,
    list_offsets_answer,
    list_offsets_request,
)
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.exceptions import TidelogError
from tidelog.core.wire.messages.api_01_fetch import FetchRequest, PartitionData
from tidelog.core.wire.messages.api_03_metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tidelog.core.wire.messages.api_55_describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartition,
    DescribeQuorumRequestTopic,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartition,
)
from tidelog.core.wire.messages.api_60_describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from tidelog.core.wire.schema import ZERO_UUID, Message
from tidelog.core.wire.sentinels import DEBUGGING_REPLICA_ID, EARLIEST_TIMESTAMP
from tidelog.lab import evidence
from tidelog.lab.engine import (
    OBSERVER,
    Engine,
    Happening,
    Host,
    Layout,
    MissingAnswer,
    Pending,
    RequestSeen,
    StoryTimeout,
)
from tidelog.lab.evidence import Description, FollowerFetch, LogEntry, ProducerEntry, Topic

ASK_TIMEOUT_MS = 2_000
FETCH = FetchRequest.api_key
POLL_MS_MAX = 25
WITHIN_MS = 30_000
METADATA_TOPIC = "__cluster_metadata"


class Unanswered(TidelogError, AssertionError):
    """A broker that was asked for evidence did not answer."""


class StoryScene:
    """What a story plays with: its engine, the cluster's layout and the topic that is meant."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.layout = Layout(nodes=())
        self.topic: Topic | None = None
        self.fetches: list[ConsumerFetch] = []
        """What the story was given as a consumer, for its audit."""


class ConsumerFetch(NamedTuple):
    """One answer with records that a story got as a consumer."""

    invoked_us: int
    at_us: int
    node: int
    partition: str
    offset: int
    answer: PartitionData


class EvidenceQueries:
    """What can be seen from outside."""

    def __init__(self, scene: StoryScene) -> None:
        self._scene = scene
        self._engine = scene.engine
        self._trusted: tuple[int, ...] = ()

    @property
    def topic(self) -> Topic:
        """The topic that is meant where none is named."""
        assert self._scene.topic is not None, "the story has no topic yet"
        return self._scene.topic

    # Asking

    def ask(
        self,
        node: int,
        request: Message,
        version: int,
        *,
        client: str = OBSERVER,
        timeout_ms: int = ASK_TIMEOUT_MS,
        as_member: bool = False,
    ) -> Message:
        """One question and its answer; Unanswered if there is none."""
        answer = self.wait_for(
            self._engine.ask(
                node,
                request,
                version,
                client=client,
                timeout_ms=timeout_ms,
                as_member=as_member,
            ),
            within_ms=timeout_ms + 1_000,
        )
        if isinstance(answer, MissingAnswer):
            raise Unanswered(f"node {node} did not answer {type(request).__name__}: {answer}")
        return answer

    def listen_to(self, *nodes: int) -> None:
        """From now on these are asked first: a story knows which ones may be out of date."""
        self._trusted = nodes

    def ask_any(self, request: Message, version: int) -> Message:
        """Of any broker that answers."""
        trusted = [node for node in self._trusted if node in self._scene.layout.broker_ids]
        for node in dict.fromkeys([*trusted, *self._scene.layout.broker_ids]):
            if self._engine.is_running(node):
                try:
                    return self.ask(node, request, version)
                except Unanswered:
                    continue
        raise Unanswered(f"no broker answers {type(request).__name__}")

    def wait_for(self, pending: Pending, *, within_ms: int = WITHIN_MS) -> Message | MissingAnswer:
        self._engine.wait(lambda: pending.answer is not None, within_ms=within_ms)
        if pending.answer is None:
            return MissingAnswer("the story waited no longer")
        return pending.answer

    def until(
        self, what: str, condition: Callable[[], bool], *, within_ms: int = WITHIN_MS
    ) -> None:
        """Evaluate it repeatedly, a little less often each time. A silent broker counts as no."""
        deadline_us = self._engine.now_us + self._engine.patience_ms(within_ms) * 1_000
        poll_ms = 1
        while True:
            try:
                if condition():
                    return
            except Unanswered:
                pass
            if self._engine.now_us > deadline_us:
                raise StoryTimeout(f"not within {within_ms} ms: {what}")
            self._engine.pass_ms(poll_ms)
            poll_ms = min(poll_ms * 2, POLL_MS_MAX)

    def at_the_moment(
        self, what: str, condition: Callable[[], bool], *, within_ms: int = WITHIN_MS
    ) -> None:
        """Like `until`, for a condition that asks nobody: the story goes on in that very moment."""
        if not self._engine.wait(condition, within_ms=within_ms):
            raise StoryTimeout(f"not within {within_ms} ms: {what}")

    # desc and quorum

    def desc(
        self, index: int = 0, *, topic: Topic | None = None, via: int | None = None
    ) -> Description:
        """A partition as broker `via` sees it, or the first broker that answers."""
        request = evidence.describe(topic or self.topic)
        if via is None:
            answer = self.ask_any(request, evidence.DESCRIBE_VERSION)
        else:
            answer = self.ask(via, request, evidence.DESCRIBE_VERSION)
        known = evidence.descriptions(answer)
        if index >= len(known):
            raise Unanswered("a broker that has just started does not know the topic yet")
        return known[index]

    def metadata_error(self, index: int = 0) -> ErrorCode:
        """The error that clients get for a partition when they ask for its leader."""
        topic = MetadataRequestTopic(name=self.topic.name, topic_id=ZERO_UUID)
        request = MetadataRequest(topics=[topic], allow_auto_topic_creation=False)
        answer = self.ask_any(request, 12)
        assert isinstance(answer, MetadataResponse)
        return ErrorCode(answer.topics[0].partitions[index].error_code)

    def leader(self, index: int = 0, *, topic: Topic | None = None) -> int | None:
        return self.desc(index, topic=topic).leader

    def leaders(self, topic: Topic, *, via: int) -> list[int | None]:
        """Who leads each partition of a topic, as one broker sees it."""
        return [each.leader for each in self.descriptions(topic, via=via)]

    def descriptions(self, topic: Topic, *, via: int) -> list[Description]:
        """Every partition of a topic, as one broker sees it."""
        answer = self.ask(via, evidence.describe(topic), evidence.DESCRIBE_VERSION)
        return evidence.descriptions(answer)

    def unfenced(self) -> tuple[int, ...]:
        """The brokers that clients get to know."""
        answer = self.ask_any(DescribeClusterRequest(), 1)
        assert isinstance(answer, DescribeClusterResponse)
        return tuple(sorted(broker.broker_id for broker in answer.brokers))

    def quorum(self) -> DescribeQuorumResponsePartition:
        """The metadata quorum as its leader sees it."""
        partition = DescribeQuorumRequestPartition(partition_index=0)
        topic = DescribeQuorumRequestTopic(topic_name=METADATA_TOPIC, partitions=[partition])
        answer = self.ask_any(DescribeQuorumRequest(topics=[topic]), 2)
        assert isinstance(answer, DescribeQuorumResponse)
        found = answer.topics[0].partitions[0] if answer.topics else None
        if found is None or found.error_code != ErrorCode.NONE or found.leader_id < 0:
            raise Unanswered(f"the quorum has no leader that answers: {answer}")
        return found

    # Offsets and reads

    def end(self, node: int, index: int = 0, *, topic: Topic | None = None) -> int:
        """end(b): the log end of this very replica."""
        request = list_offsets_request(
            (topic or self.topic).name, index, replica_id=DEBUGGING_REPLICA_ID
        )
        listed = list_offsets_answer(self.ask(node, request, evidence.LIST_OFFSETS_VERSION))
        if listed.error_code != ErrorCode.NONE:
            raise Unanswered(f"end({node}): {ErrorCode(listed.error_code).name}")
        return listed.offset

    def latest(self, node: int, index: int = 0) -> tuple[ErrorCode, int]:
        """The answer to a consumer that asks this broker for the latest offset."""
        request = list_offsets_request(self.topic.name, index)
        listed = list_offsets_answer(self.ask(node, request, evidence.LIST_OFFSETS_VERSION))
        return ErrorCode(listed.error_code), listed.offset

    def high_watermark(self, index: int = 0) -> int:
        leader = self.leader(index)
        if leader is None:
            raise Unanswered("there is no leader")
        error, offset = self.latest(leader, index)
        if error is not ErrorCode.NONE:
            raise Unanswered(f"the high watermark: {error.name}")
        return offset

    def fetch(
        self,
        node: int,
        offset: int,
        *,
        index: int = 0,
        leader_epoch: int | None = None,
        client: str = OBSERVER,
    ) -> PartitionData:
        """One raw fetch as a consumer, with the leader epoch that it believes in."""
        name, topic_id = self.topic.name, self.topic.topic_id
        request = fetch_request(name, index, offset, topic_id=topic_id, leader_epoch=leader_epoch)
        invoked_us = self._engine.now_us
        answer = fetch_answer(self.ask(node, request, evidence.FETCH_VERSION, client=client))
        if answer.error_code == ErrorCode.NONE and answer.records:
            at_us, partition = self._engine.now_us, f"{name}-{index}"
            given = ConsumerFetch(invoked_us, at_us, node, partition, offset, answer)
            self._scene.fetches.append(given)
        return answer

    def log_start(self, node: int, index: int = 0) -> int:
        """The first offset that this broker still gives to anybody."""
        request = list_offsets_request(self.topic.name, index, timestamp_ms=EARLIEST_TIMESTAMP)
        listed = list_offsets_answer(self.ask(node, request, evidence.LIST_OFFSETS_VERSION))
        assert listed.error_code == ErrorCode.NONE, ErrorCode(listed.error_code)
        return listed.offset

    def read(self, node: int, *, index: int = 0, offset: int = 0) -> list[str]:
        """The payloads that this broker gives to consumers, from an offset to its end."""
        return [each.payload for each in self.read_entries(node, index=index, offset=offset)]

    def read_entries(self, node: int, *, index: int = 0, offset: int = 0) -> list[LogEntry]:
        """The same with offsets, leader epochs and sequences."""
        read: list[LogEntry] = []
        while True:
            fetched = self.fetch(node, offset, index=index)
            if fetched.error_code != ErrorCode.NONE:
                raise Unanswered(f"fetch at {node}: {ErrorCode(fetched.error_code).name}")
            found = [each for each in evidence.entries(fetched.records) if each.offset >= offset]
            if not found:
                return read
            read += found
            offset = found[-1].offset + 1

    # Disks

    def log(self, node: int, index: int = 0) -> list[LogEntry]:
        """log(b): the records on a node's disk, whether it runs or not."""
        files = self._engine.log_files(node, self.topic.name, index)
        return list(evidence.entries(evidence.segments(files)))

    def log_bytes(self, node: int, index: int = 0) -> bytes:
        return evidence.segments(self._engine.log_files(node, self.topic.name, index))

    def payloads(self, node: int, index: int = 0) -> list[str]:
        return [each.payload for each in self.log(node, index)]

    def epochs(self, node: int, index: int = 0) -> dict[int, int]:
        """epochs(b): leader epoch → start offset, from the replica's checkpoint file."""
        return evidence.leader_epochs(self._engine.log_files(node, self.topic.name, index))

    # Producers and requests

    def producers(self, node: int, index: int = 0) -> dict[int, ProducerEntry]:
        """prod(b): what this replica remembers of each producer."""
        request = evidence.describe_producers(self.topic, index)
        return evidence.known_producers(
            self.ask(node, request, evidence.DESCRIBE_PRODUCERS_VERSION)
        )

    def requests(
        self, node: int, api_key: int, *, since_us: int = 0, peer: Host | None = None
    ) -> list[RequestSeen]:
        """req(b): what the node was asked by anybody or by one peer, oldest first."""
        return self._engine.requests(node, api_key, since_us=since_us, peer=peer)

    def follower_fetches(
        self, leader: int, follower: int, *, since_us: int = 0
    ) -> list[FollowerFetch]:
        """What a follower asked its leader about the story's partition 0, and the answers."""
        return list(
            evidence.follower_fetches(
                self.topic, self.requests(leader, FETCH, since_us=since_us, peer=follower)
            )
        )

    def consumer_fetches(self) -> list[ConsumerFetch]:
        """What the story was given so far when it fetched as a consumer."""
        return self._scene.fetches

    def happenings(self, node: int, kind: str, *, since_us: int = 0) -> list[Happening]:
        """What a node wrote to its own trace, of one kind."""
        return [each for each in self._engine.happenings(node, kind) if each.at_us >= since_us]
