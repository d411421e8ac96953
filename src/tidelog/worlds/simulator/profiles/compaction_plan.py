"""The plan of a compaction run: compacted topics with small segments, and keyed writers.

Where power may fail, what is committed is on disks, and no election is unclean: no acknowledged
value may ever be missing, so nothing in a plan excuses one.
"""

from __future__ import annotations

from random import Random

from tidelog.judge.history import WriteAcks
from tidelog.worlds.simulator.cluster import SimNodeLayout, host_of, three_nodes
from tidelog.worlds.simulator.profiles.plan import ReaderPlan, RunPlan, TopicPlan, WriterPlan
from tidelog.worlds.simulator.profiles.replication_plan import FORMED_MS, quick_settings
from tidelog.worlds.simulator.steps import PlanStep

TABLE, RECENT = "table", "recent"
FEW_KEYS_LOAD = "0.0009"
"""Of the smallest map that a broker takes, 1 MiB: room for 39 keys."""


def make_compaction_plan(seed: int) -> RunPlan:
    """Everything that this seed decides before the run."""
    random = Random(f"{seed}/compaction plan")
    nodes = (SimNodeLayout(1),) if random.random() < 0.35 else three_nodes()
    loses_power = random.random() < 0.6
    duration_ms = random.choice((2_000, 3_000, 4_000))
    topics = _topics(random, len(nodes))
    fsync = random.choice(("group", "group", "always")) if loses_power else "none"
    return RunPlan(
        seed=seed,
        nodes=nodes,
        settings=_settings(random) | {"tidelog.fsync": fsync},
        topics=topics,
        writers=_writers(random),
        readers=(
            ReaderPlan(name="reader-1", is_plain=False, is_restless=True, rack=None, resets=True),
        ),
        page_bytes=random.choice((256, 1_024, 4_096)),
        sync_us_max=random.choice((300, 3_000, 12_000)),
        duration_ms=duration_ms,
        idle_ms=0,
        steps=tuple(_steps(random, nodes, topics, duration_ms, loses_power=loses_power)),
    )


def _settings(random: Random) -> dict[str, str]:
    """Brokers that do their chores often, as short runs need them."""
    return quick_settings(random) | {
        "auto.create.topics.enable": "false",
        "log.cleaner.backoff.ms": random.choice(("20", "100", "300")),
        "log.cleaner.dedupe.buffer.size": "1048576",
        "log.cleaner.io.buffer.load.factor": random.choice(("0.9", "0.9", FEW_KEYS_LOAD)),
        "log.cleaner.io.buffer.size": random.choice(("100", "700", "524288")),
        "log.retention.check.interval.ms": "400",
        "log.flush.offset.checkpoint.interval.ms": random.choice(("200", "700")),
        "log.flush.scheduler.interval.ms": "300",
        "log.segment.delete.delay.ms": "200",
    }


def _topics(random: Random, brokers: int) -> tuple[TopicPlan, ...]:
    """One that is only compacted, one whose head goes as well."""
    made = []
    for name, policy in ((TABLE, "compact"), (RECENT, "compact,delete")):
        configs = {
            "cleanup.policy": policy,
            "min.insync.replicas": random.choice(("1", "2")) if brokers > 1 else "1",
            "internal.segment.bytes": str(random.choice((500, 900, 2_000))),
            "index.interval.bytes": str(random.choice((0, 200, 4_096))),
            "file.delete.delay.ms": str(random.choice((0, 100, 1_000))),
            "min.cleanable.dirty.ratio": random.choice(("0.01", "0.2", "0.5")),
            "delete.retention.ms": random.choice(("0", "400", "1500", "30000")),
            "max.compaction.lag.ms": random.choice(("1000", "2500")),
        }
        if random.random() < 0.4:
            configs["min.compaction.lag.ms"] = random.choice(("200", "900"))
        if random.random() < 0.3:
            configs["segment.ms"] = random.choice(("100", "400"))
        if random.random() < 0.3:
            configs["compression.type"] = random.choice(("gzip", "lz4", "zstd", "snappy"))
        if random.random() < 0.2:
            configs["message.timestamp.type"] = "LogAppendTime"
        if name == RECENT and random.random() < 0.7:
            configs["retention.ms"] = random.choice(("1500", "4000"))
        partitions = random.choice((1, 2)) if name == TABLE else 1
        factor = brokers if name == TABLE else random.randint(1, brokers)
        if factor == 1:
            configs["min.insync.replicas"] = "1"
        made.append(
            TopicPlan(name=name, partitions=partitions, replication_factor=factor, configs=configs)
        )
    return tuple(made)


