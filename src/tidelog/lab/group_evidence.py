"""Evidence about groups: who coordinates one, what it has committed, who its members are."""

from __future__ import annotations

from tidelog.client.group.offset_requests import OffsetAndMetadata, fetch_request, fetched_offsets
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.model.topic_name import OFFSETS_TOPIC
from tidelog.core.wire.messages.api_03_metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tidelog.core.wire.messages.api_09_offset_fetch import OffsetFetchResponse
from tidelog.core.wire.messages.api_10_find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tidelog.core.wire.messages.api_15_describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from tidelog.core.wire.schema import ZERO_UUID
from tidelog.judge.groups.group_history import OffsetFetched
from tidelog.lab.engine import OBSERVER
from tidelog.lab.evidence import Topic
from tidelog.lab.evidence_queries import EvidenceQueries, StoryScene, Unanswered

FIND_COORDINATOR_VERSION = 4
OFFSET_FETCH_VERSION = 9
DESCRIBE_GROUPS_VERSION = 5
METADATA_VERSION = 12
NO_OFFSET = -1
HELD_WITHIN_MS = 10_000
"""A broker holds the question for a while when there is no coordinator."""


class GroupEvidence:
    """What the brokers tell of groups. What was committed is remembered for the judge."""

    def __init__(self, scene: StoryScene, evidence: EvidenceQueries) -> None:
        self._engine = scene.engine
        self._evidence = evidence
        self.fetched: list[OffsetFetched] = []

    def find_coordinator(self, group: str, *, via: int | None = None) -> tuple[ErrorCode, int]:
        """The answer of broker `via`, or of any, to whoever looks for the group's coordinator."""
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
        if via is None:
            answer = self._evidence.ask_any(request, FIND_COORDINATOR_VERSION)
        else:
            answer = self._evidence.ask(
                via, request, FIND_COORDINATOR_VERSION, timeout_ms=HELD_WITHIN_MS
            )
        assert isinstance(answer, FindCoordinatorResponse), answer
        (found,) = answer.coordinators
        return ErrorCode(found.error_code), found.node_id

    def coordinator(self, group: str) -> int:
        """The broker that coordinates the group."""
        error, node = self.find_coordinator(group)
        if error is not ErrorCode.NONE:
            raise Unanswered(f"the coordinator of {group}: {error.name}")
        return node

    def committed(self, group: str, index: int = 0) -> OffsetAndMetadata | None:
        """grp: what the group has committed in a partition of the story's topic."""
        name = TopicPartition(self._evidence.topic.name, index)
        invoked_us = self._engine.now_us
        node = self.coordinator(group)
        request = fetch_request({group: [name]}, is_stable=True)
        answer = self._evidence.ask(node, request, OFFSET_FETCH_VERSION)
        assert isinstance(answer, OffsetFetchResponse), answer
        found = fetched_offsets(answer)[group]
        if found.error is not ErrorCode.NONE or found.refused:
            raise Unanswered(f"the offsets of {group}: {found}")
        offset = found.offsets.get(name)
        self.fetched.append(
            OffsetFetched(
                at_us=self._engine.now_us,
                invoked_us=invoked_us,
                group=group,
                partition=str(name),
                token=None if offset is None else offset.metadata,
                offset=NO_OFFSET if offset is None else offset.offset,
                reader=OBSERVER,
            )
        )
        return offset

    def description(self, group: str) -> DescribedGroup:
        """A classic group as its coordinator describes it."""
        node = self.coordinator(group)
        answer = self._evidence.ask(
            node, DescribeGroupsRequest(groups=[group]), DESCRIBE_GROUPS_VERSION
        )
        assert isinstance(answer, DescribeGroupsResponse), answer
        (found,) = answer.groups
        if found.error_code != ErrorCode.NONE:
            raise Unanswered(f"group {group}: {ErrorCode(found.error_code).name}")
        return found

    def offsets_topic(self) -> Topic:
        """`__consumer_offsets`, which exists as soon as somebody has looked for a coordinator."""
        wanted = MetadataRequestTopic(name=OFFSETS_TOPIC, topic_id=ZERO_UUID)
        request = MetadataRequest(topics=[wanted], allow_auto_topic_creation=False)
        answer = self._evidence.ask_any(request, METADATA_VERSION)
        assert isinstance(answer, MetadataResponse), answer
        (found,) = answer.topics
        if found.error_code != ErrorCode.NONE:
            raise Unanswered(f"{OFFSETS_TOPIC}: {ErrorCode(found.error_code).name}")
        return Topic(name=OFFSETS_TOPIC, topic_id=found.topic_id)
