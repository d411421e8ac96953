"""The bounds of a log that is not what it was: where it begins and ends, and where it was cut."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tidelog.client.admin.admin import AdminMachine, Failed
from tidelog.client.admin.offsets import (
    LeaderEpochEnd,
    ListedOffset,
    end_of_leader_epoch,
    list_offset,
)
from tidelog.client.admin.offsets import high_watermark as high_watermark_question
from tidelog.client.client import Client
from tidelog.client.cluster_metadata import Leader
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.sentinels import EARLIEST_TIMESTAMP

OnBounds = Callable[[int | None, int | None, int], None]
"""The log start offset and the high watermark, None for what is unknown; and the time."""
OnTruncation = Callable[[int | None, bool, int], None]
"""Where the leader epoch ends (None: no leader can be asked), whether that is known, the time."""


def find_bounds(client: Client, partition: TopicPartition, then: OnBounds, *, now_ms: int) -> None:
    """Of the leader: one question for each end."""
    admin = AdminMachine(client)
    offsets: dict[str, int | None] = {}

    def on_answer(what: str, answer: ListedOffset | Failed, now_ms: int) -> None:
        is_known = not isinstance(answer, Failed) and answer.error == ErrorCode.NONE
        offsets[what] = answer.offset if is_known and isinstance(answer, ListedOffset) else None
        if len(offsets) == 2:
            then(offsets["start"], offsets["end"], now_ms)

    questions = {
        "start": list_offset(partition, EARLIEST_TIMESTAMP),
        "end": high_watermark_question(partition),
    }
    for what, question in questions.items():
        admin.ask(
            question,
            partial(on_answer, what),
            now_ms=now_ms,
            timeout_ms=client.config.request_timeout_ms,
        )


def find_truncation(
    client: Client,
    partition: TopicPartition,
    leader: Leader,
    read_epoch: int,
    then: OnTruncation,
    *,
    now_ms: int,
) -> None:
    """Where the leader epoch that was read last ends in the log of the leader of now (KIP-320)."""
    question = end_of_leader_epoch(partition, read_epoch, current_leader_epoch=leader.leader_epoch)

    def on_answer(answer: LeaderEpochEnd | Failed, now_ms: int) -> None:
        if isinstance(answer, Failed):
            then(None, answer.is_unsupported, now_ms)
        elif answer.error != ErrorCode.NONE:
            then(None, False, now_ms)
        else:
            # A leader that does not know this leader epoch has nothing of it.
            then(0 if answer.end_offset is None else answer.end_offset, True, now_ms)

    AdminMachine(client).ask(
        question, on_answer, now_ms=now_ms, timeout_ms=client.config.request_timeout_ms
    )