def _writers(random: Random) -> tuple[WriterPlan, ...]:
    """All wait for all replicas: an answered value may never be missing."""
    kinds = (("idempotent", True, True), ("once", False, False))
    return tuple(
        WriterPlan(
            name=f"{name}-{number}",
            acks=WriteAcks.ALL,
            is_idempotent=is_idempotent,
            retries=retries,
            records_max=random.choice((3, 6, 12)),
            interval_ms=random.choice((30, 60, 110)),
        )
        for number, (name, is_idempotent, retries) in enumerate(kinds, 1)
    )


def _steps(
    random: Random,
    nodes: tuple[SimNodeLayout, ...],
    topics: tuple[TopicPlan, ...],
    duration_ms: int,
    *,
    loses_power: bool,
) -> list[PlanStep]:
    verbs = dict(COMPACTION_VERBS)
    if loses_power:
        verbs |= dict(POWER_VERBS)
    if len(nodes) > 1:
        verbs |= dict(CLUSTER_VERBS)
    pace_ms = random.choice((200, 350, 700))
    steps = []
    at_ms = FORMED_MS + random.randint(0, 600)
    while at_ms < duration_ms:
        verb = random.choices(list(verbs), list(verbs.values()))[0]
        steps.append(_step(random, nodes, topics, at_ms, verb))
        at_ms += random.randint(pace_ms // 3, 2 * pace_ms)
    return steps


def _step(
    random: Random,
    nodes: tuple[SimNodeLayout, ...],
    topics: tuple[TopicPlan, ...],
    at_ms: int,
    verb: str,
) -> PlanStep:
    brief_ms = random.choice((30, 100, 300))
    long_ms = random.choice((100, 500, 1_200))
    if verb in ("kill controller", "kill all", "lose all power"):
        return PlanStep(at_ms, verb, (), brief_ms)
    topic = random.choice(topics)
    if "leader" in verb:
        partition = f"{topic.name}-{random.randrange(topic.partitions)}"
        return PlanStep(at_ms, verb, (partition,), long_ms)
    if verb == "elect preferred":
        return PlanStep(at_ms, verb, (topic.name,))
    if verb in ("cut", "cut one way", "hold"):
        one, other = random.sample(nodes, 2)
        pair = (host_of(one.node_id), host_of(other.node_id))
        return PlanStep(at_ms, verb, pair if verb != "hold" else (*pair, "replica"), long_ms)
    host = host_of(random.choice(nodes).node_id)
    return PlanStep(at_ms, verb, (host,), long_ms if verb in LASTING else brief_ms)


LASTING = frozenset({"pause", "isolate", "fill disk", "fail disk", "fail sync", "worsen network"})

COMPACTION_VERBS: tuple[tuple[str, int], ...] = (
    ("kill", 8),
    ("stop", 2),
    ("pause", 2),
    ("fill disk", 1),
    ("fail disk", 2),
    ("worsen network", 1),
)
"""What can happen to one broker, and how often compared with the rest."""

POWER_VERBS: tuple[tuple[str, int], ...] = (
    ("lose power", 3),
    ("lose power amid deletion", 8),
    ("lose power amid deletion and a checkpoint", 1),
    ("lose power and a checkpoint", 1),
    ("lose all power", 2),
    ("fail sync", 1),
)
"""Only where everything committed is synced. A swap renames segments, as a deletion does."""

CLUSTER_VERBS: tuple[tuple[str, int], ...] = (
    ("kill leader", 4),
    ("stop leader", 2),
    ("pause leader", 3),
    ("isolate", 1),
    ("isolate leader", 4),
    ("kill controller", 1),
    ("kill all", 1),
    ("cut", 2),
    ("cut one way", 2),
    ("hold", 4),
    ("elect preferred", 3),
)
"""What separates replicas and makes leaders change."""
