"""Profile `storage`: one broker under random work, crashes and disk faults, judged by its history.

A seed is two phases. In the first, writers, readers and an administrator work while faults strike.
Then everything is healed, the broker must serve again within a bounded time, every log is read to
its end, and the judges compare it with everything that any client was ever told.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable

from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.node import Node
from tidelog.core.node.settings import NodeSettings
from tidelog.core.wire.messages.api_01_fetch import PartitionData
from tidelog.core.wire.records import NewRecord, build
from tidelog.core.wire.schema import Message
from tidelog.judge.anomalies import CORRUPT, CRASHED, HOLE, NOT_RECOVERED
from tidelog.judge.history import CallOutcome, FinalLog, Seen, Survives, Wrote
from tidelog.judge.lone_broker.checks import judge
from tidelog.worlds.simulator.client import Outcome as Answer
from tidelog.worlds.simulator.client import Trouble
from tidelog.worlds.simulator.disk import SimDisk
from tidelog.worlds.simulator.life import NodeFactory, Ports
from tidelog.worlds.simulator.network import Conditions, Network
from tidelog.worlds.simulator.payloads import read_answer, to_value
from tidelog.worlds.simulator.platter import Platter
from tidelog.worlds.simulator.process import Process
from tidelog.worlds.simulator.profiles.admin import Admin
from tidelog.worlds.simulator.profiles.faults import Faults, Operator
from tidelog.worlds.simulator.profiles.followers import Follower
from tidelog.worlds.simulator.profiles.readers import Reader
from tidelog.worlds.simulator.profiles.scene import BROKER, Actor, Keeper, Place, Scene
from tidelog.worlds.simulator.profiles.writers import IdempotentWriter, PlainWriter
from tidelog.worlds.simulator.requests import fetch, fetch_answer, produce, produce_answer
from tidelog.worlds.simulator.schedule import Schedule
from tidelog.worlds.simulator.verdict import Verdict
from tidelog.worlds.simulator.world import NotReached, World

SERVES_AGAIN_MS = 60_000
FETCH_VERSION = 13
PRODUCE_VERSION = 13


def broker_settings(fsync: str, **more: str) -> NodeSettings:
    """One broker that does its chores often, as short runs need it."""
    texts = {
        "node.id": "1",
        "log.dirs": "data",
        "tidelog.fsync": fsync,
        "log.retention.check.interval.ms": "400",
        "log.flush.offset.checkpoint.interval.ms": "700",
        "log.flush.scheduler.interval.ms": "300",
        "log.segment.delete.delay.ms": "200",
        "producer.id.expiration.check.interval.ms": "500",
    }
    return NodeSettings.of({**texts, **{k.replace("_", "."): v for k, v in more.items()}})


def node_factory(settings: NodeSettings) -> NodeFactory:
    def make(ports: Ports) -> Node:
        return Node(
            settings=settings,
            disk=ports.disk,
            outbox=ports.outbox,
            trace=ports.trace,
            random=ports.random,
            wall_ms=ports.wall_ms,
        )

    return make


class StorageRun:
    """One seed."""

    def __init__(self, seed: int, *, disk_type: type[SimDisk] = SimDisk) -> None:
        self.world = World(seed=seed)
        self.random = self.world.random_for("storage")
        fsync = self.random.choice(("none", "group", "group", "always"))
        network = Network(self.world, conditions=Conditions())
        platter = Platter(
            self.world.random_for("platter"), page_bytes=self.random.choice((256, 1_024, 4_096))
        )
        self.process = Process(
            world=self.world,
            network=network,
            name=BROKER,
            make_node=node_factory(broker_settings(fsync)),
            platter=platter,
            disk_type=disk_type,
            sync_us_max=self.random.choice((300, 3_000, 30_000)),
            check_every=10,
        )
        self.scene = Scene(self.world, self.process, network, fsync=fsync)
        self.keeper = Keeper(self.scene)
        self.admin = Admin(self.scene, topics_max=3)
        self.idempotent = [IdempotentWriter(self.scene, f"idempotent-{n}") for n in range(2)]
        self.actors: list[Actor] = [
            *self.idempotent,
            *(PlainWriter(self.scene, f"plain-{n}") for n in range(2)),
            *(Reader(self.scene, f"reader-{n}") for n in range(2)),
            Follower(self.scene, "follower"),
            self.admin,
        ]
        self.schedule = Schedule(self.world)
        self.traceback: str | None = None

    def run(self, *, with_digest: bool = False) -> Verdict:
        try:
            self._safety_phase()
            self._liveness_phase()
        except NotReached as error:
            self.scene.complain(NOT_RECOVERED, "-", reason=str(error))
        except Exception as error:
            self.scene.complain(CRASHED, "-", error=type(error).__name__, message=str(error))
            self.traceback = traceback.format_exc()
        self.scene.close_history()
        anomalies = [*self.scene.anomalies, *judge(self.scene.history)]
        return Verdict(
            seed=self.world.seed,
            anomalies=tuple(sorted(anomalies, key=lambda anomaly: anomaly.at_us)),
            operations=self.scene.operations,
            steps=self.world.steps,
            events=self.world.trace.counts(),
            digest=self.world.trace.digest() if with_digest else None,
            newest_lines=tuple(self.world.trace.lines(newest=40)) if anomalies else (),
            traceback=self.traceback,
        )

    def _safety_phase(self) -> None:
        names = [actor.name for actor in self.actors]
        faults = Faults(self.scene, self.keeper, client_names=names)
        operator = Operator(self.scene)
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
        scene = self.scene
        scene.network.conditions = Conditions()
        scene.network.heal_all()
        self.process.platter.heal()
        self.process.wake()
        self.world.run_until(self._serves, within_ms=SERVES_AGAIN_MS)
        scene.is_over = True
        self.world.run_until(self._is_quiet, within_ms=SERVES_AGAIN_MS)
        for topic in scene.live_topics():
            for index in range(topic.partitions):
                self._settle(Place(topic, index))
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

    def _settle(self, place: Place) -> None:
        """One more write must be acknowledged, then the whole log is read."""
        payload = self.scene.new_payload("final")
        self.scene.begin_write(place, (payload,))
        batch = build([NewRecord(value=to_value(payload, 50))])
        invoked_us = self.world.now_us
        answer = self._ask(
            lambda: produce(place.topic.name, place.index, batch, acks=-1), PRODUCE_VERSION
        )
        told = produce_answer(answer)
        if told.error_code != ErrorCode.NONE:
            self.scene.complain(NOT_RECOVERED, place.key, reason=f"error {told.error_code}")
            return
        self.scene.record(
            Wrote(
                at_us=self.world.now_us,
                invoked_us=invoked_us,
                partition=place.key,
                payloads=(payload,),
                outcome=CallOutcome.OK,
                base_offset=told.base_offset,
                survives=Survives.KILL,
            )
        )
        self._read_all(place, end_offset=told.base_offset + 1)

    def _read_all(self, place: Place, *, end_offset: int) -> None:
        log_start_offset = offset = self._fetch(place, end_offset).log_start_offset
        records: list[Seen] = []
        while offset < end_offset:
            told = self._fetch(place, offset)
            if told.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and place.topic.retention:
                log_start_offset = offset = self._fetch(place, end_offset).log_start_offset
                records.clear()
                continue
            seen, corrupt_offset = read_answer(told.records, next_offset=offset)
            if told.error_code == ErrorCode.CORRUPT_MESSAGE:
                corrupt_offset = offset
            fresh = [record for record in seen if record.offset >= offset]
            if [record.offset for record in fresh] != [offset + n for n in range(len(fresh))]:
                self.scene.complain(HOLE, place.key, offset=offset)
            records.extend(fresh)
            if fresh:
                offset = fresh[-1].offset + 1
            if corrupt_offset is not None:
                offset = max(offset + 1, self._skip_damage(place, corrupt_offset))
            elif not fresh:
                self.scene.complain(NOT_RECOVERED, place.key, reason=f"stuck at {offset}")
                break
        self.scene.record(
            FinalLog(
                at_us=self.world.now_us,
                partition=place.key,
                log_start_offset=log_start_offset,
                end_offset=end_offset,
                records=tuple(records),
            )
        )

    def _skip_damage(self, place: Place, corrupt_offset: int) -> int:
        for start_offset, end_offset in self.scene.damages.get(place.key, []):
            if start_offset <= corrupt_offset < end_offset:
                return end_offset
        self.scene.complain(CORRUPT, place.key, offset=corrupt_offset)
        return corrupt_offset + 1

    def _fetch(self, place: Place, offset: int) -> PartitionData:
        return fetch_answer(
            self._ask(lambda: fetch(place.topic.name, place.index, offset), FETCH_VERSION)
        )

    def _ask(self, make: Callable[[], Message], version: int) -> Message:
        """The answer to a request; it is asked again when a connection breaks."""
        answers: list[Answer] = []
        while not answers or isinstance(answers[-1], Trouble):
            answers.clear()
            self.admin.client.call(make(), version, answers.append)
            self.world.run_until(lambda: bool(answers), within_ms=SERVES_AGAIN_MS)
        answer = answers[-1]
        assert not isinstance(answer, Trouble)
        return answer
