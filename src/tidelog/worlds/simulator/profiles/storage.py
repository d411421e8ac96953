"""Profile `storage`: one broker under random work, crashes and disk faults, judged by its history.

A seed is two phases. In the first, writers, readers and an administrator work while faults strike.
Then everything is healed, the broker must serve again within a bounded time, every log is read to
its end, and the judges compare it with every reply that any client ever got.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable

from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.node import Node
from tidelog.core.wire.messages.api_01_fetch import PartitionData
from tidelog.core.wire.records import NewRecord, build
from tidelog.core.wire.schema import Message
from tidelog.judge.anomalies import CORRUPT, CRASHED, HOLE, NOT_RECOVERED
from tidelog.judge.history import CallOutcome, FinalLog, Seen, Survives, Wrote
from tidelog.judge.lone_broker.checks import judge
from tidelog.worlds.simulator.client import CallFailed
from tidelog.worlds.simulator.client import Outcome as Reply
from tidelog.worlds.simulator.disk import SimDisk
from tidelog.worlds.simulator.durable_store import DurableStore
from tidelog.worlds.simulator.network import Conditions, Network
from tidelog.worlds.simulator.payloads import read_answer, to_value
from tidelog.worlds.simulator.process import SimProcess
from tidelog.worlds.simulator.profiles.storage_admin import StorageAdmin
from tidelog.worlds.simulator.profiles.storage_context import (
    BROKER,
    Actor,
    LossRecorder,
    StorageContext,
    TrackedPartition,
)
from tidelog.worlds.simulator.profiles.storage_faults import Operator, StorageFaults
from tidelog.worlds.simulator.profiles.storage_readers import StorageReader
from tidelog.worlds.simulator.profiles.storage_session_readers import SessionReader
from tidelog.worlds.simulator.profiles.storage_writers import IdempotentWriter, PlainWriter
from tidelog.worlds.simulator.requests import fetch, fetch_answer, produce, produce_answer
from tidelog.worlds.simulator.schedule import Schedule
from tidelog.worlds.simulator.single_broker import broker_settings, node_factory
from tidelog.worlds.simulator.verdict import Verdict
from tidelog.worlds.simulator.world import ConditionNotReached, SimWorld

SERVES_AGAIN_MS = 60_000
FETCH_VERSION = 13
PRODUCE_VERSION = 13


class StorageRun:
    """One seed."""

    def __init__(self, seed: int, *, disk_type: type[SimDisk] = SimDisk) -> None:
        self.world = SimWorld(seed=seed)
        self.random = self.world.random_for("storage")
        fsync = self.random.choice(("none", "group", "group", "always"))
        network = Network(self.world, conditions=Conditions())
        store = DurableStore(
            self.world.random_for("platter"), page_bytes=self.random.choice((256, 1_024, 4_096))
        )
        self.process = SimProcess(
            world=self.world,
            network=network,
            name=BROKER,
            make_node=node_factory(broker_settings(fsync)),
            store=store,
            disk_type=disk_type,
            sync_us_max=self.random.choice((300, 3_000, 30_000)),
            check_every=10,
        )
        self.context = StorageContext(self.world, self.process, network, fsync=fsync)
        self.losses = LossRecorder(self.context)
        self.admin = StorageAdmin(self.context, topics_max=3)
        self.idempotent = [IdempotentWriter(self.context, f"idempotent-{n}") for n in range(2)]
        self.actors: list[Actor] = [
            *self.idempotent,
            *(PlainWriter(self.context, f"plain-{n}") for n in range(2)),
            *(StorageReader(self.context, f"reader-{n}") for n in range(2)),
            SessionReader(self.context, "follower"),
            self.admin,
        ]
        self.schedule = Schedule(self.world)
        self.traceback: str | None = None

    def run(self, *, with_digest: bool = False) -> Verdict:
        try:
            self._safety_phase()
            self._liveness_phase()
        except ConditionNotReached as error:
            self.context.report_anomaly(NOT_RECOVERED, "-", reason=str(error))
        except Exception as error:
            self.context.report_anomaly(
                CRASHED, "-", error=type(error).__name__, message=str(error)
            )
            self.traceback = traceback.format_exc()
        self.context.close_history()
        anomalies = [*self.context.anomalies, *judge(self.context.history)]
        return Verdict(
            seed=self.world.seed,
            anomalies=tuple(sorted(anomalies, key=lambda anomaly: anomaly.at_us)),
            operations=self.context.operations,
            steps=self.world.steps,
            events=self.world.trace.counts(),
            digest=self.world.trace.digest() if with_digest else None,
            newest_lines=tuple(self.world.trace.lines(newest=40)) if anomalies else (),
            traceback=self.traceback,
        )

    def _safety_phase(self) -> None:
        names = [actor.name for actor in self.actors]
        faults = StorageFaults(self.context, self.losses, client_names=names)
        operator = Operator(self.context)
        self.process.start()
        for _ in range(2):
            self.admin.create()
        for actor in self.actors:
            actor.start()
        operator.watch()
        self.schedule.by_chance(
            faults.menu(
                with_damage=self.random.random() < 0.3,
                with_header_damage=self.world.random_for("header damage").random() < 0.1,
            ),
            interval_ms_min=50,
            interval_ms_max=1_500,
        )
        self.world.run_for(self.random.choice((1_500, 3_000, 6_000)))
        self.schedule.stop()

    def _liveness_phase(self) -> None:
        """All is well from now on: the broker serves, and every doubt is settled."""
        context = self.context
        context.network.conditions = Conditions()
        context.network.heal_all()
        self.process.store.heal()
        self.process.wake()
        self.world.run_until(self._serves, within_ms=SERVES_AGAIN_MS)
        context.is_over = True
        self.world.run_until(self._is_quiet, within_ms=SERVES_AGAIN_MS)
        for topic in context.live_topics():
            for index in range(topic.partitions):
                self._settle(TrackedPartition(topic, index))
        self.admin.list_all()
        self.world.run_until(self._is_quiet, within_ms=SERVES_AGAIN_MS)
        if isinstance(self.process.node, Node):
            self.process.node.check()

    def _serves(self) -> bool:
        """Up, and it has answered something since."""
        return self.process.is_up

    def _is_quiet(self) -> bool:
        return all(writer.is_idle for writer in self.idempotent) and not any(
            actor.client.in_flight for actor in self.actors
        )

    def _settle(self, topic_partition: TrackedPartition) -> None:
        """One more write must be acknowledged, then the whole log is read."""
        payload = self.context.new_payload("final")
        self.context.begin_write(topic_partition, (payload,))
        batch = build([NewRecord(value=to_value(payload, 50))])
        invoked_us = self.world.now_us
        answer = self._ask(
            lambda: produce(topic_partition.topic.name, topic_partition.index, batch, acks=-1),
            PRODUCE_VERSION,
        )
        result = produce_answer(answer)
        if result.error_code != ErrorCode.NONE:
            self.context.report_anomaly(
                NOT_RECOVERED, topic_partition.key, reason=f"error {result.error_code}"
            )
            return
        self.context.record(
            Wrote(
                at_us=self.world.now_us,
                invoked_us=invoked_us,
                partition=topic_partition.key,
                payloads=(payload,),
                outcome=CallOutcome.OK,
                base_offset=result.base_offset,
                survives=Survives.KILL,
            )
        )
        self._read_all(topic_partition, end_offset=result.base_offset + 1)

    def _read_all(self, topic_partition: TrackedPartition, *, end_offset: int) -> None:
        log_start_offset = offset = self._fetch(topic_partition, end_offset).log_start_offset
        records: list[Seen] = []
        while offset < end_offset:
            result = self._fetch(topic_partition, offset)
            if (
                result.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
                and topic_partition.topic.retention
            ):
                log_start_offset = offset = self._fetch(
                    topic_partition, end_offset
                ).log_start_offset
                records.clear()
                continue
            seen, corrupt_offset = read_answer(result.records, next_offset=offset)
            if result.error_code == ErrorCode.CORRUPT_MESSAGE:
                corrupt_offset = offset
            fresh = [record for record in seen if record.offset >= offset]
            if [record.offset for record in fresh] != [offset + n for n in range(len(fresh))]:
                self.context.report_anomaly(HOLE, topic_partition.key, offset=offset)
            records.extend(fresh)
            if fresh:
                offset = fresh[-1].offset + 1
            if corrupt_offset is not None:
                offset = max(offset + 1, self._skip_damage(topic_partition, corrupt_offset))
            elif not fresh:
                self.context.report_anomaly(
                    NOT_RECOVERED, topic_partition.key, reason=f"stuck at {offset}"
                )
                break
        self.context.record(
            FinalLog(
                at_us=self.world.now_us,
                partition=topic_partition.key,
                log_start_offset=log_start_offset,
                end_offset=end_offset,
                records=tuple(records),
            )
        )

    def _skip_damage(self, topic_partition: TrackedPartition, corrupt_offset: int) -> int:
        for start_offset, end_offset in self.context.damages.get(topic_partition.key, []):
            if start_offset <= corrupt_offset < end_offset:
                return end_offset
        self.context.report_anomaly(CORRUPT, topic_partition.key, offset=corrupt_offset)
        return corrupt_offset + 1

    def _fetch(self, topic_partition: TrackedPartition, offset: int) -> PartitionData:
        return fetch_answer(
            self._ask(
                lambda: fetch(topic_partition.topic.name, topic_partition.index, offset),
                FETCH_VERSION,
            )
        )

    def _ask(self, make: Callable[[], Message], version: int) -> Message:
        """The answer to a request; the request is sent again when a connection breaks."""
        answers: list[Reply] = []
        while not answers or isinstance(answers[-1], CallFailed):
            answers.clear()
            self.admin.client.call(make(), version, answers.append)
            self.world.run_until(lambda: bool(answers), within_ms=SERVES_AGAIN_MS)
        answer = answers[-1]
        assert not isinstance(answer, CallFailed)
        return answer
