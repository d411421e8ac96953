"""One seed over a cluster: what all profiles have in common.

A seed is two phases. In the first, clients work while the steps of the plan strike. Then everything
is healed, and within a bounded time the cluster must come to rest. What a profile adds is who
works, what rest means to it, and what is judged.
"""

from __future__ import annotations

import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial

from tidelog.judge.anomalies import CRASHED, NOT_RECOVERED, Anomaly
from tidelog.worlds.simulator.profiles.admin import WireAdmin
from tidelog.worlds.simulator.profiles.context import RunContext
from tidelog.worlds.simulator.profiles.faults import ClusterFaults
from tidelog.worlds.simulator.profiles.liveness import LivenessCheck
from tidelog.worlds.simulator.profiles.plan import TopicPlan
from tidelog.worlds.simulator.steps import ChosenStep, PlanStep, choose
from tidelog.worlds.simulator.verdict import Verdict
from tidelog.worlds.simulator.world import ConditionNotReached

READY_MS = 30_000
LOOK_AGAIN_MS = 20
LIVENESS_MS = 60_000


class ClusterRun(ABC):
    """One seed, with all steps of its plan or only some of them."""

    liveness: LivenessCheck

    def __init__(self, context: RunContext, *, only: Sequence[ChosenStep] | None = None) -> None:
        self.context = context
        self.world = context.world
        self.all_steps = context.plan.steps
        self.steps: list[PlanStep] = (
            list(self.all_steps) if only is None else choose(self.all_steps, only)
        )
        self.faults = ClusterFaults(context)
        self.admin = WireAdmin(context)
        self.traceback: str | None = None

    def run(self, *, with_digest: bool = False) -> Verdict:
        started_s = time.process_time()
        try:
            self._set_up()
            self._safety_phase()
            self._liveness_phase()
        except ConditionNotReached as error:
            self.context.report_anomaly(
                NOT_RECOVERED, "-", reason=str(error), missing=self.liveness.missing()
            )
        except Exception as error:
            self.context.report_anomaly(
                CRASHED, "-", error=type(error).__name__, message=str(error)
            )
            self.traceback = traceback.format_exc()
        return self._verdict(started_s, with_digest=with_digest)

    # What a profile adds.

    @abstractmethod
    def _set_up(self) -> None:
        """The cluster forms, and its clients begin."""

    @abstractmethod
    def _liveness_phase(self) -> None:
        """All is well from now on: everything comes to rest, and every doubt is settled."""

    @abstractmethod
    def _judge(self) -> list[Anomaly]:
        """What is found in the history of clients."""

    def _strike(self, step: PlanStep) -> None:
        if self.context.is_healed:
            return
        if self.faults.knows(step):
            self.faults.strike(step)
        else:
            self.admin.act(step)

    # Phases.

    def _form(self) -> None:
        """The cluster is there, with the topics of the plan."""
        self.context.cluster.start_all()
        self._until(self._can_create, READY_MS)
        for topic in self.context.plan.topics:
            self._create(topic)

    def _can_create(self) -> bool:
        controller = self.context.active_controller()
        if controller is None:
            return False
        image = self.context.cluster.node(controller).image
        return len(image.alive_brokers()) == len(self.context.plan.brokers)

    def _create(self, topic: TopicPlan) -> None:
        done: list[bool] = []
        self.admin.create(topic, done.append)
        self._until(lambda: bool(done), READY_MS)
        assert done[0], f"{topic.name} was not created"

    def _safety_phase(self) -> None:
        begun_us = self.world.now_us
        self.faults.watch()
        for step in self.steps:
            self.world.at(begun_us + step.at_ms * 1_000, partial(self._strike, step))
        self.world.run_for(self.context.plan.duration_ms)

    def _until(self, condition: Callable[[], bool], within_ms: int) -> None:
        """Checking now and then is enough, and much cheaper."""
        deadline_us = self.world.now_us + within_ms * 1_000
        while not condition():
            if self.world.now_us >= deadline_us:
                raise ConditionNotReached(f"not within {within_ms} ms of virtual time")
            self.world.run_for(LOOK_AGAIN_MS)

    def _verdict(self, started_s: float, *, with_digest: bool) -> Verdict:
        context = self.context
        context.close_history()
        found = [*context.anomalies, *context.checker.anomalies, *self._judge()]
        cpu_seconds = time.process_time() - started_s
        anomalies = tuple(sorted(found, key=lambda anomaly: anomaly.at_us))
        trace = self.world.trace
        return Verdict(
            seed=context.plan.seed,
            anomalies=anomalies,
            operations=context.operations,
            steps=self.world.steps,
            events=trace.counts(),
            digest=trace.digest() if with_digest else None,
            newest_lines=tuple(trace.lines(newest=40)) if anomalies else (),
            traceback=self.traceback,
            elections=context.checker.elections,
            cpu_seconds=cpu_seconds,
            story=tuple(str(step) for step in self.steps),
        )
