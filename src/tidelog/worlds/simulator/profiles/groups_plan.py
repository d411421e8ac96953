"""The plan of a groups run: a cluster, groups with their members, and the steps of what happens.

The same seed gives the same plan, and a plan with fewer steps is a plan as well. The cluster is a
plan of the profile `replication` without producers and consumers, so that its faults strike here,
too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tidelog.core.model.topic_name import OFFSETS_TOPIC
from tidelog.worlds.simulator.cluster import host_of, three_nodes
from tidelog.worlds.simulator.profiles.plan import RunPlan, TopicPlan
from tidelog.worlds.simulator.profiles.replication_plan import quick_settings
from tidelog.worlds.simulator.steps import PlanStep

FORMED_MS = 600
"""Until then everything is left alone: the first members join."""
SOLO = "solo"
"""The group that has no members: its committers manage themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberPlan:
    """A member of a group; one with an instance id is static."""

    name: str
    group: str
    instance: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    commit_interval_ms: int
    remote_assignor: str = ""
    """Of the members of a KIP-848 group, and of no others."""
    revocation_ms: int = 0
    """How long such a member takes to release what it is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsPlan:
    """One seed's world."""

    seed: int
    cluster: RunPlan
    topic: TopicPlan
    offsets_partitions: int
    members: tuple[MemberPlan, ...]
    committers: tuple[str, ...]
    """Of the group without members."""
    steps: tuple[PlanStep, ...]

    @property
    def groups(self) -> list[str]:
        """Those with members."""
        return list(dict.fromkeys(member.group for member in self.members))


def make_groups_plan(seed: int) -> GroupsPlan:
    """Everything that this seed decides before the run."""
    random = Random(f"{seed}/groups plan")
    members = _members(random)
    offsets_partitions = random.choice((1, 2, 3, 5))
    duration_ms = random.choice((2_500, 3_500, 5_000))
    steps = _GroupSteps(random, members, offsets_partitions).make(duration_ms)
    # Power may fail everywhere, so what is committed has to be on the disks.
    loses_power = any("power" in step.verb for step in steps)
    fsync = random.choice(("group", "always") if loses_power else ("none", "none", "group"))
    topic = TopicPlan(
        name="orders", partitions=random.choice((2, 3, 4)), replication_factor=1, configs={}
    )
    settings = quick_settings(random) | {
        "tidelog.fsync": fsync,
        # The observer compares logs batch by batch; compaction has a profile of its own.
        "log.cleaner.enable": "false",
        "group.initial.rebalance.delay.ms": random.choice(("0", "0", "200")),
        "group.min.session.timeout.ms": "100",
        "offsets.topic.num.partitions": str(offsets_partitions),
        "offsets.commit.timeout.ms": random.choice(("400", "1000")),
        "group.consumer.session.timeout.ms": random.choice(("500", "900")),
        "group.consumer.heartbeat.interval.ms": "100",
        "group.consumer.assignment.interval.ms": random.choice(("0", "150")),
    }
    return GroupsPlan(
        seed=seed,
        cluster=RunPlan(
            seed=seed,
            nodes=three_nodes(),
            settings=settings,
            topics=(topic,),
            writers=(),
            readers=(),
            page_bytes=random.choice((256, 4_096)),
            sync_us_max=random.choice((300, 3_000)),
            duration_ms=duration_ms,
            idle_ms=0,
            steps=tuple(steps),
        ),
        topic=topic,
        offsets_partitions=offsets_partitions,
        members=members,
        committers=("committer-1", "committer-2"),
        steps=tuple(steps),
    )


def _members(random: Random) -> tuple[MemberPlan, ...]:
    """Classic groups of dynamic and, some or all, of static members, and a KIP-848 group."""
    made: list[MemberPlan] = []
    for group, count in (("dynamic", random.choice((2, 3, 4))), ("static", random.choice((2, 3)))):
        session_timeout_ms = random.choice((500, 900))
        for _ in range(count):
            number = len(made) + 1
            is_static = group == "static" and random.random() < 0.8
            made.append(
                MemberPlan(
                    name=f"member-{number}",
                    group=group,
                    instance=f"instance-{number}" if is_static else None,
                    session_timeout_ms=session_timeout_ms,
                    rebalance_timeout_ms=random.choice((600, 1_000)),
                    commit_interval_ms=random.choice((80, 150, 300)),
                )
            )
    made += _consumer_members(random, len(made))
    return tuple(made)


