"""Document 2, the cut itself: how a returning leader learns where its log parts from the new one.

A follower never cuts by its high watermark. It asks its leader where the last leader epoch that it
knows ended there, and cuts at that offset or at its own end of that epoch, whichever is smaller.
"""

from __future__ import annotations

from tidelog.client.partition_requests import list_offsets_answer, list_offsets_request
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_23_offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tidelog.lab import alter_partition, evidence
from tidelog.lab.lab import Lab
from tidelog.lab.stories.cast import CONTROLLER, FENCED, A, B, C, same_logs
from tidelog.lab.story import story
from tidelog.lab.writers import PartitionWriter


@story("D2-T1", "D2-T2", "D2-T3", "D2-T4", "D2-C3", "D1-K6")
def a_returns_before_anything_new_is_written(lab: Lab) -> None:
    """A comes back to a leader that has written nothing yet, and drops M3 all the same."""
    first = _b_leads_without_m3(lab)
    returned_us = lab.now_us
    lab.start(A)
    lab.until_isr(A, B, C)
    fetch, *_ = lab.follower_fetches(B, A, since_us=returned_us)

    lab.step("D2-T1", "A's first fetch: offset 3, last epoch 0, in the current epoch 1")
    fetched_from = (fetch.offset, fetch.last_fetched_leader_epoch, fetch.current_leader_epoch)
    lab.same("what A asks", fetched_from, (3, 0, 1))
    lab.step(
        "D2-T2", "they agree up to offset 1: B answers that epoch 0 ends at 2, with no records"
    )
    lab.same("the divergence", fetch.diverged, (0, 2))
    assert fetch.answer is not None
    lab.same("bytes of records", len(fetch.answer.records or b""), 0)

    lab.step("D2-T3", "A drops M3, and its producer state and epochs go back as well")
    (cut,) = lab.happenings(A, "FollowerTruncated", since_us=returned_us)
    lab.same("the cut", (cut.fields["from_end_offset"], cut.fields["to_end_offset"]), (3, 2))
    lab.same("what was dropped", cut.fields["dropped"], ((2, 3, 0),))
    lab.same("prod(A)", lab.producers(A)[first.producer_id].sequence, 1)
    lab.same("epochs(A)", lab.epochs(A)[0], 0)
    lab.step("D2-T4", "both logs are [M1, M2]")
    lab.same("log(A)", lab.payloads(A), ["M1", "M2"])
    same_logs(lab, A, B)

    lab.step("D2-C3", "C's log ends at 1, before epoch 0 ended on B: nothing of it is cut")
    lab.same("C's truncations", lab.happenings(C, "FollowerTruncated"), [])
    lab.same("log(C)", lab.payloads(C), ["M1", "M2"])
    lab.step(
        "D1-K6", "the uncommitted tail of the old leader is removed by the follower that it is"
    )
    lab.same("B's truncations", lab.happenings(B, "FollowerTruncated"), [])


@story("D2-G1")
def an_old_leader_epoch_is_refused_everywhere(lab: Lab) -> None:
    """Whoever still believes in leader epoch 0 is refused with FENCED_LEADER_EPOCH."""
    _b_leads_without_m3(lab)
    lab.step("D2-G1", "every request that names the old leader epoch is refused")
    lab.same("Fetch", ErrorCode(lab.fetch(B, 0, leader_epoch=0).error_code), FENCED)

    request = list_offsets_request(lab.topic.name, 0, leader_epoch=0)
    listed = list_offsets_answer(lab.ask(B, request, evidence.LIST_OFFSETS_VERSION))
    lab.same("ListOffsets", ErrorCode(listed.error_code), FENCED)

    partition = OffsetForLeaderPartition(partition=0, current_leader_epoch=0, leader_epoch=0)
    by_topic = OffsetForLeaderTopic(topic=lab.topic.name, partitions=[partition])
    answer = lab.ask(B, OffsetForLeaderEpochRequest(topics=[by_topic]), 4)
    assert isinstance(answer, OffsetForLeaderEpochResponse)
    lab.same("OffsetForLeaderEpoch", ErrorCode(answer.topics[0].partitions[0].error_code), FENCED)

    claimed = alter_partition.alter_isr(
        lab, CONTROLLER, leader=A, leader_epoch=0, partition_epoch=0, isr={A: -1}
    )
    lab.same("AlterPartition of A", claimed, FENCED)


def _b_leads_without_m3(lab: Lab) -> PartitionWriter:
    """M1 everywhere, M2 on A and B, M3 on A; A is dead and B leads in leader epoch 1."""
    lab.cluster()
    lab.create("letters", (A, B, C), min_insync_replicas="2")
    first = lab.writer("first", acks=1, idempotent=True)
    first.write("M1")
    lab.until_quiet()
    lab.hold(C)
    first.write("M2")
    lab.until_end(B, 2)
    lab.hold(B)
    first.write("M3")
    lab.kill(A)
    lab.release(B, C)
    lab.until_led(B)
    lab.until_end(C, 2)
    return first
