"""Classic groups as DescribeGroups and ListGroups show them."""

from __future__ import annotations

import pytest

from tests.unit.core.groups.given import GROUP, GroupsUnderTest
from tidelog.core.groups.classic_descriptions import describe_group, list_groups
from tidelog.core.model.errors import ErrorCode


class TestDescriptions:
    def test_of_a_stable_group(self) -> None:
        here = GroupsUnderTest()
        (member_id,) = here.stable(instance="one")
        described = describe_group(here.groups, GROUP, version=6)
        assert (described.group_state, described.protocol_data) == ("Stable", "range")
        (member,) = described.members
        assert (member.member_id, member.group_instance_id) == (member_id, "one")
        assert (member.member_metadata, member.member_assignment) == (b"r", member_id.encode())
        assert (member.client_id, member.client_host) == ("client", "/127.0.0.1")

    def test_metadata_is_shown_of_stable_groups_only(self) -> None:
        here = GroupsUnderTest()
        here.new_member()
        described = describe_group(here.groups, GROUP, version=6)
        assert (described.group_state, described.protocol_data) == ("CompletingRebalance", "")
        assert described.members[0].member_metadata == b""

    @pytest.mark.parametrize(
        ("version", "error"), [(5, ErrorCode.NONE), (6, ErrorCode.GROUP_ID_NOT_FOUND)]
    )
    def test_what_does_not_exist_is_dead(self, version: int, error: ErrorCode) -> None:
        described = describe_group(GroupsUnderTest().groups, GROUP, version=version)
        assert (described.group_state, described.error_code) == ("Dead", error)

    @pytest.mark.parametrize(
        ("states", "types", "found"),
        [
            ([], [], True),
            (["Stable"], [], True),
            ([" sTABLE "], ["classic"], True),
            (["Empty"], [], False),
            (["Empty", "Stable"], ["Consumer", "Classic"], True),
            ([], ["consumer"], False),
            (["nonsense"], [], False),
        ],
    )
    def test_lists_are_filtered(self, states: list[str], types: list[str], found: bool) -> None:
        here = GroupsUnderTest()
        here.stable()
        listed = list_groups(here.groups, states=states, types=types)
        assert [it.group_id for it in listed] == ([GROUP] if found else [])
        if found:
            assert (listed[0].group_state, listed[0].group_type) == ("Stable", "classic")
            assert listed[0].protocol_type == "consumer"
