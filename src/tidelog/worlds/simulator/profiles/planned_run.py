"""One seed of a profile: a cluster under work and faults, judged by history and invariants.

A seed is two phases. In the first, producers, consumers and an administrator work while the steps
of the plan strike; after every tick of a node the invariants are held against what it touched. Then
everything is healed, and within a bounded time every partition is led, every replica is in sync,
all logs are equal, no request waits, and the readers are at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tidelog.judge.anomalies import Anomaly
from tidelog.judge.excuses import Excuse, Retries
from tidelog.judge.history_checks import judge
from tidelog.worlds.simulator.disk import SimDisk
from tidelog.worlds.simulator.profiles.cluster_run import LIVENESS_MS, READY_MS, ClusterRun
from tidelog.worlds.simulator.profiles.consumers import (
    ConsumerReader,
    watch_positions,
)
from tidelog.worlds.simulator.profiles.context import RunContext
from tidelog.worlds.simulator.profiles.liveness import LivenessCheck
from tidelog.worlds.simulator.profiles.plan import RunPlan
from tidelog.worlds.simulator.profiles.readers import WireReader
from tidelog.worlds.simulator.profiles.strangers import Stranger
from tidelog.worlds.simulator.profiles.wire_clients import EndOffsetReader
from tidelog.worlds.simulator.profiles.writers import (
    ProducerWriter,
    watch_producer_ids,
)
from tidelog.worlds.simulator.steps import ChosenStep


class PlannedRun(ClusterRun):
    """One seed, with all steps of its plan or only some of them."""

    def __init__(
        self,
        make_plan: Callable[[int], RunPlan],
        seed: int,
        *,
        disk_type: type[SimDisk] = SimDisk,
        only: Sequence[ChosenStep] | None = None,
    ) -> None:
        self.plan = make_plan(seed)
        super().__init__(RunContext(self.plan, disk_type=disk_type), only=only)
        self.end_offsets = EndOffsetReader(self.context)
        self.stranger = Stranger(self.context)
        self.writers = [ProducerWriter(self.context, each) for each in self.plan.writers]
        self.readers: list[WireReader | ConsumerReader] = [
            WireReader(self.context, each) if each.is_plain else ConsumerReader(self.context, each)
            for each in self.plan.readers
        ]
        self.liveness = LivenessCheck(self.context, self.writers, self.readers)

    def _set_up(self) -> None:
        """The cluster forms, and its topics are there."""
        watch_producer_ids(self.context)
        watch_positions(
            self.context, [each for each in self.readers if isinstance(each, ConsumerReader)]
        )
        self._form()
        for start in [each.start for each in self.writers] + [each.start for each in self.readers]:
            start()
        self.end_offsets.start()
        if len(self.plan.nodes) > 1:
            self.stranger.start()

    def _liveness_phase(self) -> None:
        """All is well from now on: everything comes to rest, and every doubt is settled."""
        context = self.context
        context.is_over = context.is_healed = True
        self.faults.heal_everything()
        self._until(self.liveness.is_reached, LIVENESS_MS)
        self.faults.damages.repair_all()
        self.world.run_for(self.plan.idle_ms)
        for broker in self.plan.brokers:
            self.admin.list_topics(broker)
        self._until(lambda: self.admin.in_flight == 0, READY_MS)
        context.observation.check_all()
        self.liveness.check_for_copied_damage()
        self.liveness.record_final_logs()

    def _judge(self) -> list[Anomaly]:
        context = self.context
        return judge(
            context.judged_history(),
            [*context.checker.excuses(), *self._retries(), *self.faults.damages.excuses()],
        )

    def _retries(self) -> list[Excuse]:
        return [
            Retries(writer=plan.name)
            for plan in self.plan.writers
            if plan.retries and not plan.is_idempotent
        ]
