"""Fetches that get no records: one error for the whole request, or the same for each partition."""

from __future__ import annotations

from typing import cast

from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.connections.request import Request
from tidelog.core.node.ports import Part
from tidelog.core.wire.fetch_fast import FetchCall, FetchPartitionAnswer, encode_fetch_answer

ERROR_AT_THE_TOP_FROM = 7


def answer_error(request: Request, code: ErrorCode, session_id: int = 0) -> None:
    parts = encode_fetch_answer(
        [], request.version, prefix=request.header(), error_code=code, session_id=session_id
    )
    request.answer_parts(cast("list[Part]", parts))


def refuse_whole(request: Request, call: FetchCall, code: ErrorCode) -> None:
    """One error for everything: at the top, or for each partition where there is no top."""
    if request.version >= ERROR_AT_THE_TOP_FROM:
        answer_error(request, code)
    else:
        _refuse_partitions(request, call, code, aborted=[])


def _refuse_partitions(
    request: Request, call: FetchCall, code: ErrorCode, *, aborted: list[tuple[int, int]] | None
) -> None:
    """The same error for each partition that the request names; no session is made."""
    topics = [
        (topic, [FetchPartitionAnswer(p.partition_index, code, -1, -1, -1, aborted) for p in named])
        for topic, named in call.topics
    ]
    parts = encode_fetch_answer(topics, request.version, prefix=request.header())
    request.answer_parts(cast("list[Part]", parts))


def refuse_stranger(request: Request, call: FetchCall, *, is_of_metadata: bool) -> None:
    """Replicas of anything are nodes of the cluster, and only those read the metadata log."""
    if is_of_metadata:
        refuse_whole(request, call, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    else:
        _refuse_partitions(request, call, ErrorCode.TOPIC_AUTHORIZATION_FAILED, aborted=None)