def _consumer_members(random: Random, first: int) -> list[MemberPlan]:
    static_chance = random.choice((0, 0, 0.6))
    return [
        MemberPlan(
            name=f"member-{number}",
            group="consumer",
            instance=f"instance-{number}" if random.random() < static_chance else None,
            session_timeout_ms=0,
            rebalance_timeout_ms=random.choice((400, 1_000)),
            revocation_ms=random.choice((1, 150, 300, 600)),
            commit_interval_ms=random.choice((80, 150, 300)),
            remote_assignor=random.choice(("uniform", "range")),
        )
        for number in range(first + 1, first + 1 + random.choice((2, 3, 4)))
    ]


class _GroupSteps:
    """What happens, drawn one after another."""

    def __init__(
        self, random: Random, members: Sequence[MemberPlan], offsets_partitions: int
    ) -> None:
        self._random = random
        self._members = members
        self._offsets_partitions = offsets_partitions

    def make(self, duration_ms: int) -> list[PlanStep]:
        random = self._random
        pace_ms = random.choice((200, 400))
        steps = []
        at_ms = FORMED_MS + random.randint(0, 300)
        verbs, weights = zip(*GROUP_VERBS, strict=True)
        while at_ms < duration_ms:
            steps.append(self._step(at_ms, random.choices(verbs, weights)[0]))
            at_ms += random.randint(pace_ms // 3, 2 * pace_ms)
        return steps

    def _step(self, at_ms: int, verb: str) -> PlanStep:
        random = self._random
        brief_ms = random.choice((30, 100, 300))
        long_ms = random.choice((100, 500, 1_200, 2_000))
        member = random.choice(self._members)
        if "leader" in verb or verb == "depose and elect again":
            partition = f"{OFFSETS_TOPIC}-{random.randrange(self._offsets_partitions)}"
            lasting_ms = long_ms if "leader" in verb else random.choice((900, 1_300, 1_800))
            return PlanStep(at_ms, verb, (partition,), lasting_ms)
        if verb in ("kill", "stop", "pause", "lose power", "isolate"):
            return PlanStep(at_ms, verb, (self._host(),), long_ms)
        if verb in ("kill controller", "kill all", "lose all power"):
            return PlanStep(at_ms, verb, (), brief_ms)
        if verb in ("cut", "cut one way", "slow down"):
            return PlanStep(at_ms, verb, self._pair(), long_ms)
        if verb == "hold":
            return PlanStep(at_ms, verb, (*self._pair(), "replica"), long_ms)
        if verb in ("kill member for good", "kill member and coordinator"):
            return PlanStep(at_ms, verb, (member.name,), brief_ms)
        if verb in ("kill member", "cut member off", "leave"):
            return PlanStep(at_ms, verb, (member.name,), long_ms)
        if verb in ("kill group", "delete group"):
            group = random.choice((member.group, SOLO if verb == "delete group" else member.group))
            return PlanStep(at_ms, verb, (group,), 0 if verb == "delete group" else long_ms)
        if verb == "worsen network":
            return PlanStep(at_ms, verb, (self._host(),), long_ms)
        if verb == "delete group and fail over":
            return PlanStep(at_ms, verb, (SOLO,), brief_ms)
        assert verb in ("elect preferred", "delete offset"), verb
        return PlanStep(at_ms, verb, (OFFSETS_TOPIC if verb == "elect preferred" else SOLO,))

    def _host(self) -> str:
        return host_of(self._random.choice(three_nodes()).node_id)

    def _pair(self) -> tuple[str, str]:
        """Two brokers, or a broker and a member, in one order or the other."""
        hosts = [host_of(node.node_id) for node in three_nodes()]
        one = self._random.choice(hosts)
        others = [host for host in hosts if host != one]
        if self._random.random() < 0.4:
            others = [member.name for member in self._members]
        pair = [one, self._random.choice(others)]
        self._random.shuffle(pair)
        return pair[0], pair[1]


GROUP_VERBS: tuple[tuple[str, int], ...] = (
    ("kill", 2),
    ("stop", 2),
    ("pause", 2),
    ("lose power", 1),
    ("isolate", 2),
    ("kill leader", 5),
    ("stop leader", 3),
    ("pause leader", 5),
    ("isolate leader", 6),
    ("depose and elect again", 4),
    ("lose power of leader", 2),
    ("kill controller", 2),
    ("kill all", 1),
    ("lose all power", 1),
    ("cut", 3),
    ("cut one way", 4),
    ("slow down", 2),
    ("hold", 4),
    ("worsen network", 1),
    ("elect preferred", 4),
    ("kill member", 5),
    ("kill member for good", 1),
    ("kill member and coordinator", 3),
    ("cut member off", 3),
    ("leave", 3),
    ("kill group", 2),
    ("delete group", 4),
    ("delete offset", 3),
    ("delete group and fail over", 3),
)
"""What can happen, and how often compared with the rest."""
