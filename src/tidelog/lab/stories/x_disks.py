"""Disks in a cluster: one that is full, one that is torn, one that decays, and all without power.

A broker cannot promise what it did not store. The others have it, so the cluster goes on, and the
one with the bad disk comes back by copying.
"""

from __future__ import annotations

from tidelog.core.formats import file_names
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.record_batch import batches, crc_is_valid
from tidelog.lab.audit import CLEAN
from tidelog.lab.evidence import Description, entries
from tidelog.lab.lab import Lab
from tidelog.lab.stories.baseline import orders
from tidelog.lab.stories.cast import ok, same_logs
from tidelog.lab.story import story

STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR
BIG = "x" * 500
IN_TWO = 0
"""A partition in the second directory: the metadata log lies in the first one."""
BEFORE = ["a", "b", "c"]
AFTER = ("d", "e")
NAMES = [f"m{number}" for number in range(20)]


@story("X-31")
def the_leaders_disk_is_full_in_mid_append(lab: Lab) -> None:
    """Half of a batch fits on the disk of 1: no acknowledgement, 1 stops, and 2 leads."""
    orders(lab)
    writer = lab.writer("writer", idempotent=True)
    lab.engine.fill_disk(1, bytes_left=200)
    batch = writer.begin(BIG)
    lab.engine.wait(lambda: batch.answer is not None, within_ms=5_000)
    lab.step("X-31", "the batch is not acknowledged, and a broker with one directory stops")
    lab.among("the answer's error", batch.answer and batch.answer.error, (STORAGE_ERROR, None))
    (failed,) = lab.happenings(1, "LogDirectoryFailed")
    lab.true("the disk is full", "no space" in failed.fields["reason"])
    lab.true("1 does not run", not lab.engine.is_running(1))

    lab.until_led(2)
    lab.step("X-31", "leadership moved, and the same batch is taken by 2")
    writer.again(batch)
    lab.same("the answer", writer.wait(batch), ok(10))
    _space_returns(lab, 1)
    lab.same("log(1)", lab.payloads(1)[10:], [BIG])
    lab.same("the audit", lab.audit(), CLEAN)


@story("X-31")
def a_followers_disk_is_full(lab: Lab) -> None:
    """2 cannot store what it copies: it leaves the ISR, and 1 and 3 go on."""
    orders(lab)
    writer = lab.writer("writer")
    lab.engine.fill_disk(2, bytes_left=200)
    batch = writer.begin(BIG)
    lab.until("2 stopped", lambda: not lab.engine.is_running(2))
    lab.step("X-31", "2 counts until it is out of the ISR: no acknowledgement before")
    lab.same("the answer", batch.answer, None)
    lab.until_isr(1, 3)
    lab.same("the answer then", writer.wait(batch), ok(10))
    lab.same("leader, its leader epoch", (lab.leader(), lab.desc().leader_epoch), (1, 0))
    _space_returns(lab, 2)
    lab.same("the audit", lab.audit(), CLEAN)


@story("X-31")
def one_directory_of_two_is_given_up(lab: Lab) -> None:
    """1 has two directories and loses one: it lives on, and leads nothing from there any more."""
    lab.cluster(settings={"log.dirs": "one,two"})
    lab.create("orders", *[(1, 2, 3)] * 4, min_insync_replicas="2")
    writer = lab.writer("writer", idempotent=True)
    for index in range(4):
        assert writer.write("m", index=index).is_ok
    lab.engine.fill_disk(1, bytes_left=200)
    batch = writer.begin(BIG, index=IN_TWO, to=1)
    lab.at_the_moment("one is given up", lambda: bool(lab.happenings(1, "LogDirectoryFailed")))
    lab.engine.free_disk(1)
    lab.step("X-31", "KAFKA_STORAGE_ERROR for all that lies there, and 1 lives")
    lab.same("the answer", writer.wait(batch).error, STORAGE_ERROR)
    spoilt = [index for index in range(4) if lab.latest(1, index)[0] is STORAGE_ERROR]
    sound = [index for index in range(4) if index not in spoilt]
    lab.same("partitions here, partitions there", (len(sound), len(spoilt)), (2, 2))
    lab.true("1 runs", lab.engine.is_running(1))

    for index in spoilt:
        lab.until_led(2, index=index)
    lab.step("X-31", "2 leads what lay there; what lies in the other directory, 1 leads on")
    lab.same("leaders", [lab.leader(index) for index in sound], [1, 1])
    writer.again(batch)
    lab.same("the answer of 2", writer.wait(batch), ok(1))
    _space_returns(lab, 1, index=IN_TWO)
    lab.same("the audit", lab.audit(IN_TWO), CLEAN)


