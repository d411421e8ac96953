"""`meta.properties` and `partition.metadata`, as Kafka writes them."""

from __future__ import annotations

from tidelog.core.formats.properties import (
    format_partition_metadata,
    format_properties,
    parse_partition_metadata,
    parse_properties,
)
from tidelog.core.model.ids import TopicId

TOPIC_ID = TopicId(bytes(range(16)))


def test_properties_come_back_without_comments_and_spaces() -> None:
    assert parse_properties(format_properties({"node.id": "1", "version": "1"})) == {
        "node.id": "1",
        "version": "1",
    }
    assert parse_properties(b"#node.id=2\n node.id = 1 \nnothing\n") == {"node.id": "1"}


def test_a_topic_id_comes_back_and_a_torn_one_is_none() -> None:
    content = format_partition_metadata(TOPIC_ID)

    assert content == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert parse_partition_metadata(content) == TOPIC_ID
    assert parse_partition_metadata(content[:-3]) is None
    assert parse_partition_metadata(b"") is None
