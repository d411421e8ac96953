"""Questions about groups: whom they go to, and what becomes of the answers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.admin.test_admin import Given
from tests.unit.client.fake_cluster import PORT, Close, once
from tidelog.client.admin.admin import Failed
from tidelog.client.admin.groups import (
    GroupListing,
    GroupMemberDescription,
    OffsetDeletion,
    commit_group_offsets,
    committed_offsets,
    delete_group,
    delete_group_offsets,
    describe_group,
    list_groups,
)
from tidelog.client.admin.question import AdminOutcome
from tidelog.client.group.consumer_protocol import write_assignment, write_subscription
from tidelog.client.group.offset_requests import FetchedOffsets, OffsetAndMetadata
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages import MESSAGES
from tidelog.core.wire.messages import api_08_offset_commit as commit
from tidelog.core.wire.messages import api_09_offset_fetch as fetch
from tidelog.core.wire.messages import api_15_describe_groups as describe
from tidelog.core.wire.messages import api_16_list_groups as listing
from tidelog.core.wire.messages import api_42_delete_groups as deletion
from tidelog.core.wire.messages import api_47_offset_delete as offset_deletion
from tidelog.core.wire.messages.api_10_find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

P0, P1, P2 = (TopicPartition("orders", index) for index in range(3))
NONE = ErrorCode.NONE


class GivenGroups(Given):
    """The coordinator of every group is broker 2, until a test moves it."""

    def __init__(self) -> None:
        super().__init__()
        self.coordinator = 2
        for key in (8, 9, 10, 15, 16, 42, 47):
            versions = MESSAGES[key][0].versions
            self.cluster.api_versions[key] = (versions[0], versions[-1])
        self.cluster.rules.append(self._find)

    def _find(self, broker_id: int, request: Any) -> Any:
        if not isinstance(request, FindCoordinatorRequest):
            return None
        node = self.coordinator
        found = Coordinator(
            key=request.coordinator_keys[0], node_id=node, host=f"b{node}", port=PORT
        )
        return FindCoordinatorResponse(coordinators=[found])

    def seen(self, api: Any) -> list[int]:
        return [each.broker_id for each in self.cluster.requests(api)]


def deleted(error: ErrorCode) -> deletion.DeleteGroupsResponse:
    result = deletion.DeletableGroupResult(group_id="g", error_code=error)
    return deletion.DeleteGroupsResponse(results=[result])


def test_the_coordinator_is_asked() -> None:
    given = GivenGroups()
    given.says(deleted(NONE))

    assert given.ask(delete_group("g")) == AdminOutcome(NONE)
    assert given.seen(deletion.DeleteGroupsRequest) == [2]


def test_a_coordinator_that_moved_is_looked_up_again() -> None:
    given = GivenGroups()

    def answer(broker_id: int, request: Any) -> Any:
        if request.api_key != 42:
            return None
        given.coordinator = 3
        return deleted(NONE if broker_id == 3 else ErrorCode.NOT_COORDINATOR)

    given.cluster.rules.append(answer)
    assert given.ask(delete_group("g")) == AdminOutcome(NONE)
    assert given.seen(deletion.DeleteGroupsRequest) == [2, 3]


def test_a_coordinator_that_loads_is_asked_again() -> None:
    given = GivenGroups()
    loading = deleted(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    given.cluster.rules.append(once(lambda _, request: loading if request.api_key == 42 else None))
    given.cluster.rules.append(once(lambda _, request: Close() if request.api_key == 42 else None))
    given.says(deleted(ErrorCode.NON_EMPTY_GROUP))

    assert given.ask(delete_group("g")) == AdminOutcome(ErrorCode.NON_EMPTY_GROUP)


def test_a_refused_lookup_ends_the_question() -> None:
    given = GivenGroups()
    refusal = FindCoordinatorResponse(
        coordinators=[
            Coordinator(key="g", node_id=-1, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        ]
    )
    given.cluster.rules.insert(0, lambda _, request: refusal if request.api_key == 10 else None)

    found = given.ask(delete_group("g"))
    assert found == Failed("group g has no coordinator: GROUP_AUTHORIZATION_FAILED")


def test_every_broker_lists_its_own() -> None:
    given = GivenGroups()
    group = listing.ListedGroup(
        group_id="g", protocol_type="consumer", group_state="Stable", group_type="Classic"
    )
    given.says(listing.ListGroupsResponse(groups=[group]))
    found = given.ask(list_groups(broker_id=3, states=["Stable"], types=["classic"]))

    assert found == [GroupListing("g", "consumer", "Stable", "classic")]
    [seen] = given.cluster.requests(listing.ListGroupsRequest)
    assert (seen.broker_id, seen.request.states_filter) == (3, ["Stable"])


def test_an_old_broker_cannot_filter() -> None:
    given = GivenGroups()
    given.cluster.api_versions[16] = (0, 3)
    given.says(listing.ListGroupsResponse(groups=[listing.ListedGroup(group_id="g")]))

    assert given.ask(list_groups(broker_id=1)) == [GroupListing("g", "", None, None)]
    assert given.ask(list_groups(broker_id=1, states=["Stable"])).is_unsupported


def test_members_of_consumers_are_read() -> None:
    given = GivenGroups()
    member = describe.DescribedGroupMember(
        member_id="m",
        client_id="c",
        client_host="/10.0.0.1",
        member_metadata=write_subscription(["orders"]),
        member_assignment=write_assignment([P1, P0]),
    )
    odd = describe.DescribedGroupMember(member_id="odd", member_assignment=b"\0")
    group = describe.DescribedGroup(
        group_id="g", group_state="Stable", protocol_type="consumer", members=[member, odd]
    )
    given.says(describe.DescribeGroupsResponse(groups=[group]))
    found = given.ask(describe_group("g"))

    assert found.state == "Stable"
    assert found.members == (
        GroupMemberDescription("m", None, "c", "10.0.0.1", ("orders",), (P0, P1)),
        GroupMemberDescription("odd", None, "", "", (), ()),
    )


def test_committed_offsets() -> None:
    given = GivenGroups()
    partitions = [
        fetch.OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=offset, error_code=error
        )
        for index, offset, error in ((0, 7, NONE), (1, -1, NONE), (2, -1, 29))
    ]
    topic = fetch.OffsetFetchResponseTopics(name="orders", partitions=partitions)
    group = fetch.OffsetFetchResponseGroup(group_id="g", topics=[topic])
    given.says(fetch.OffsetFetchResponse(groups=[group]))

    assert given.ask(committed_offsets("g", [P0, P1, P2])) == FetchedOffsets(
        NONE, {P0: OffsetAndMetadata(7)}, {P2: ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    )
    given.ask(committed_offsets("g"))
    some, every = given.cluster.requests(fetch.OffsetFetchRequest)
    assert some.request.groups[0].topics[0].partition_indexes == [0, 1, 2]
    assert every.request.groups[0].topics is None and every.version == 9


def test_an_administrator_commits_without_a_generation() -> None:
    given = GivenGroups()
    refused = ErrorCode.UNKNOWN_MEMBER_ID
    partition = commit.OffsetCommitResponsePartition(partition_index=0, error_code=refused)
    topic = commit.OffsetCommitResponseTopic(name="orders", partitions=[partition])
    given.says(commit.OffsetCommitResponse(topics=[topic]))

    assert given.ask(commit_group_offsets("g", {P0: OffsetAndMetadata(5)})) == {P0: refused}
    [seen] = given.cluster.requests(commit.OffsetCommitRequest)
    assert (seen.request.generation_id_or_member_epoch, seen.request.member_id) == (-1, "")
    assert seen.version == 9


@pytest.mark.parametrize("error", [NONE, ErrorCode.GROUP_ID_NOT_FOUND])
def test_offsets_are_deleted_by_partition(error: ErrorCode) -> None:
    given = GivenGroups()
    subscribed = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    partition = offset_deletion.OffsetDeleteResponsePartition(
        partition_index=1, error_code=subscribed
    )
    topic = offset_deletion.OffsetDeleteResponseTopic(name="orders", partitions=[partition])
    given.says(offset_deletion.OffsetDeleteResponse(error_code=error, topics=[topic]))

    assert given.ask(delete_group_offsets("g", [P1])) == OffsetDeletion(error, {P1: subscribed})
