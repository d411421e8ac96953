"""Profile `replication`: clusters of three to five nodes, and everything that separates them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tidelog.judge.history import WriteAcks
from tidelog.worlds.simulator.cluster import BROKER, CONTROLLER, SimNodeLayout, host_of
from tidelog.worlds.simulator.profiles.plan import ReaderPlan, RunPlan, TopicPlan, WriterPlan
from tidelog.worlds.simulator.steps import PlanStep

FORMED_MS = 400
"""Until then the cluster is left alone: failures to form are not tested here."""


def make_replication_plan(seed: int) -> RunPlan:
    """Everything that this seed decides before the run."""
    random = Random(f"{seed}/plan")
    nodes = _nodes(random)
    brokers = [node.node_id for node in nodes if BROKER in node.roles]
    topics = _topics(random, len(brokers))
    duration_ms = random.choice((2_500, 4_000, 6_000))
    steps = ReplicationSteps(random, nodes, topics).make(duration_ms)
    steps += reassignments(Random(f"{seed}/reassignments"), brokers, topics, duration_ms)
    return RunPlan(
        seed=seed,
        nodes=nodes,
        settings=quick_settings(random),
        topics=topics,
        writers=make_writers(random),
        readers=_readers(random, nodes),
        page_bytes=random.choice((256, 1_024, 4_096)),
        sync_us_max=random.choice((300, 3_000, 20_000)),
        duration_ms=duration_ms,
        idle_ms=40_000 if random.random() < 0.04 else 0,
        steps=tuple(sorted(steps, key=lambda step: step.at_ms)),
    )


def _nodes(random: Random) -> tuple[SimNodeLayout, ...]:
    """Three combined nodes; sometimes racks, more brokers, or controllers of their own."""
    dice = random.random()
    if dice < 0.6:
        racks = random.choice(((None, None, None), ("a", "b", "a")))
        return tuple(SimNodeLayout(number + 1, rack) for number, rack in enumerate(racks))
    if dice < 0.75:  # two racks and a tiebreaker outside of both
        return (
            SimNodeLayout(1, "a"),
            SimNodeLayout(2, "b"),
            SimNodeLayout(3, "a", (BROKER,)),
            SimNodeLayout(9, None, (CONTROLLER,)),
        )
    if dice < 0.9:  # brokers beside three voters
        return (
            *(SimNodeLayout(number, None) for number in (1, 2, 3)),
            SimNodeLayout(4, None, (BROKER,)),
        )
    return (
        *(SimNodeLayout(number, None, (CONTROLLER,)) for number in (11, 12, 13)),
        *(SimNodeLayout(number, None, (BROKER,)) for number in (1, 2)),
    )


def quick_settings(random: Random) -> dict[str, str]:
    """Impatient nodes, as short runs need them."""
    return {
        "tidelog.fsync": random.choice(("none", "none", "group", "group", "always")),
        "tidelog.failure.detection": random.choice(("connection", "connection", "session")),
        "broker.heartbeat.interval.ms": "200",
        "broker.session.timeout.ms": random.choice(("900", "1500")),
        "replica.lag.time.max.ms": random.choice(("600", "1500")),
        "replica.fetch.wait.max.ms": random.choice(("200", "500")),
        "replica.fetch.backoff.ms": "100",
        "replica.socket.timeout.ms": "1200",
        "controller.quorum.election.timeout.ms": "300",
        "controller.quorum.fetch.timeout.ms": random.choice(("800", "1500")),
        "controller.quorum.election.backoff.max.ms": "200",
        "controller.quorum.request.timeout.ms": "700",
        "leader.imbalance.check.interval.seconds": random.choice(("1", "3", "300")),
        "unclean.leader.election.interval.ms": random.choice(("500", "2000")),
        "metadata.log.max.record.bytes.between.snapshots": random.choice(("3000", "20971520")),
        "min.insync.replicas": "1",
        "producer.id.expiration.ms": "20000",
        "producer.id.expiration.check.interval.ms": "5000",
        "log.retention.check.interval.ms": "60000",
        "log.flush.offset.checkpoint.interval.ms": "1500",
        "log.flush.scheduler.interval.ms": "5000",
        "replica.high.watermark.checkpoint.interval.ms": random.choice(("200", "1000")),
        "replica.selector.class": random.choice(
            (
                "org.apache.kafka.common.replica.LeaderSelector",
                "org.apache.kafka.common.replica.RackAwareReplicaSelector",
            )
        ),
    }


def _topics(random: Random, brokers: int) -> tuple[TopicPlan, ...]:
    """One with the safest settings that the cluster can have, one by chance."""
    factor = min(3, brokers)
    safest = {"min.insync.replicas": str(min(2, factor))}
    if random.random() < 0.3:
        safest["internal.segment.bytes"] = "4000"
    made = [
        TopicPlan(
            name="safe",
            partitions=random.choice((1, 3, 4)),
            replication_factor=factor,
            configs=safest,
        )
    ]
    configs = {"min.insync.replicas": random.choice(("1", "1", "2"))}
    if random.random() < 0.3:
        configs["unclean.leader.election.enable"] = "true"
    if random.random() < 0.5:
        configs["internal.segment.bytes"] = "4000"
    if random.random() < 0.2:
        configs["max.message.bytes"] = "700"
    made.append(
        TopicPlan(
            name="loose",
            partitions=random.choice((1, 2)),
            replication_factor=random.randint(1, factor),
            configs=configs,
        )
    )
    return tuple(made)


def make_writers(random: Random) -> tuple[WriterPlan, ...]:
    """Always one with acks=all, one with acks=1, one by chance."""
    kinds = [
        ("idempotent", WriteAcks.ALL, True, True),
        ("hasty", WriteAcks.LEADER, False, False),
        random.choice(
            (
                ("idempotent", WriteAcks.ALL, True, True),
                ("once", WriteAcks.ALL, False, False),
                ("repeating", WriteAcks.ALL, False, True),
                ("careless", WriteAcks.NONE, False, False),
            )
        ),
    ]
    return tuple(
        WriterPlan(
            name=f"{name}-{number}",
            acks=acks,
            is_idempotent=is_idempotent,
            retries=retries,
            records_max=random.choice((3, 6, 12)),
            interval_ms=random.choice((40, 80, 160)),
        )
        for number, (name, acks, is_idempotent, retries) in enumerate(kinds, 1)
    )


def _readers(random: Random, nodes: Sequence[SimNodeLayout]) -> tuple[ReaderPlan, ...]:
    racks = [node.rack for node in nodes if node.rack is not None]
    return (
        ReaderPlan(
            name="reader-1",
            is_plain=False,
            is_restless=random.random() < 0.5,
            rack=random.choice(racks) if racks else None,
            resets=random.random() < 0.5,
        ),
        ReaderPlan(name="reader-2", is_plain=True, is_restless=random.random() < 0.5, rack=None),
    )


class ReplicationSteps:
    """What happens, drawn one after another."""

    def __init__(
        self, random: Random, nodes: Sequence[SimNodeLayout], topics: Sequence[TopicPlan]
    ) -> None:
        self._random = random
        self._nodes = nodes
        self._topics = topics
        self._created = 0

    def make(self, duration_ms: int) -> list[PlanStep]:
        random = self._random
        pace_ms = random.choice((150, 300, 600))
        steps = []
        at_ms = FORMED_MS + random.randint(0, 300)
        while at_ms < duration_ms:
            verbs, weights = zip(*REPLICATION_VERBS, strict=True)
            step = self._step(at_ms, random.choices(verbs, weights)[0])
            if step is not None:
                steps.append(step)
            at_ms += random.randint(pace_ms // 3, 2 * pace_ms)
        return steps

    def _step(self, at_ms: int, verb: str) -> PlanStep | None:
        random = self._random
        brief_ms = random.choice((30, 100, 300, 700))
        long_ms = random.choice((100, 500, 1_500, 2_500))
        if verb in ("kill", "stop", "pause", "lose power", "isolate"):
            return PlanStep(at_ms, verb, (self._host(),), long_ms if verb != "kill" else brief_ms)
        if verb == "crash while joining":
            return PlanStep(at_ms, verb, (self._partition(),), random.choice((200, 400, 800)))
        if verb == "flip bit":
            return PlanStep(at_ms, verb, (self._partition(),), 2 * long_ms)
        if verb in ("kill leader", "stop leader", "pause leader", "lose power of leader"):
            return PlanStep(at_ms, verb, (self._partition(),), long_ms)
        if verb == "kill controller":
            return PlanStep(at_ms, verb, (), brief_ms)
        if verb in ("cut", "cut one way", "slow down"):
            return PlanStep(at_ms, verb, self._pair(), long_ms)
        if verb == "hold":
            purpose = random.choice(("replica", "replica", "quorum", "controller"))
            return PlanStep(at_ms, verb, (*self._pair(), purpose), long_ms)
        if verb in ("fill disk", "fail disk", "fail sync", "unregister"):
            return PlanStep(at_ms, verb, (self._host(),), long_ms)
        if verb in ("kill all", "lose all power"):
            return PlanStep(at_ms, verb, (), brief_ms)
        if verb in ("worsen network", "jump clock"):
            return PlanStep(at_ms, verb, (self._host(),), long_ms)
        if verb == "wipe":
            return self._wipe(at_ms, long_ms)
        return self._administration(at_ms, verb)

    def _administration(self, at_ms: int, verb: str) -> PlanStep | None:
        random = self._random
        topic = random.choice(self._topics)
        if verb == "delete records":
            return PlanStep(at_ms, verb, (self._partition(),))
        if verb in ("elect preferred", "add partition"):
            return PlanStep(at_ms, verb, (topic.name,))
        if verb == "elect uncleanly":
            return PlanStep(at_ms, verb, (topic.name,)) if topic.allows_unclean else None
        if verb == "change minimum":
            minimum = random.randint(1, min(2, topic.replication_factor))
            return PlanStep(at_ms, verb, (topic.name, str(minimum)))
        if verb == "allow unclean":
            # Not for the safe topic: what it holds is never excused.
            return PlanStep(at_ms, verb, (self._topics[-1].name, random.choice(("true", "false"))))
        if verb == "create topic":
            self._created += 1
            return PlanStep(at_ms, verb, (f"extra-{self._created}",))
        assert verb == "delete topic", verb
        return PlanStep(at_ms, verb, ()) if self._created else None

    def _wipe(self, at_ms: int, for_ms: int) -> PlanStep | None:
        """Only where no vote is kept: a voter that forgets is not what Raft is made for."""
        hosts = [host_of(n.node_id) for n in self._nodes if CONTROLLER not in n.roles]
        return PlanStep(at_ms, "wipe", (self._random.choice(hosts),), for_ms) if hosts else None

    def _host(self) -> str:
        return host_of(self._random.choice(self._nodes).node_id)

    def _pair(self) -> tuple[str, str]:
        one, other = self._random.sample(self._nodes, 2)
        return host_of(one.node_id), host_of(other.node_id)

    def _partition(self) -> str:
        topic = self._random.choice(self._topics)
        return f"{topic.name}-{self._random.randrange(topic.partitions)}"


def reassignments(
    random: Random, brokers: Sequence[int], topics: Sequence[TopicPlan], duration_ms: int
) -> list[PlanStep]:
    """In half of the runs partitions move; some turn back, or get another target on the way.

    The safe topic keeps as many replicas as its minimum: what it holds is never excused.
    """
    steps: list[PlanStep] = []
    if random.random() < 0.5:
        return steps
    for _ in range(random.randint(1, 6)):
        topic = random.choice(topics)
        partition = f"{topic.name}-{random.randrange(topic.partitions)}"
        least = min(2, topic.replication_factor) if topic is topics[0] else 1
        at_ms = random.randint(FORMED_MS, duration_ms)
        targets = random.choice((1, 1, 2))
        for _ in range(targets):
            replicas = random.sample(list(brokers), random.randint(least, min(3, len(brokers))))
            target = ",".join(str(each) for each in replicas)
            steps.append(PlanStep(at_ms, "reassign", (partition, target)))
            at_ms += random.choice((1, 10, 60, 300))
        if random.random() < 0.4:
            steps.append(PlanStep(at_ms, "cancel reassignment", (partition,)))
    return steps


REPLICATION_VERBS: tuple[tuple[str, int], ...] = (
    ("kill", 6),
    ("kill leader", 8),
    ("kill controller", 5),
    ("stop", 4),
    ("stop leader", 4),
    ("pause", 3),
    ("pause leader", 4),
    ("lose power", 3),
    ("lose power of leader", 3),
    ("crash while joining", 2),
    ("isolate", 3),
    ("cut", 3),
    ("cut one way", 4),
    ("slow down", 3),
    ("hold", 5),
    ("fill disk", 1),
    ("fail disk", 1),
    ("fail sync", 1),
    ("flip bit", 2),
    ("kill all", 1),
    ("lose all power", 1),
    ("worsen network", 2),
    ("jump clock", 1),
    ("wipe", 1),
    ("elect preferred", 3),
    ("elect uncleanly", 2),
    ("change minimum", 1),
    ("allow unclean", 1),
    ("add partition", 1),
    ("create topic", 2),
    ("delete topic", 2),
    ("delete records", 3),
    ("unregister", 1),
)
"""What can happen, and how often compared with the rest."""