def _space_returns(lab: Lab, node: int, *, index: int = 0) -> None:
    if lab.engine.is_running(node):
        lab.stop(node)
    lab.engine.free_disk(node)
    lab.start(node)
    lab.until_isr(1, 2, 3, index=index)
    lab.until_quiet(index)
    lab.step("X-31", f"space returns: {node} catches up, and has the same log as the others")
    lab.true("the logs are equal", len({lab.log_bytes(node, index) for node in (1, 2, 3)}) == 1)


@story("X-32")
def a_followers_last_batch_is_torn(lab: Lab) -> None:
    """2 crashes with half a batch and without its indexes: it cuts, and fetches the rest again."""
    _old_segments(lab)
    indexes = _indexes(lab, 2)
    lab.kill(2)
    lab.engine.tear(2, "orders", 0, bytes_off=7)
    lab.engine.delete_file(2, "orders", 0, suffix="index")
    lab.until_isr(1, 3)
    started_us = lab.now_us
    lab.start(2)
    lab.until_isr(1, 2, 3)
    lab.step("X-32", "recovery cuts at the first bad batch")
    (cut,) = lab.happenings(2, "TailCut", since_us=started_us)
    lab.same("the end of the log then", cut.fields["end_offset"], len(NAMES) - 1)
    lab.step("X-32", "the indexes are made anew, and say what they said")
    lab.true("there are some", len(indexes) > 3)
    lab.true("they are as before", _indexes(lab, 2) == indexes)
    lab.step("X-32", "the rest is fetched again")
    fetch = lab.follower_fetches(1, 2, since_us=started_us)[0]
    lab.same("the first fetch", fetch.offset, len(NAMES) - 1)
    same_logs(lab, 1, 2, 3)
    lab.same("the audit", lab.audit(), CLEAN)


@story("X-32")
def a_leaders_last_batch_is_torn(lab: Lab) -> None:
    """The acknowledged end of the leader's log is torn at its crash; the others have it whole."""
    orders(lab)
    assert lab.writer("writer").write("last").is_ok
    lab.until_quiet()
    lab.kill(1)
    lab.engine.tear(1, "orders", 0, bytes_off=7)
    lab.step("X-32", "2 leads, and has what is torn on 1")
    lab.until_led(2)
    lab.same("log(1)", lab.payloads(1)[10:], [])
    lab.until_high_watermark(11)
    lab.same("what a consumer gets", lab.read(2)[10:], ["last"])
    lab.start(1)
    lab.until_isr(1, 2, 3)
    lab.step("X-32", "1 cuts its own end, and copies it from 2")
    lab.same("cuts", len(lab.happenings(1, "TailCut")), 1)
    same_logs(lab, 1, 2, 3)
    lab.same("the audit", lab.audit(), CLEAN)


@story("X-32")
def the_only_replica_loses_what_it_had_not_synced(lab: Lab) -> None:
    """A partition without copies: after a power loss exactly its unsynced records are missing."""
    lab.cluster()
    lab.create("letters", (1,))
    writer = lab.writer("writer")
    for name in ("a", "b", "c"):
        assert writer.write(name).is_ok
    lab.stop(1)  # a clean stop puts the log on the disk itself
    lab.start(1)
    lab.until_led(1)
    for name in ("d", "e"):
        assert writer.write(name).is_ok
    lab.lose_power(1)
    lab.until_led(None)
    lab.start(1)
    lab.until_led(1)
    lab.step("X-32", "the synced ones are there, the others are lost and reported")
    lab.same("what a consumer gets", lab.read(1), ["a", "b", "c"])
    lab.same("lost", lab.audit().lost, ("d", "e"))


def _indexes(lab: Lab, node: int) -> dict[str, bytes]:
    files = lab.engine.log_files(node, lab.topic.name, 0)
    return {name: data for name, data in files.items() if name.endswith("index")}


@story("X-33")
def a_flipped_bit_is_not_copied(lab: Lab) -> None:
    """A bit of an old segment of leader 1 decays; 3, on a new disk, has to copy everything.

    No digest but the batch's own can tell, so whoever appends without checking it spreads the
    damage, and whoever gives up the whole partition loses more than one batch.
    """
    _old_segments(lab)
    lab.kill(3)
    lab.engine.wipe(3)
    lab.engine.flip_bit(1, "orders", 0, offset=4)
    started_us = lab.now_us
    lab.start(3)
    lab.until_end(3, 4)
    lab.pass_ms(5_000)
    lab.step("X-33", "3 refuses the batch again and again: it never has it, and never is in sync")
    tries = [each.fields for each in lab.happenings(3, "FollowerBackedOff", since_us=started_us)]
    refused = [each for each in tries if each["partition"] == "orders-0"]
    lab.true("it said why", bool(refused) and "bad records" in refused[-1]["reason"])
    lab.true("it waits between its tries", len(refused) < 20)
    lab.same("log(3)", lab.payloads(3), NAMES[:4])
    lab.same("ISR", lab.desc().isr, (1, 2))
    lab.step("X-33", "consumers are given the batch, and it does not pass their check")
    given = lab.fetch(1, 4).records
    lab.true("bytes came", bool(given))
    lab.same("records that pass", list(entries(given)), [])
    lab.same("what comes before it", lab.read(1), NAMES[:4])
    lab.same("what comes behind it", lab.read(1, offset=5), NAMES[5:])
    lab.step("X-33", "the writers of the partition notice nothing")
    lab.same("acks=all", lab.writer("writer").write("new"), ok(len(NAMES)))
    _a_good_replica_leads(lab)


