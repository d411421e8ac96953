"""Profile `transactions`: producers of both protocols, and coordinators that come and go.

In the first phase producers commit and abort, one of them transforms a topic into another, readers
of both isolation levels follow, and the steps of the plan strike at brokers, links and producers.
Then everything is healed: within a bounded time every transaction is over, every record has its
result, and all readers are at the end. A last scan reads every replica. The invariants of the
profile `replication` hold all the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tidelog.core.model.topic_name import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from tidelog.judge.anomalies import NOT_RECOVERED, Anomaly
from tidelog.judge.transactions.transaction_checks import judge_transactions
from tidelog.judge.transactions.transaction_history import FencesAtRest, Transformed
from tidelog.worlds.simulator.cluster import host_of
from tidelog.worlds.simulator.disk import SimDisk
from tidelog.worlds.simulator.profiles.cluster_run import LIVENESS_MS, READY_MS, ClusterRun
from tidelog.worlds.simulator.profiles.faults import Struck
from tidelog.worlds.simulator.profiles.liveness import LivenessCheck
from tidelog.worlds.simulator.profiles.transactions_context import TransactionsContext
from tidelog.worlds.simulator.profiles.transactions_late_markers import LateMarkers
from tidelog.worlds.simulator.profiles.transactions_plan import (
    GROUP,
    ProducerPlan,
    make_transactions_plan,
)
from tidelog.worlds.simulator.profiles.transactions_producers import TransactionalProducer
from tidelog.worlds.simulator.profiles.transactions_readers import TransactionReader
from tidelog.worlds.simulator.profiles.transactions_transformers import RESULT_PREFIX, Transformer
from tidelog.worlds.simulator.steps import ChosenStep, PlanStep

REST_MS = 20_000
"""Within this time every transaction is over: the longest timeout is 1.5 seconds."""
WORK_MS = 300
"""How long producers go on after the last fault."""
KILLED_MS = 400
LATE_MS = 20
"""How late a write comes after the end of its transaction: its markers are written by then."""
ELECT_AFTER_MS = (200, 600)
"""How long after its return a deposed leader is elected: it must be in sync before."""


class TransactionsRun(ClusterRun):
    """One seed, with all steps of its plan or only some of them."""

    def __init__(
        self,
        seed: int,
        *,
        disk_type: type[SimDisk] = SimDisk,
        only: Sequence[ChosenStep] | None = None,
    ) -> None:
        self.plan = make_transactions_plan(seed)
        self.transactions = TransactionsContext(self.plan, disk_type=disk_type)
        super().__init__(self.transactions, only=only)
        self.producers: dict[str, list[TransactionalProducer]] = {
            plan.transactional_id: [] for plan in self.plan.producers
        }
        """All processes that had a transactional id; the last one is the newest."""
        self.readers = [
            TransactionReader(self.transactions, "reader-committed", is_committed=True),
            TransactionReader(self.transactions, "reader-uncommitted", is_committed=False),
        ]
        self.admin.know_topic(TRANSACTIONS_TOPIC, self.plan.transactions_partitions)
        self.admin.know_topic(OFFSETS_TOPIC, self.plan.offsets_partitions)
        self.late_markers = LateMarkers(self.transactions, self.producers)
        self.liveness = LivenessCheck(self.context, [], [])
        self._gone: set[str] = set()
        """Transactional ids that nobody uses any more."""
        self._plans = {plan.transactional_id: plan for plan in self.plan.producers}
        self._verbs: dict[str, Callable[[PlanStep], None]] = {
            "kill producer": self._kill_producer,
            "kill producer for good": self._kill_for_good,
            "start twin": lambda step: self._start(self._plans[step.who[0]]),
            "pause producer": self._pause_producer,
            "pause and start twin": self._pause_and_start_twin,
            "cut producer off": self._cut_producer_off,
            "hold back producer": self._hold_back_producer,
            "hold coordinator": self._hold_coordinator,
            "depose and elect again": self._depose,
            "strand leader": self._strand_leader,
            "send late marker": self.late_markers.send,
        }

    # Phases.

    def _set_up(self) -> None:
        self._form()
        for plan in self.plan.producers:
            self._start(plan)
        for reader in self.readers:
            reader.start(reader.following())

    def _start(self, plan: ProducerPlan) -> None:
        """A new process; one that has the transactional id does not know of it."""
        if plan.transactional_id in self._gone:
            return
        known = self.producers[plan.transactional_id]
        for earlier in known:
            earlier.is_newest = False
        kind = Transformer if plan.transforms else TransactionalProducer
        started = kind(self.transactions, plan, len(known) + 1)
        known.append(started)
        started.start(started.living())

    def _liveness_phase(self) -> None:
        context = self.transactions
        context.is_healed = True
        self.faults.heal_everything()
        for transactional_id, plan in self._plans.items():
            newest = self.producers[transactional_id][-1]
            if newest.is_done and (plan.transforms or transactional_id not in self._gone):
                self._gone.discard(transactional_id)
                self._start(plan)
        self.world.run_for(WORK_MS)
        context.is_over = True
        self._until(self.liveness.is_reached, LIVENESS_MS)
        self._rest()
        context.is_quiet = True
        scans = [
            TransactionReader(context, f"scan-{node_id}", is_committed=True, replica=node_id)
            for node_id in self.plan.cluster.brokers
        ]
        for scan in scans:
            scan.start(scan.scanning())
        if not any(self._unrest()):
            self._until(lambda: all(scan.is_done for scan in scans), READY_MS)
        for reader in self.readers:
            reader.kill()
        context.observation.check_all()

    def _rest(self) -> None:
        """Wait until every transaction is over, or for so long that it should be."""
        deadline_us = self.world.now_us + REST_MS * 1_000
        while any(self._unrest()) and self.world.now_us < deadline_us:
            self.world.run_for(50)
        self._record_fences()
        restless = next(self._unrest(), None)
        if restless is not None:
            self.context.report_anomaly(NOT_RECOVERED, "-", reason=restless)
            return
        self.transactions.record_transaction(
            Transformed(
                at_us=self.world.now_us,
                group=GROUP,
                source=self._names(self.plan.source.name),
                target=self._names(self.plan.target.name),
                prefix=RESULT_PREFIX,
            )
        )

    def _names(self, topic: str) -> tuple[str, ...]:
        return tuple(
            str(partition)
            for partition in self.transactions.data_partitions
            if partition.topic == topic
        )

    def _unrest(self) -> Iterator[str]:
        """What is not yet as it must become."""
        for transactional_id, processes in self.producers.items():
            for producer in processes:
                if isinstance(producer, Transformer) and producer.is_newest:
                    yield from producer.missing()
                elif not isinstance(producer, Transformer) and not producer.is_done:
                    yield f"{producer.name} of {transactional_id} has not ended"
        for node_id, node in self.context.cluster.running.items():
            for partition in node.partitions:
                log = partition.log
                if log.last_stable_offset < log.log_end_offset:
                    yield f"{partition.topic_partition} on {node_id} is not stable"
        for reader in self.readers:
            yield from reader.missing()

    def _record_fences(self) -> None:
        for node_id, node in self.context.cluster.running.items():
            for partition in node.partitions:
                self.transactions.record_transaction(
                    FencesAtRest(
                        at_us=self.world.now_us,
                        node=node_id,
                        partition=str(partition.topic_partition),
                        last_stable_offset=partition.log.last_stable_offset,
                        high_watermark=partition.log.high_watermark,
                    )
                )

    def _judge(self) -> list[Anomaly]:
        return judge_transactions(self.transactions.transaction_history)

    # Steps.

    def _strike(self, step: PlanStep) -> None:
        if self.context.is_healed:
            return
        if step.verb not in self._verbs:
            super()._strike(step)
            return
        self._verbs[step.verb](step)
        self.world.trace.emit("faults", Struck(str(step).strip(), None))

    def _kill_producer(self, step: PlanStep) -> None:
        """Its transaction is left open; the next process ends it."""
        (transactional_id,) = step.who
        self.producers[transactional_id][-1].kill()

        def start() -> None:
            if not self.context.is_healed:
                self._start(self._plans[transactional_id])

        self.world.after(step.for_ms * 1_000, start)

    def _kill_for_good(self, step: PlanStep) -> None:
        """Only the clock ends its transaction."""
        (transactional_id,) = step.who
        self._gone.add(transactional_id)
        for producer in self.producers[transactional_id]:
            producer.kill()

    def _pause_producer(self, step: PlanStep) -> None:
        self.producers[step.who[0]][-1].pause(step.for_ms)

    def _pause_and_start_twin(self, step: PlanStep) -> None:
        """When it wakes, in the middle of a transaction, it does not know that it is a zombie."""
        self._pause_producer(step)
        self._start(self._plans[step.who[0]])

    def _cut_producer_off(self, step: PlanStep) -> None:
        name = self.producers[step.who[0]][-1].name
        ways = [
            way
            for node_id in self.context.cluster.node_ids
            for way in ((name, host_of(node_id)), (host_of(node_id), name))
        ]
        network = self.context.network
        for way in ways:
            network.cut(*way)

        def heal() -> None:
            for way in ways:
                network.heal(*way)

        self.world.after(step.for_ms * 1_000, heal)

    def _hold_back_producer(self, step: PlanStep) -> None:
        """What it writes to one leader comes soon after it has given up and aborted."""
        (transactional_id,) = step.who
        leader = self._leader_apart_from(self.transactions.coordinator_of(transactional_id))
        if leader is not None:
            producer = self.producers[transactional_id][-1]
            way = (producer.name, host_of(leader), "client")
            self._hold_until_given_up(producer, way, step.for_ms)

    def _hold_coordinator(self, step: PlanStep) -> None:
        """What it tells one leader, answers and markers, comes when a producer has given up."""
        (transactional_id,) = step.who
        coordinator = self.transactions.coordinator_of(transactional_id)
        leader = self._leader_apart_from(coordinator)
        if coordinator is not None and leader is not None:
            way = (host_of(coordinator), host_of(leader), "coordinator")
            self._hold_until_given_up(self.producers[transactional_id][-1], way, step.for_ms)

    def _hold_until_given_up(
        self, producer: TransactionalProducer, way: tuple[str, str, str], for_ms: int
    ) -> None:
        """No longer than this."""
        network, given_up = self.context.network, producer.given_up
        network.hold(*way)
        until_us = self.world.now_us + for_ms * 1_000

        def release() -> None:
            if producer.given_up > given_up or self.world.now_us >= until_us:
                network.release(*way)
            else:
                self.world.after(LATE_MS * 1_000, release)

        release()

    def _leader_apart_from(self, coordinator: int | None) -> int | None:
        """The leader of a partition of the source that is not this broker."""
        leaders = [
            self.context.leader_of(self.context.name_of(partition))
            for partition in self.transactions.partitions_of(self.plan.source)
        ]
        return next((each for each in leaders if each not in (None, coordinator)), None)

    def _strand_leader(self, step: PlanStep) -> None:
        """Nobody copies what a leader writes, markers included; then it dies, and has to cut it."""
        leader = self.context.leader_of(step.who[0])
        if leader is None:
            return
        network, host = self.context.network, host_of(leader)
        others = [host_of(each) for each in self.context.cluster.node_ids if each != leader]
        for other in others:
            network.hold(other, host, "replica")

        def kill() -> None:
            if not self.context.is_healed:
                self.faults.strike(PlanStep(self.world.now_ms, "kill", (host,), KILLED_MS))
            for other in others:
                network.release(other, host, "replica")

        self.world.after(step.for_ms * 1_000, kill)

    def _depose(self, step: PlanStep) -> None:
        """A leader is cut off, replaced, and leads again in the same process."""
        (partition,) = step.who
        now_ms = self.world.now_ms
        self.faults.strike(PlanStep(now_ms, "isolate leader", (partition,), step.for_ms))
        elect = PlanStep(now_ms, "elect preferred", (partition.rpartition("-")[0],))
        for after_ms in ELECT_AFTER_MS:
            self.world.after((step.for_ms + after_ms) * 1_000, lambda: self._strike(elect))
