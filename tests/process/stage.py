"""The stage of document 3's timelines: three broker processes, each behind a proxy.

Clients and followers come through the proxies, so a test sees every request, and may hold back what
a follower is sent. Voters and the test itself go to the brokers directly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from tests.process.broker import Setting
from tests.process.cluster import BOTH_ROLES, PartitionView, ProcessCluster
from tests.process.proxy import FETCH, Hold, Proxy, Seen, is_produce
from tests.process.waiting import wait_until
from tests.process.wire import batches_on_disk, whole_records
from tidelog.client.partition_requests import list_offsets_answer, list_offsets_request
from tidelog.core.wire.exchange import decode_request
from tidelog.core.wire.messages.api_00_produce import ProduceRequest
from tidelog.core.wire.record_batch import BatchHeader
from tidelog.core.wire.schema import Message
from tidelog.core.wire.sentinels import DEBUGGING_REPLICA_ID

T = TypeVar("T", bound=Message)
BROKERS = (1, 2, 3)
TOPIC_RESOURCE = 2
SESSION_S = 6

SETTINGS: dict[str, Setting] = {
    "broker.heartbeat.interval.ms": 1_000,
    "broker.session.timeout.ms": 1_000 * SESSION_S,
    "min.insync.replicas": 1,
    "auto.leader.rebalance.enable": False,
    "log.retention.ms": -1,
}
"""A follower that is held back stays in sync for the whole test; leaders move only when somebody
dies, or is silent for a session."""


class Stage:
    """What a timeline does to the cluster, and what it finds there afterwards."""

    def __init__(self, cluster: ProcessCluster, proxies: dict[int, Proxy]) -> None:
        self.cluster = cluster
        self.proxies = proxies
        self._topics = 0
        self._frozen: set[int] = set()
        self._dead: set[int] = set()

    @property
    def bootstrap(self) -> str:
        return ",".join(proxy.address for proxy in self.proxies.values())

    def controller_last(self) -> list[int]:
        """All brokers: if the first falls silent its session decides, and no quorum's timeout."""
        controller = self.cluster.active_controller()
        return sorted(BROKERS, key=lambda each: each == controller)

    # What is done.

    def new_topic(self, *placements: tuple[int, ...], **configs: str) -> str:
        """One partition for each placement; its first broker leads it."""
        self._topics += 1
        name = f"orders-{self._topics}"
        topic = {
            "name": name,
            "num_partitions": -1,
            "replication_factor": -1,
            "assignments": [
                {"partition_index": partition, "broker_ids": list(brokers)}
                for partition, brokers in enumerate(placements)
            ],
            "configs": [
                {"name": key.replace("_", "."), "value": text} for key, text in configs.items()
            ],
        }
        self.cluster.ask_for_topic(topic, by=placements[0][0])
        for partition, brokers in enumerate(placements):
            for each in self.cluster.broker_ids:
                self.wait_for(name, _is_led(brokers), partition=partition, via=each)
        return name

    def alter_topic(self, topic: str, key: str, value: str, *, leader: int) -> None:
        """Comes back when the leader goes by it."""
        resource = {"resource_type": TOPIC_RESOURCE, "resource_name": topic}
        change = {"name": key, "config_operation": 0, "value": value}
        asked = {**resource, "configuration_keys": [key]}
        with self.cluster.wire(leader) as wire:
            changed = wire.ask(
                "IncrementalAlterConfigs", 1, resources=[{**resource, "configs": [change]}]
            )
            assert changed.responses[0].error_code == 0, changed.responses[0].error_message

            def is_so() -> bool:
                told = wire.ask("DescribeConfigs", 4, resources=[asked]).results[0]
                return bool(told.configs[0].value == value)

            wait_until(is_so, f"{key} of {topic}")

    def hold_back(self, follower: int, *, leader: int) -> Hold:
        """The follower gets nothing more from this leader, and the leader no further fetch."""

        def is_its_fetch(seen: Seen) -> bool:
            return seen.api_key == FETCH and seen.client_id == f"node-{follower}"

        hold = self.proxies[leader].hold(is_its_fetch)
        wait_until(lambda: hold.held, f"a fetch of {follower} that can be held back")
        return hold

    def hold_answers(self, leader: int, value: str) -> Hold:
        """Producers of this value are not told what became of it."""

        def brings_it(seen: Seen) -> bool:
            return is_produce(seen) and value in produced(seen)[1]

        return self.proxies[leader].hold(brings_it)

    def kill(self, broker_id: int) -> None:
        """SIGKILL if it runs; nobody listens at its address any more when that is found out."""
        self.proxies[broker_id].refuse()
        self.cluster.launcher.kill([broker_id])
        self.note_dead(broker_id)

    def note_dead(self, broker_id: int) -> None:
        """It ended in another way, and nobody listens at its proxy: `heal` starts it again."""
        self._frozen.discard(broker_id)
        self._dead.add(broker_id)

    def restart(self, broker_id: int) -> None:
        """Comes back when all brokers know each other."""
        self.launch(broker_id)
        self.cluster.wait_until_formed()

    def launch(self, broker_id: int) -> None:
        """Starts it only; others may be dead still."""
        self._dead.discard(broker_id)
        self.proxies[broker_id].listen_again()
        self.cluster.launch_node(broker_id)

    def freeze(self, broker_id: int) -> None:
        """SIGSTOP: it is there, and silent."""
        self.cluster.pause(broker_id)
        self._frozen.add(broker_id)

    def wake(self, broker_id: int) -> None:
        self._frozen.discard(broker_id)
        self.cluster.resume(broker_id)

    def forget_requests(self) -> None:
        """What follows is all that `asked_for` and the journals tell."""
        for proxy in self.proxies.values():
            proxy.requests.clear()
            proxy.journal.clear()
            proxy.answers.clear()

    def heal(self) -> None:
        """Everybody is there again, and nothing is in anybody's way."""
        for broker_id in list(self._frozen):
            self.wake(broker_id)
        for proxy in self.proxies.values():
            proxy.release()
            proxy.rewrite = lambda seen: seen.frame
        for broker_id in list(self._dead):
            self.launch(broker_id)
        self.cluster.wait_until_formed()

    # What is found.

    def wait_for(
        self,
        topic: str,
        wanted: Callable[[PartitionView], bool],
        *,
        partition: int = 0,
        via: int,
    ) -> PartitionView:
        """What a broker says of a partition as soon as it is what is wanted."""

        def found() -> PartitionView | None:
            view = self.cluster.partition_view(topic, partition, via=via)
            return view if view is not None and wanted(view) else None

        return wait_until(found, f"{topic}-{partition} as wanted")

    def wait_for_end(self, topic: str, end_offset: int, *, of: int, partition: int = 0) -> None:
        """Until the log of this broker, leader or not, ends there."""
        request = list_offsets_request(topic, partition, replica_id=DEBUGGING_REPLICA_ID)
        with self.cluster.wire(of) as wire:

            def is_there() -> bool:
                listed = list_offsets_answer(wire.request(request, 7))
                return listed.error_code == 0 and listed.offset == end_offset

            what = f"{topic}-{partition} to end at {end_offset} on broker {of}"
            wait_until(is_there, what)

    def values(self, topic: str, *, leader: int, partition: int = 0) -> list[str]:
        """All that consumers may read, in the order of the log."""
        with self.cluster.wire(leader) as wire:
            records = wire.read_all(topic, partition=partition)
        assert [record.offset for record in records] == list(range(len(records)))
        return [(record.value or b"").decode().rstrip(".") for record in records]

    def headers(self, topic: str, *, of: int, partition: int = 0) -> list[BatchHeader]:
        """The batches that a broker has on its disk."""
        directory = self.cluster.nodes[of].data_path
        return [header for header, _ in batches_on_disk(directory, topic, partition=partition)]

    def topic_id(self, topic: str) -> bytes:
        with self.cluster.wire(BROKERS[0]) as wire:
            found: bytes = wire.ask("Metadata", 12, topics=[{"name": topic}]).topics[0].topic_id
        return found

    def asked_for(self, broker_id: int, value: str) -> list[int]:
        """The partitions for which a broker was sent this value, once for each time."""
        asked = [produced(seen) for seen in self.proxies[broker_id].produce_requests()]
        return [partition for partition, values in asked if value in values]


