"""Topics for people and for programs."""

from __future__ import annotations

from dataclasses import replace

from tidelog.cli.topic.describe import filtered
from tidelog.cli.topic.tables import survey_json, topic_id_text, topic_text
from tidelog.client.admin.reassignments import OngoingReassignment
from tidelog.client.admin.topics import PartitionDescription
from tidelog.client.shells.topic_descriptions import (
    DescribedPartition,
    DescribedTopic,
    DescribedTopics,
)
from tidelog.core.model.errors import ErrorCode

NONE = ErrorCode.NONE
WELL = DescribedPartition(
    state=PartitionDescription(0, 1, 5, (1, 2, 3), (1, 2, 3), (), NONE, (), ()),
    high_watermark=1_000,
    log_end_offsets={1: 1_005, 2: 1_000, 3: None},
)
SHRUNK = DescribedPartition(state=PartitionDescription(1, 2, 6, (1, 2), (2,), (1,), NONE, (1,), ()))
HEADLESS = DescribedPartition(state=PartitionDescription(2, None, 7, (1, 2), (2,), (2,), NONE))
ORPHAN = DescribedPartition(state=PartitionDescription(3, 2, 7, (1, 2), (2, 1), (2,), NONE))


def survey(*partitions: DescribedPartition) -> DescribedTopics:
    topic = DescribedTopic(
        name="orders",
        topic_id=bytes(range(16)),
        is_internal=False,
        configs={"min.insync.replicas": "2"},
        partitions=partitions,
    )
    return DescribedTopics(topics={"orders": topic}, refused={}, racks={1: "a", 2: "b", 3: None})


def test_ids_look_like_kafkas() -> None:
    assert topic_id_text(bytes(range(16))) == "AAECAwQFBgcICQoLDA0ODw"
    assert topic_id_text(bytes(16)) is None and topic_id_text(None) is None


def test_for_people() -> None:
    found = survey(WELL, HEADLESS)
    lines = topic_text(found.topics["orders"], found.racks, with_offsets=True).splitlines()
    assert lines[0].split("  ") == [
        "topic orders",
        "id AAECAwQFBgcICQoLDA0ODw",
        "replication factor 3",
        "configs min.insync.replicas=2",
        "racks 1=a,2=b",
    ]
    assert " ".join(lines[2].split()) == "0 1 5 1,2,3 1,2,3 - - - 1000 1:1005 2:1000 3:?"
    assert lines[3].split() == ["2", "none", "7", "1,2", "2", "-", "-", "2", "?", "-"]


def test_for_programs() -> None:
    document = survey_json(survey(WELL, HEADLESS), with_offsets=True)
    assert document["racks"] == {"1": "a", "2": "b", "3": None}
    [topic] = document["topics"]
    assert topic["topic"] == "orders" and topic["replication_factor"] == 3
    well, headless = topic["partitions"]
    assert well == {
        "partition": 0,
        "leader": 1,
        "leader_epoch": 5,
        "replicas": [1, 2, 3],
        "isr": [1, 2, 3],
        "elr": [],
        "last_known_elr": [],
        "offline": [],
        "adding": [],
        "removing": [],
        "high_watermark": 1_000,
        "log_end_offsets": {"1": 1_005, "2": 1_000, "3": None},
    }
    assert headless["leader"] is None and headless["elr"] is None


def test_what_comes_and_goes_is_shown_while_it_does() -> None:
    moving = replace(WELL, move=OngoingReassignment((1, 2, 3), (3,), (1,)))
    found = survey(moving, SHRUNK)

    lines = topic_text(found.topics["orders"], found.racks, with_offsets=False).splitlines()

    assert lines[1].split()[-2:] == ["adding", "removing"]
    assert lines[2].split()[-2:] == ["3", "1"] and lines[3].split()[-2:] == ["-", "-"]
    shown = survey_json(found, with_offsets=False)["topics"][0]["partitions"][0]
    assert (shown["adding"], shown["removing"]) == ([3], [1])


def test_without_offsets_there_are_none() -> None:
    [topic] = survey_json(survey(WELL), with_offsets=False)["topics"]
    assert "high_watermark" not in topic["partitions"][0]


def test_filters_leave_what_is_in_trouble() -> None:
    found = survey(WELL, SHRUNK, HEADLESS, ORPHAN)

    def kept(*, under_replicated: bool, unavailable: bool) -> list[int]:
        shown = filtered(found, under_replicated=under_replicated, unavailable=unavailable)
        return [p.state.partition for t in shown.topics.values() for p in t.partitions]

    assert kept(under_replicated=False, unavailable=False) == [0, 1, 2, 3]
    assert kept(under_replicated=True, unavailable=False) == [1, 2]
    assert kept(under_replicated=False, unavailable=True) == [2, 3]
    assert kept(under_replicated=True, unavailable=True) == [1, 2, 3]
    assert not filtered(survey(WELL), under_replicated=True, unavailable=False).topics
