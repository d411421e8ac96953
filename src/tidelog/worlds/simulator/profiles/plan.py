"""The plan of a run: everything that chance decides beforehand, as data of one seed.

A cluster, its settings, its topics, its clients, and the steps of what happens to them. The same
seed gives the same plan, and a plan with fewer steps is a plan as well: that is how a failing seed
becomes a short story. A profile is a way to make plans; what carries them out and judges them is
the same for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidelog.judge.history import WriteAcks
from tidelog.worlds.simulator.cluster import BROKER, SimNodeLayout
from tidelog.worlds.simulator.steps import PlanStep


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlan:
    """A topic as it is created."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]

    @property
    def allows_unclean(self) -> bool:
        return self.configs.get("unclean.leader.election.enable") == "true"

    @property
    def has_retention(self) -> bool:
        """Whether its head goes by itself while the run lasts."""
        return "retention.ms" in self.configs or "retention.bytes" in self.configs


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterPlan:
    """A producer and how it writes."""

    name: str
    acks: WriteAcks
    is_idempotent: bool
    retries: bool
    records_max: int
    interval_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderPlan:
    """A consumer; a restless one seeks now and then, a plain one does without the client room."""

    name: str
    is_plain: bool
    is_restless: bool
    rack: str | None
    resets: bool = False
    """Where its position is gone, it begins again by its policy, instead of getting an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """One seed's world."""

    seed: int
    nodes: tuple[SimNodeLayout, ...]
    settings: Mapping[str, str]
    topics: tuple[TopicPlan, ...]
    writers: tuple[WriterPlan, ...]
    readers: tuple[ReaderPlan, ...]
    page_bytes: int
    sync_us_max: int
    duration_ms: int
    idle_ms: int
    """How long everything is left alone in the end: what only time does happens then."""
    steps: tuple[PlanStep, ...]
    extra_topics: tuple[TopicPlan, ...] = ()
    """Topics that a step may create; one that was deleted may be created again."""
    serves_damage: bool = False
    """Flipped bits stay until everybody has read past them; there is no replica to heal from."""

    @property
    def brokers(self) -> list[int]:
        return [node.node_id for node in self.nodes if BROKER in node.roles]
