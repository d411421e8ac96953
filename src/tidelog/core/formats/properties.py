"""The small files that name things: `meta.properties` and `partition.metadata`."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping

from tidelog.core.model.ids import TopicId

_TOPIC_ID_BYTES = 16
_VERSION_LINE = b"version: 0"
_TOPIC_ID = b"topic_id: "


def parse_properties(content: bytes) -> dict[str, str]:
    """Lines of `key=value`; comments begin with `#`."""
    entries = {}
    for line in content.decode("utf-8", "replace").splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            entries[key.strip()] = value.strip()
    return entries


def format_properties(entries: Mapping[str, str]) -> bytes:
    lines = ["#", *(f"{key}={value}" for key, value in sorted(entries.items()))]
    return "".join(f"{line}\n" for line in lines).encode("utf-8")


def parse_partition_metadata(content: bytes) -> TopicId | None:
    """The id of the topic that the directory belongs to; None if the file is torn."""
    text = topic_id_in(content)
    if text is None:
        return None
    try:
        topic_id = urlsafe_b64decode(text + "==")
    except ValueError:
        return None
    return TopicId(topic_id) if len(topic_id) == _TOPIC_ID_BYTES else None


def topic_id_in(content: bytes) -> str | None:
    """The same as text, whatever it is, for people and for comparison."""
    lines = content.split(b"\n")
    if len(lines) < 2 or lines[0] != _VERSION_LINE or not lines[1].startswith(_TOPIC_ID):
        return None
    return lines[1].removeprefix(_TOPIC_ID).decode("utf-8", "replace").strip()


def format_partition_metadata(topic_id: TopicId) -> bytes:
    return _VERSION_LINE + b"\n" + _TOPIC_ID + topic_id_text(topic_id).encode("ascii")


def topic_id_text(topic_id: bytes) -> str:
    """As Kafka writes topic ids: url-safe base64 without padding."""
    return urlsafe_b64encode(topic_id).rstrip(b"=").decode("ascii")
