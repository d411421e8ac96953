"""DeleteTopics (api key 20): topics to forget, by name, and from version 6 on also by id."""

from __future__ import annotations

from tidelog.core.wire.schema import Message, Struct, array, int16, int32, string, uuid


class DeleteTopicState(Struct):
    """A topic by name, or by id with a null name."""

    name: str | None = string(nullable="0+", default=None)
    topic_id: bytes = uuid()


class DeleteTopicsRequest(Message, api_key=20, versions="1-6", flexible_from=4):
    """Topics to be deleted."""

    topics: list[DeleteTopicState] = array(DeleteTopicState, "6+")
    topic_names: list[str] = array(string, "1-5", ignorable=True)
    timeout_ms: int = int32()


class DeletableTopicResult(Struct):
    """What became of one topic."""

    name: str | None = string(nullable="6+")
    topic_id: bytes = uuid("6+", ignorable=True)
    error_code: int = int16()
    error_message: str | None = string("5+", nullable="5+", default=None, ignorable=True)


class DeleteTopicsResponse(Message, api_key=20, versions="1-6", flexible_from=4):
    """What became of each topic."""

    throttle_time_ms: int = int32(ignorable=True)
    responses: list[DeletableTopicResult] = array(DeletableTopicResult)