def _is_led(brokers: tuple[int, ...]) -> Callable[[PartitionView], bool]:
    return lambda it: it.leader == brokers[0] and len(it.isr) == len(brokers)


def produced(seen: Seen) -> tuple[int, list[str]]:
    """Where a Produce of one batch goes, and the values that it brings."""
    request = read_request(seen, ProduceRequest)
    [topic] = request.topic_data
    [data] = topic.partition_data
    values = [(record.value or b"").decode() for record in whole_records(data.records)]
    return data.index, [value.rstrip(".") for value in values]


def read_request(seen: Seen, kind: type[T]) -> T:
    request = decode_request(seen.frame)
    assert isinstance(request, kind)
    return request


@contextmanager
def running_stage(
    directory: Path,
    *,
    roles: Sequence[str] = (BOTH_ROLES,) * len(BROKERS),
    settings: Mapping[str, Setting] | None = None,
    settings_of: Mapping[int, Mapping[str, Setting]] | None = None,
) -> Iterator[Stage]:
    """Brokers that know each other, behind their proxies; three, unless `roles` says otherwise."""
    with ExitStack() as stack:
        nodes = range(1, len(roles) + 1)
        brokers = [node_id for node_id in nodes if "broker" in roles[node_id - 1]]
        proxies = {broker_id: stack.enter_context(Proxy()) for broker_id in brokers}
        more = settings_of or {}
        own = {each: proxies[each].proxied_settings for each in brokers}
        cluster = stack.enter_context(
            ProcessCluster(
                directory=directory,
                roles=roles,
                settings={**SETTINGS, **(settings or {})},
                settings_of={each: {**own[each], **more.get(each, {})} for each in brokers},
            )
        )
        for broker_id, proxy in proxies.items():
            proxy.forward_to(cluster.nodes[broker_id].address)
        yield Stage(cluster, proxies)
