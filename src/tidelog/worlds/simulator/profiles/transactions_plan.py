"""The plan of a transactions run: a cluster, transactional producers, readers and the steps.

The same seed gives the same plan, and a plan with fewer steps is a plan as well. The cluster is a
plan of the profile `replication` without its producers and consumers, so that its faults strike
here, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tidelog.core.model.topic_name import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from tidelog.worlds.simulator.cluster import host_of, three_nodes
from tidelog.worlds.simulator.profiles.plan import RunPlan, TopicPlan
from tidelog.worlds.simulator.profiles.replication_plan import quick_settings
from tidelog.worlds.simulator.steps import PlanStep

FORMED_MS = 500
"""Until then everything is left alone: the first transactions begin."""
SOURCE, TARGET = "orders", "bills"
"""Producers write to the first; what transforms it writes to the second."""
GROUP = "billing"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerPlan:
    """A transactional id and how it is used."""

    transactional_id: str
    is_version_2: bool
    produce_version: int
    timeout_ms: int
    request_timeout_ms: int
    abort_chance: float
    pace_ms: int
    transforms: bool = False
    """It makes the records of the target out of those of the source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionsPlan:
    """One seed's world."""

    seed: int
    cluster: RunPlan
    source: TopicPlan
    target: TopicPlan
    producers: tuple[ProducerPlan, ...]
    transactions_partitions: int
    offsets_partitions: int
    steps: tuple[PlanStep, ...]


def make_transactions_plan(seed: int) -> TransactionsPlan:
    """Everything that this seed decides before the run."""
    random = Random(f"{seed}/transactions plan")
    producers = _producers(random)
    segments = {"internal.segment.bytes": "4000"} if random.random() < 0.4 else {}
    source, target = (
        TopicPlan(
            name=name,
            partitions=random.choice((2, 3)),
            replication_factor=3,
            configs={"min.insync.replicas": "2", **segments},
        )
        for name in (SOURCE, TARGET)
    )
    transactions_partitions, offsets_partitions = random.choice((1, 2, 3)), random.choice((1, 2))
    duration_ms = random.choice((1_800, 2_500, 3_500))
    partitions = [
        *_names(TRANSACTIONS_TOPIC, transactions_partitions) * 2,
        *_names(OFFSETS_TOPIC, offsets_partitions),
        *_names(SOURCE, source.partitions),
        *_names(TARGET, target.partitions),
    ]
    steps = _TransactionSteps(random, producers, partitions).make(duration_ms)
    settings = _settings(random, steps) | {
        "offsets.topic.num.partitions": str(offsets_partitions),
        "transaction.state.log.num.partitions": str(transactions_partitions),
    }
    return TransactionsPlan(
        seed=seed,
        cluster=RunPlan(
            seed=seed,
            nodes=three_nodes(),
            settings=settings,
            topics=(source, target),
            writers=(),
            readers=(),
            page_bytes=random.choice((256, 4_096)),
            sync_us_max=random.choice((300, 3_000)),
            duration_ms=duration_ms,
            idle_ms=0,
            steps=tuple(steps),
        ),
        source=source,
        target=target,
        producers=producers,
        transactions_partitions=transactions_partitions,
        offsets_partitions=offsets_partitions,
        steps=tuple(steps),
    )


def _settings(random: Random, steps: Sequence[PlanStep]) -> dict[str, str]:
    # Power may fail everywhere, so what is committed has to be on the disks.
    loses_power = any("power" in step.verb for step in steps)
    fsync = random.choice(("group", "always") if loses_power else ("none", "none", "group"))
    return quick_settings(random) | {
        "tidelog.fsync": fsync,
        # The observer compares logs batch by batch; compaction has a profile of its own.
        "log.cleaner.enable": "false",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": random.choice(
            ("100", "300")
        ),
    }


def _names(topic: str, partitions: int) -> list[str]:
    return [f"{topic}-{index}" for index in range(partitions)]


def _producers(random: Random) -> tuple[ProducerPlan, ...]:
    """At least one of each protocol, and one that transforms, of either."""
    protocols = [False, True, random.random() < 0.5]
    made = []
    for number, is_version_2 in enumerate(protocols, 1):
        made.append(_producer(random, f"tx-{number}", is_version_2, transforms=False))
    made.append(_producer(random, "tx-bill", random.random() < 0.5, transforms=True))
    return tuple(made)


def _producer(
    random: Random, transactional_id: str, is_version_2: bool, *, transforms: bool
) -> ProducerPlan:
    return ProducerPlan(
        transactional_id=transactional_id,
        is_version_2=is_version_2,
        produce_version=random.choice((12, 13)) if is_version_2 else 11,
        timeout_ms=random.choice((500, 900, 1_500)),
        request_timeout_ms=random.choice((250, 600)),
        abort_chance=random.choice((0.1, 0.3)),
        pace_ms=random.choice((60, 150)),
        transforms=transforms,
    )


