"""Profile `replication`: a cluster under work and faults, judged by its history and its invariants.

A seed is two phases. In the first, producers, consumers and an administrator work while the steps
of the plan strike; after every tick of a node the invariants are held against what it touched. Then
everything is healed, and within a bounded time every partition is led, every replica is in sync,
all logs are equal, no request waits, and the readers are at the end.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial

from tidelog.judge.anomalies import CRASHED, NOT_RECOVERED
from tidelog.judge.excuses import Excuse, Retries
from tidelog.judge.history_checks import judge
from tidelog.worlds.simulator.disk import SimDisk
from tidelog.worlds.simulator.profiles.replication_admin import ReplicationAdmin
from tidelog.worlds.simulator.profiles.replication_clients import EndOffsetReader
from tidelog.worlds.simulator.profiles.replication_consumers import (
    ConsumerReader,
    watch_positions,
)
from tidelog.worlds.simulator.profiles.replication_context import ReplicationContext
from tidelog.worlds.simulator.profiles.replication_faults import ReplicationFaults
from tidelog.worlds.simulator.profiles.replication_liveness import LivenessCheck
from tidelog.worlds.simulator.profiles.replication_plan import TopicPlan, make_plan
from tidelog.worlds.simulator.profiles.replication_readers import ReplicationReader
from tidelog.worlds.simulator.profiles.replication_writers import (
    ReplicationWriter,
    watch_producer_ids,
)
from tidelog.worlds.simulator.steps import ChosenStep, PlanStep, choose
from tidelog.worlds.simulator.verdict import Verdict
from tidelog.worlds.simulator.world import ConditionNotReached

READY_MS = 30_000
LOOK_AGAIN_MS = 20
LIVENESS_MS = 60_000


class ReplicationRun:
    """One seed, with all steps of its plan or only some of them."""

    def __init__(
        self,
        seed: int,
        *,
        disk_type: type[SimDisk] = SimDisk,
        only: Sequence[ChosenStep] | None = None,
    ) -> None:
        self.plan = make_plan(seed)
        self.steps: list[PlanStep] = (
            list(self.plan.steps) if only is None else choose(self.plan.steps, only)
        )
        self.context = ReplicationContext(self.plan, disk_type=disk_type)
        self.world = self.context.world
        self.faults = ReplicationFaults(self.context)
        self.admin = ReplicationAdmin(self.context)
        self.end_offsets = EndOffsetReader(self.context)
        self.writers = [ReplicationWriter(self.context, each) for each in self.plan.writers]
        self.readers: list[ReplicationReader | ConsumerReader] = [
            ReplicationReader(self.context, each)
            if each.is_plain
            else ConsumerReader(self.context, each)
            for each in self.plan.readers
        ]
        self.liveness = LivenessCheck(self.context, self.writers, self.readers)
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

    # Phases.

    def _set_up(self) -> None:
        """The cluster forms, and its topics are there."""
        watch_producer_ids(self.context)
        watch_positions(
            self.context, [each for each in self.readers if isinstance(each, ConsumerReader)]
        )
        self.context.cluster.start_all()
        self._until(self._can_create, READY_MS)
        for topic in self.plan.topics:
            self._create(topic)
        for start in [each.start for each in self.writers] + [each.start for each in self.readers]:
            start()
        self.end_offsets.start()

    def _can_create(self) -> bool:
        controller = self.context.active_controller()
        if controller is None:
            return False
        image = self.context.cluster.node(controller).image
        return len(image.alive_brokers()) == len(self.plan.brokers)

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
        self.world.run_for(self.plan.duration_ms)

    def _strike(self, step: PlanStep) -> None:
        if self.context.is_healed:
            return
        if self.faults.knows(step):
            self.faults.strike(step)
        else:
            self.admin.act(step)

    def _liveness_phase(self) -> None:
        """All is well from now on: everything comes to rest, and every doubt is settled."""
        context = self.context
        context.is_over = context.is_healed = True
        self.faults.heal_everything()
        self._until(self.liveness.is_reached, LIVENESS_MS)
        self.world.run_for(self.plan.idle_ms)
        for broker in self.plan.brokers:
            self.admin.list_topics(broker)
        self._until(lambda: self.admin.in_flight == 0, READY_MS)
        context.observation.check_all()
        self.liveness.check_for_copied_damage()
        self.liveness.record_final_logs()

    def _until(self, condition: Callable[[], bool], within_ms: int) -> None:
        """Checking now and then is enough, and much cheaper."""
        deadline_us = self.world.now_us + within_ms * 1_000
        while not condition():
            if self.world.now_us >= deadline_us:
                raise ConditionNotReached(f"not within {within_ms} ms of virtual time")
            self.world.run_for(LOOK_AGAIN_MS)

    # The verdict.

    def _verdict(self, started_s: float, *, with_digest: bool) -> Verdict:
        context = self.context
        context.close_history()
        found = [
            *context.anomalies,
            *context.checker.anomalies,
            *judge(
                context.history,
                [*context.checker.excuses(), *self._retries(), *self.faults.damages.excuses()],
            ),
        ]
        cpu_seconds = time.process_time() - started_s
        anomalies = tuple(sorted(found, key=lambda anomaly: anomaly.at_us))
        trace = self.world.trace
        return Verdict(
            seed=self.plan.seed,
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

    def _retries(self) -> list[Excuse]:
        return [
            Retries(writer=plan.name)
            for plan in self.plan.writers
            if plan.retries and not plan.is_idempotent
        ]
