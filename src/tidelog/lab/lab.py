"""A Lab is what a story is given: a cluster, its faults, its clients, evidence and checks.

Each method is one word of a story, thin over the engine: nothing here knows in which world the
story plays. Three parts have words of their own: checks.py what is claimed, evidence_queries.py and
group_evidence.py what can be seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import overload

from tidelog.client.partition_requests import init_producer_id_request
from tidelog.cluster.layout import NodePlan
from tidelog.cluster.profiles import PROFILES
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ProducerIdAndEpoch
from tidelog.core.wire.messages.api_22_init_producer_id import InitProducerIdResponse
from tidelog.core.wire.sentinels import ACKS_ALL
from tidelog.lab import administration
from tidelog.lab.audit import LabVerdict, audit
from tidelog.lab.checks import Checks
from tidelog.lab.clients import LabConsumer, LabProducer
from tidelog.lab.engine import Engine, Host, Layout
from tidelog.lab.evidence import Topic
from tidelog.lab.evidence_queries import EvidenceQueries, StoryScene, Unanswered
from tidelog.lab.group_audit import GroupVerdict, audit_group
from tidelog.lab.group_evidence import GroupEvidence
from tidelog.lab.members import LabMember
from tidelog.lab.report import Report
from tidelog.lab.writers import PartitionWriter, WrittenBatch

ANSWERS = "answers"
REQUESTS = "requests"
REPLICA = "replica"


class Lab:
    """One cluster and one story about it."""

    def __init__(self, engine: Engine, report: Report) -> None:
        self.engine = engine
        self._scene = StoryScene(engine)
        self.checks = checks = Checks(engine, report)
        self.evidence = evidence = EvidenceQueries(self._scene)
        self.groups = groups = GroupEvidence(self._scene, evidence)
        # The words of the parts; each is documented there.
        self.step, self.same, self.other = checks.step, checks.same, checks.other
        self.true, self.among, self.between = checks.true, checks.among, checks.between
        self.lasted = checks.lasted
        self.ask, self.ask_any, self.listen_to = evidence.ask, evidence.ask_any, evidence.listen_to
        self.wait_for, self.until = evidence.wait_for, evidence.until
        self.at_the_moment, self.happenings = evidence.at_the_moment, evidence.happenings
        self.desc, self.descriptions = evidence.desc, evidence.descriptions
        self.metadata_error, self.quorum = evidence.metadata_error, evidence.quorum
        self.leader, self.leaders = evidence.leader, evidence.leaders
        self.unfenced = evidence.unfenced
        self.end, self.latest, self.log_start = evidence.end, evidence.latest, evidence.log_start
        self.high_watermark, self.fetch = evidence.high_watermark, evidence.fetch
        self.read, self.read_entries = evidence.read, evidence.read_entries
        self.log, self.log_bytes, self.payloads = (
            evidence.log,
            evidence.log_bytes,
            evidence.payloads,
        )
        self.epochs, self.producers = evidence.epochs, evidence.producers
        self.requests, self.follower_fetches = evidence.requests, evidence.follower_fetches
        self.coordinator, self.committed = groups.coordinator, groups.committed
        self.batches: list[WrittenBatch] = []
        self.producers_made: list[LabProducer] = []
        self.consumers_made: list[LabConsumer] = []
        self.members_made: list[LabMember] = []

    # Setting up

    def cluster(
        self,
        brokers: Sequence[int] = (1, 2, 3),
        *,
        controllers: Sequence[int] | None = (4,),
        profile: str = "documents",
        racks: Mapping[int, str] | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Start a cluster. Without controllers of their own, every node is both."""
        racks = racks or {}
        both = ("broker", "controller")
        nodes = [
            NodePlan(
                id=node, roles=both if controllers is None else ("broker",), rack=racks.get(node)
            )
            for node in brokers
        ]
        nodes += [NodePlan(id=node, roles=("controller",)) for node in controllers or ()]
        self.begin(Layout(nodes=tuple(nodes), settings={**PROFILES[profile], **(settings or {})}))

    def begin(self, layout: Layout) -> None:
        """Start a cluster whose nodes are given one by one."""
        self._scene.layout = layout
        self.engine.begin(layout)

    @property
    def layout(self) -> Layout:
        return self._scene.layout

    @property
    def topic(self) -> Topic:
        """The topic that is meant where none is named."""
        return self.evidence.topic

    def create(self, name: str, *replicas: Sequence[int], **configs: str) -> Topic:
        """A topic with explicit replicas for each partition; the first one made is the story's."""
        texts = {key.replace("_", "."): value for key, value in configs.items()}
        topic = administration.create(self, name, replicas, texts)
        if self._scene.topic is None:
            self._scene.topic = topic
        self.until(
            f"{name} is led and in sync everywhere",
            lambda: all(
                self.leaders(topic, via=node) == [wanted[0] for wanted in replicas]
                for node in self.layout.broker_ids
            ),
        )
        return topic

    def create_anywhere(
        self, name: str, *, partitions: int, replication_factor: int
    ) -> list[tuple[int, ...]]:
        """A topic whose replicas the controller places; the replicas of each partition."""
        topic = administration.create_anywhere(
            self, name, partitions=partitions, replication_factor=replication_factor
        )
        node = self.layout.broker_ids[0]
        self.until(f"{name} is known", lambda: len(self.leaders(topic, via=node)) == partitions)
        return [each.replicas for each in self.descriptions(topic, via=node)]

    def about(self, topic: Topic) -> None:
        """From now on this topic is meant where none is named."""
        self._scene.topic = topic

    # Clients

    def writer(
        self,
        name: str = "writer",
        *,
        acks: int = ACKS_ALL,
        idempotent: bool = False,
        first_sequence: int = 0,
    ) -> PartitionWriter:
        """Sends single batches and never retries by itself."""
        identity = self.new_identity() if idempotent else None
        return PartitionWriter(
            self, name, acks=acks, identity=identity, first_sequence=first_sequence
        )

    def new_identity(self) -> ProducerIdAndEpoch:
        request = init_producer_id_request()
        given: list[ProducerIdAndEpoch] = []

        def is_given() -> bool:
            answer = self.ask_any(request, 4)
            assert isinstance(answer, InitProducerIdResponse), answer
            if answer.error_code == ErrorCode.NONE:
                given.append(ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch))
                return True
            assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, answer
            return False

        self.until("a producer id is given", is_given)
        return given[0]

    def producer(self, name: str = "producer", **config: str) -> LabProducer:
        """Kafka's producer, by its own config names (`request_timeout_ms="3000"`)."""
        made = LabProducer(self, name, {k.replace("_", "."): v for k, v in config.items()})
        self.producers_made.append(made)
        return made

    @overload
    def consumer(self, name: str = ..., *, group: str, **config: str) -> LabMember: ...

    @overload
    def consumer(self, name: str = ..., *, group: None = ..., **config: str) -> LabConsumer: ...

    def consumer(
        self, name: str = "consumer", *, group: str | None = None, **config: str
    ) -> LabConsumer | LabMember:
        """Kafka's consumer, by its own config names.

        Without a group it has the story's partition 0, with one what the group gives it.
        """
        given = {k.replace("_", "."): v for k, v in config.items()}
        if group is not None:
            member = LabMember(self, name, group, given, [self.topic.name])
            self.members_made.append(member)
            return member
        made = LabConsumer(self, name, given)
        self.consumers_made.append(made)
        return made

    def fill(self, count: int, *, prefix: str = "r", batch_records: int = 250) -> None:
        """Write this many records with acks=all, named r0, r1, ..."""
        writer = self.writer("filler")
        for start in range(0, count, batch_records):
            end = min(start + batch_records, count)
            answer = writer.write(*(f"{prefix}{number}" for number in range(start, end)))
            assert answer.is_ok, answer

    # Faults

    def kill(self, *nodes: int) -> None:
        for node in nodes:
            self.engine.kill(node)

    def stop(self, *nodes: int) -> None:
        """SIGTERM, one after the other, each to its end."""
        for node in nodes:
            self.engine.stop(node)

    def start(self, *nodes: int) -> None:
        for node in nodes:
            self.engine.start(node)

    def pause(self, node: int) -> None:
        self.engine.pause(node)

    def resume(self, node: int) -> None:
        self.engine.resume(node)

    def lose_power(self, *nodes: int, keeps: str = "nothing") -> None:
        """All at once. Of what was not synced, "nothing", "everything" or "chance" is kept."""
        self.engine.lose_power(nodes, keeps=keeps)

    def cut(self, source: Host, target: Host) -> None:
        self.engine.cut((source, target))

    def heal(self, source: Host, target: Host) -> None:
        self.engine.heal((source, target))

    def isolate(self, node: int, *others: Host) -> None:
        """Cut both directions to these hosts, or to every other node."""
        self.engine.cut(*_both_ways(node, others or self.others(node)))

    def rejoin(self, node: int, *others: Host) -> None:
        self.engine.heal(*_both_ways(node, others or self.others(node)))

    def hold(self, *followers: int, what: str = ANSWERS) -> None:
        """Hold(b): what its leaders answer is withheld from each of these followers.

        With REQUESTS it is what these followers ask their leaders.
        """
        requests = self._requests_of(followers)
        self.engine.hold(REPLICA, *(requests if what == REQUESTS else map(_back, requests)))

    def release(self, *followers: int) -> None:
        """No fetch of these followers is withheld any more, nor any answer to one."""
        requests = self._requests_of(followers)
        self.engine.release(REPLICA, *map(_back, requests), *requests)

    def withhold(self, source: int, *targets: int, purpose: str) -> None:
        """Hold back what source says to these nodes on links of one purpose."""
        self.engine.hold(purpose, *((source, target) for target in targets))

    def let_pass(self, source: int, *targets: int, purpose: str) -> None:
        self.engine.release(purpose, *((source, target) for target in targets))

    def _requests_of(self, followers: Sequence[int]) -> list[tuple[int, int]]:
        """From each of these followers to each broker that might be its leader."""
        return [
            (follower, other)
            for follower in followers
            for other in self.layout.broker_ids
            if other != follower
        ]

    def others(self, node: int) -> tuple[int, ...]:
        return tuple(other for other in self.layout.node_ids if other != node)

    def pass_ms(self, duration_ms: int) -> None:
        self.engine.pass_ms(duration_ms)

    @property
    def now_us(self) -> int:
        return self.engine.now_us

    def wall_ms(self) -> int:
        return self.engine.wall_ms()

    # Administration

    def elect(self, kind: str = "preferred", index: int = 0) -> ErrorCode:
        """ElectLeaders for one partition: "preferred" or "unclean"."""
        return administration.elect(self, kind, index)

    def reassign(self, *replicas: int, index: int = 0) -> ErrorCode:
        """Move one partition to these brokers; without any, cancel its reassignment."""
        return administration.reassign(self, replicas or None, index)

    def configure(self, name: str, value: str, *, topic: Topic | None = None) -> None:
        """Change a setting of the story's topic while everything runs."""
        administration.configure(self, topic or self.topic, name, value)

    def audit(self, index: int = 0) -> LabVerdict:
        """What was lost, doubled, reordered or haunts, by the judge's checks."""
        return audit(self, index=index)

    def audit_group(self, group: str, *, index: int = 0) -> GroupVerdict:
        """What the group was given twice or never, and which promises were broken."""
        return audit_group(self, group, index=index)

    # Waiting for well-known states

    def until_led(self, node: int | None, *, index: int = 0, within_ms: int = 30_000) -> None:
        """Until this node leads; None: until there is no leader."""
        self.until(
            f"node {node} leads", lambda: self.desc(index).leader == node, within_ms=within_ms
        )

    def until_elected(self, node: int, *, index: int = 0) -> None:
        """Until this node, the preferred one, leads by an election; one refused is asked again."""
        held = (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED)
        self.until("a preferred election", lambda: self.elect("preferred", index) in held)
        self.until_led(node, index=index)

    def until_isr(self, *nodes: int, index: int = 0, within_ms: int = 60_000) -> None:
        wanted = tuple(sorted(nodes))
        self.until(
            f"the ISR is {wanted}", lambda: self.desc(index).isr == wanted, within_ms=within_ms
        )

    def until_end(self, node: int, end_offset: int, *, index: int = 0) -> None:
        """Until this replica's log ends here."""
        self.until(
            f"the log of {node} ends at {end_offset}", lambda: self.end(node, index) == end_offset
        )

    def until_high_watermark(self, offset: int, *, index: int = 0) -> None:
        self.until(f"the high watermark is {offset}", lambda: self.high_watermark(index) == offset)

    def until_read(self, node: int, wanted: Sequence[str], *, offset: int = 0) -> None:
        """Until consumers get exactly these payloads from this broker."""
        self.until(f"{node} gives {wanted}", lambda: self.read(node, offset=offset) == list(wanted))

    def until_unfenced(self, *nodes: int) -> None:
        """Until clients get to know all these brokers."""
        self.until(f"{nodes} are unfenced", lambda: set(nodes) <= set(self.unfenced()))

    def until_quiet(self, index: int = 0) -> None:
        """Until every replica that runs has the same log and all of it is committed."""

        def is_quiet() -> bool:
            replicas = self.desc(index).replicas
            running = [node for node in replicas if self.engine.is_running(node)]
            ends = {self.end(node, index) for node in running}
            return len(ends) == 1 and self.high_watermark(index) in ends

        self.until("all is quiet", is_quiet)

    def has_no_leader(self, index: int = 0) -> bool:
        try:
            return self.desc(index).leader is None
        except Unanswered:
            return False


def _both_ways(node: int, others: Sequence[Host]) -> list[tuple[Host, Host]]:
    return [way for other in others for way in ((node, other), (other, node))]


def _back(way: tuple[int, int]) -> tuple[int, int]:
    source, target = way
    return target, source
