"""Groups for people and for programs."""

from __future__ import annotations

from dataclasses import replace

from tidelog.cli.group.list import words
from tidelog.cli.group.tables import group_json, headline, members_text, offsets_text
from tidelog.client.admin.groups import GroupDescription, GroupListing, GroupMemberDescription
from tidelog.client.shells.groups import DescribedConsumerGroup, GroupPartition
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition

P0, P1, P2 = (TopicPartition("orders", index) for index in range(3))
MEMBER = GroupMemberDescription("m-1", None, "mailer", "10.0.0.1", ("orders",), (P0,))
GROUP = DescribedConsumerGroup(
    listing=GroupListing("mail", "consumer", "PreparingRebalance", "classic"),
    coordinator=2,
    description=GroupDescription(
        ErrorCode.NONE, None, "mail", "Stable", "consumer", "range", (MEMBER,)
    ),
    partitions=(
        GroupPartition(name=P0, committed=7, log_end=10, member=MEMBER),
        GroupPartition(name=P1, committed=None, log_end=10, member=None),
        GroupPartition(name=P2, committed=9, log_end=None, member=None),
    ),
)
UNKNOWN_KIND = replace(
    GROUP,
    listing=GroupListing("mail", "consumer", "Stable", "consumer"),
    description=None,
    partitions=GROUP.partitions[1:],
)


def test_offsets() -> None:
    head, *rows = offsets_text(GROUP).splitlines()

    assert head == (
        "group mail  state Stable  type classic  assignor range  members 1  lag 3  coordinator 2"
    )
    assert [line.split() for line in rows[1:]] == [
        ["orders", "0", "7", "10", "3", "m-1", "mailer", "10.0.0.1"],
        ["orders", "1", "-", "10", "-", "-", "-", "-"],
        ["orders", "2", "9", "?", "-", "-", "-", "-"],
    ]


def test_members() -> None:
    _, _, row = members_text(GROUP).splitlines()

    assert row.split() == ["m-1", "-", "mailer", "10.0.0.1", "1", "orders-0"]
    assert GROUP.description is not None
    empty = replace(GROUP, description=GROUP.description._replace(members=()))
    assert members_text(empty).endswith("\n  no members")


def test_a_group_whose_members_cannot_be_described() -> None:
    assert "type consumer  members ?  lag -" in headline(UNKNOWN_KIND)
    assert offsets_text(UNKNOWN_KIND).splitlines()[2].split()[-3:] == ["?", "?", "?"]
    assert members_text(UNKNOWN_KIND) == headline(UNKNOWN_KIND)
    document = group_json(UNKNOWN_KIND)
    assert document["members"] is None and document["assignor"] is None


def test_json() -> None:
    document = group_json(GROUP)

    assert (document["group"], document["state"], document["lag"]) == ("mail", "Stable", 3)
    assert document["partitions"][0] == {
        "topic": "orders",
        "partition": 0,
        "committed": 7,
        "log_end": 10,
        "lag": 3,
        "member_id": "m-1",
        "client_id": "mailer",
        "host": "10.0.0.1",
    }
    assert document["members"][0]["partitions"] == ["orders-0"]


def test_a_log_that_was_cut_below_the_commit_has_no_negative_lag() -> None:
    assert GroupPartition(name=P0, committed=7, log_end=5, member=None).lag == 0


def test_words() -> None:
    assert words(["Stable, Empty", "Stable"]) == ["Stable", "Empty"]
    assert words(None) == []
