"""Profile `storage`: one broker and its disk, with small segments and every way to lose bytes.

Power losses, also while deleted names can come back and with a checkpoint gone; kills, clean stops,
full and failing disks, syncs that fail, flipped bits in records and in headers. One replica has
nobody to ask: what a promise of `tidelog.fsync` covers must be there after a power loss, everything
after a kill, and around damage everything is served.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tidelog.worlds.simulator.cluster import SimNodeLayout, host_of
from tidelog.worlds.simulator.profiles.plan import ReaderPlan, RunPlan, TopicPlan, WriterPlan
from tidelog.worlds.simulator.profiles.replication_plan import make_writers
from tidelog.worlds.simulator.steps import PlanStep

NODE = SimNodeLayout(1)
STAYS_MS = 60_000
"""Longer than any run: damage is repaired in the end."""
EXTRAS = ("extra-1", "extra-2")


def make_storage_plan(seed: int) -> RunPlan:
    """Everything that this seed decides before the run."""
    random = Random(f"{seed}/storage plan")
    topics = tuple(_topic(random, name) for name in ("first", "second"))
    writers = make_writers(random)
    duration_ms = random.choice((1_500, 2_500, 5_000))
    return RunPlan(
        seed=seed,
        nodes=(NODE,),
        settings=_settings(random),
        topics=topics,
        writers=writers,
        readers=_readers(random),
        page_bytes=random.choice((256, 1_024, 4_096)),
        sync_us_max=random.choice((300, 3_000, 30_000)),
        duration_ms=duration_ms,
        idle_ms=25_000 if random.random() < 0.03 else 0,
        extra_topics=tuple(_topic(random, name) for name in EXTRAS),
        serves_damage=True,
        steps=tuple(StorageSteps(random, topics, writers).make(duration_ms)),
    )


def _settings(random: Random) -> dict[str, str]:
    """A broker that does its chores often, as short runs need it."""
    return {
        "tidelog.fsync": random.choice(("none", "none", "group", "group", "always")),
        "auto.create.topics.enable": "false",
        "log.retention.check.interval.ms": "400",
        "log.flush.offset.checkpoint.interval.ms": "700",
        "log.flush.scheduler.interval.ms": "300",
        "log.segment.delete.delay.ms": "200",
        "producer.id.expiration.ms": "20000",
        "producer.id.expiration.check.interval.ms": "5000",
        "metadata.log.max.record.bytes.between.snapshots": random.choice(("3000", "20971520")),
    }


def _topic(random: Random, name: str) -> TopicPlan:
    """Small segments and odd settings, so that a short run meets every branch."""
    configs = {
        "internal.segment.bytes": str(random.choice((1_600, 3_000, 8_000, 30_000))),
        "index.interval.bytes": str(random.choice((0, 200, 1_000, 4_096))),
        "file.delete.delay.ms": str(random.choice((0, 100, 1_000))),
    }
    if random.random() < 0.3:
        configs["segment.ms"] = str(random.choice((200, 1_000)))
    if random.random() < 0.2:
        configs["segment.index.bytes"] = str(random.choice((24, 60, 240)))
    if random.random() < 0.15:
        configs["retention.ms"] = str(random.choice((500, 3_000)))
    if random.random() < 0.15:
        configs["retention.bytes"] = str(random.choice((1_000, 8_000)))
    if random.random() < 0.2:
        configs["message.timestamp.type"] = "LogAppendTime"
    if random.random() < 0.2:
        configs["compression.type"] = random.choice(("gzip", "lz4", "zstd", "snappy"))
    if random.random() < 0.2:
        configs["flush.messages"] = str(random.choice((1, 5)))
    return TopicPlan(
        name=name, partitions=random.randint(1, 3), replication_factor=1, configs=configs
    )


def _readers(random: Random) -> tuple[ReaderPlan, ...]:
    return (
        ReaderPlan(name="reader-1", is_plain=False, is_restless=random.random() < 0.5, rack=None),
        ReaderPlan(name="reader-2", is_plain=True, is_restless=True, rack=None),
    )


class StorageSteps:
    """What happens, drawn one after another."""

    def __init__(
        self, random: Random, topics: Sequence[TopicPlan], writers: Sequence[WriterPlan]
    ) -> None:
        self._random = random
        self._topics = topics
        self._clients = [*(writer.name for writer in writers), "reader-1", "reader-2", "admin"]
        self._verbs = dict(STORAGE_VERBS)
        if random.random() < 0.7:
            del self._verbs["flip bit"]
        if random.random() < 0.9:
            del self._verbs["flip header bit"]

    def make(self, duration_ms: int) -> list[PlanStep]:
        random = self._random
        steps = []
        at_ms = random.randint(50, 400)
        while at_ms < duration_ms:
            verb = random.choices(list(self._verbs), list(self._verbs.values()))[0]
            steps.append(self._step(at_ms, verb))
            at_ms += random.randint(15, 450)
        return steps

    def _step(self, at_ms: int, verb: str) -> PlanStep:
        random = self._random
        host = host_of(NODE.node_id)
        down_ms = random.choice((5, 50, 200, 600))
        long_ms = random.choice((100, 500, 1_500, 3_000))
        if verb in ("flip bit", "flip header bit"):
            return PlanStep(at_ms, verb, (self._partition(),), STAYS_MS)
        if verb in ("delete records", "search by time"):
            return PlanStep(at_ms, verb, (self._partition(),))
        if verb == "create topic":
            return PlanStep(at_ms, verb, (random.choice(EXTRAS),))
        if verb == "delete topic":
            return PlanStep(at_ms, verb)
        if verb == "cut one way":
            pair = [random.choice(self._clients), host]
            random.shuffle(pair)
            return PlanStep(at_ms, verb, tuple(pair), long_ms)
        if verb in ("pause", "fill disk", "fail disk", "fail sync", "worsen network", "jump clock"):
            return PlanStep(at_ms, verb, (host,), long_ms)
        return PlanStep(at_ms, verb, (host,), down_ms)

    def _partition(self) -> str:
        topic = self._random.choice(self._topics)
        return f"{topic.name}-{self._random.randrange(topic.partitions)}"


STORAGE_VERBS: tuple[tuple[str, int], ...] = (
    ("kill", 10),
    ("stop", 2),
    ("pause", 2),
    ("lose power", 1),
    ("lose power and a checkpoint", 2),
    ("lose power amid deletion", 1),
    ("lose power amid deletion and a checkpoint", 2),
    ("fill disk", 2),
    ("fail disk", 2),
    ("fail sync", 2),
    ("flip bit", 3),
    ("flip header bit", 3),
    ("cut one way", 2),
    ("worsen network", 1),
    ("jump clock", 1),
    ("create topic", 5),
    ("delete topic", 3),
    ("delete records", 8),
    ("search by time", 6),
)
"""What can happen, and how often compared with the rest."""