class _TransactionSteps:
    """What happens, drawn one after another."""

    def __init__(
        self, random: Random, producers: Sequence[ProducerPlan], partitions: Sequence[str]
    ) -> None:
        self._random = random
        self._producers = producers
        self._partitions = partitions

    def make(self, duration_ms: int) -> list[PlanStep]:
        random = self._random
        pace_ms = random.choice((200, 400))
        steps = []
        at_ms = FORMED_MS + random.randint(0, 300)
        verbs, weights = zip(*TRANSACTION_VERBS, strict=True)
        while at_ms < duration_ms:
            steps.append(self._step(at_ms, random.choices(verbs, weights)[0]))
            at_ms += random.randint(pace_ms // 3, 2 * pace_ms)
        return steps

    def _step(self, at_ms: int, verb: str) -> PlanStep:
        random = self._random
        brief_ms = random.choice((30, 100, 300))
        long_ms = random.choice((100, 500, 1_200, 2_000))
        partition = random.choice(self._partitions)
        producer = random.choice(self._producers).transactional_id
        if verb == "depose and elect again":
            return PlanStep(at_ms, verb, (partition,), random.choice((900, 1_300)))
        if verb == "strand leader":
            topics = [each for each in self._partitions if not each.startswith("__")]
            return PlanStep(at_ms, verb, (random.choice(topics),), random.choice((400, 700, 1_200)))
        if "leader" in verb:
            return PlanStep(at_ms, verb, (partition,), long_ms)
        if verb in ("kill", "stop", "pause", "lose power", "isolate"):
            return PlanStep(at_ms, verb, (self._host(),), long_ms)
        if verb in ("kill controller", "kill all", "lose all power"):
            return PlanStep(at_ms, verb, (), brief_ms)
        if verb in ("cut", "cut one way", "slow down"):
            return PlanStep(at_ms, verb, self._pair(), long_ms)
        if verb == "hold":
            purpose = random.choice(("replica", "coordinator", "coordinator", "client"))
            pair = self._pair()
            if purpose == "coordinator":
                return PlanStep(at_ms, "hold coordinator", (self._classic(producer),), 2_500)
            return PlanStep(at_ms, verb, (*pair, purpose), long_ms)
        if verb == "worsen network":
            return PlanStep(at_ms, verb, (self._host(),), long_ms)
        if verb == "elect preferred":
            return PlanStep(at_ms, verb, (partition.rpartition("-")[0],))
        if verb == "send late marker":
            newer = [each.transactional_id for each in self._producers if each.is_version_2]
            return PlanStep(at_ms, verb, (random.choice(newer),))
        assert verb in PRODUCER_VERBS, verb
        if verb == "hold back producer":
            lasting_ms = 1_300 if long_ms > 100 else 700
            return PlanStep(at_ms, verb, (self._classic(producer),), lasting_ms)
        return PlanStep(at_ms, verb, (producer,), long_ms)

    def _classic(self, transactional_id: str) -> str:
        """This one, or one without an epoch for each transaction: what is late is worse for it."""
        classic = [each.transactional_id for each in self._producers if not each.is_version_2]
        return transactional_id if transactional_id in classic else classic[0]

    def _host(self) -> str:
        return host_of(self._random.choice(three_nodes()).node_id)

    def _pair(self) -> tuple[str, str]:
        one, other = self._random.sample([host_of(node.node_id) for node in three_nodes()], 2)
        return one, other


PRODUCER_VERBS = frozenset(
    {
        "kill producer",
        "kill producer for good",
        "start twin",
        "pause producer",
        "pause and start twin",
        "cut producer off",
        "hold back producer",
    }
)
TRANSACTION_VERBS: tuple[tuple[str, int], ...] = (
    ("kill", 2),
    ("stop", 2),
    ("pause", 2),
    ("lose power", 1),
    ("isolate", 2),
    ("kill leader", 6),
    ("stop leader", 3),
    ("pause leader", 4),
    ("isolate leader", 5),
    ("depose and elect again", 3),
    ("strand leader", 5),
    ("lose power of leader", 2),
    ("kill controller", 2),
    ("kill all", 1),
    ("lose all power", 1),
    ("cut", 3),
    ("cut one way", 4),
    ("slow down", 3),
    ("hold", 6),
    ("worsen network", 1),
    ("elect preferred", 4),
    ("kill producer", 4),
    ("kill producer for good", 1),
    ("start twin", 4),
    ("pause producer", 3),
    ("pause and start twin", 5),
    ("cut producer off", 3),
    ("hold back producer", 4),
    ("send late marker", 5),
)
"""What can happen, and how often compared with the rest."""