def _a_good_replica_leads(lab: Lab) -> None:
    lab.step("X-33", "the logs tell which batch is bad and who has it whole")
    lab.same("bad on 1, on 2, on 3", [_bad_offsets(lab, b) for b in (1, 2, 3)], [[4], [], []])
    lab.same("log(2)", lab.payloads(2), [*NAMES, "new"])
    lab.stop(1)
    lab.engine.wipe(1)
    lab.until_isr(2, 3)
    lab.start(1)
    lab.until_isr(1, 2, 3)
    lab.step("X-33", "led by 2, everybody has everything")
    lab.same("what a consumer gets", lab.read(2), [*NAMES, "new"])
    same_logs(lab, 1, 2, 3)
    lab.same("the audit", lab.audit(), CLEAN)


def _old_segments(lab: Lab) -> None:
    """Twenty records, each a batch, in segments of four."""
    lab.cluster()
    lab.create(
        "orders",
        (1, 2, 3),
        min_insync_replicas="2",
        internal_segment_bytes="300",
        index_interval_bytes="70",
    )
    writer = lab.writer("writer")
    for name in NAMES:
        assert writer.write(name).is_ok
    lab.until_quiet()
    files = lab.engine.log_files(1, "orders", 0)
    assert len([name for name in files if name.endswith(file_names.LOG)]) > 3


def _bad_offsets(lab: Lab, node: int) -> list[int]:
    """The first offsets of the batches on a node's disk that do not pass their own check."""
    data = lab.log_bytes(node)
    return [
        header.base_offset
        for position, header in batches(data)
        if not crc_is_valid(data, position, header)
    ]


@story("X-34", "N54")
def power_fails_everywhere_over_page_caches(lab: Lab) -> None:
    """All replicas had the records, none of them on its disk: what was acknowledged is lost."""
    before = _everybody_loses_power(lab, fsync="none")
    _everybody_returns(lab, before)
    lab.step("X-34", "N54", "the acknowledged tail is gone, and the audit names it")
    lab.same("what a consumer gets", lab.read(lab.leader() or 0), BEFORE)
    lab.same("lost", lab.audit().lost, AFTER)


@story("X-34", "N54")
def power_fails_everywhere_with_group_commit(lab: Lab) -> None:
    """With tidelog.fsync=group a record counts once it is synced: nothing is lost."""
    _nothing_is_lost(lab, fsync="group")


@story("X-34", "N54")
def power_fails_everywhere_with_a_sync_for_every_append(lab: Lab) -> None:
    """With tidelog.fsync=always, too."""
    _nothing_is_lost(lab, fsync="always")


def _nothing_is_lost(lab: Lab, *, fsync: str) -> None:
    before = _everybody_loses_power(lab, fsync=fsync)
    followers = [broker for broker in before.replicas if broker != before.leader]
    lab.start(4, *followers)
    lab.until_unfenced(*followers)
    lab.step("X-34", "N54", f"with tidelog.fsync={fsync} every replica has what was acknowledged")
    for follower in followers:
        lab.same(f"log({follower})", lab.payloads(follower), [*BEFORE, *AFTER])
    _everybody_returns(lab, before)
    lab.step("X-34", "N54", "and so every acknowledged record is there")
    lab.same("what a consumer gets", lab.read(lab.leader() or 0), [*BEFORE, *AFTER])
    lab.same("the audit", lab.audit(), CLEAN)


def _everybody_loses_power(lab: Lab, *, fsync: str) -> Description:
    """Of what was not synced nothing is kept, on the brokers and on the controller."""
    lab.cluster(settings={"tidelog.fsync": fsync})
    lab.create("orders", (1, 2, 3), min_insync_replicas="2")
    writer = lab.writer("writer")
    for name in BEFORE:
        assert writer.write(name).is_ok
    for broker in (1, 2, 3):  # a clean stop puts the log on the disk itself
        lab.stop(broker)
        lab.start(broker)
        lab.until_isr(1, 2, 3)
    for name in AFTER:
        assert writer.write(name).is_ok
    before = lab.desc()
    lab.lose_power(1, 2, 3, 4)
    return before


def _everybody_returns(lab: Lab, before: Description) -> None:
    lab.start(*(node for node in (1, 2, 3, 4) if not lab.engine.is_running(node)))
    lab.until("somebody leads again", lambda: lab.desc().leader_epoch > before.leader_epoch)
    lab.until_isr(1, 2, 3)
    lab.until_quiet()
