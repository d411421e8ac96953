"""An active controller for tests: its log commits on demand, its probes are answered by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from types import ModuleType, SimpleNamespace
from typing import Any, TypeVar, cast

from tests.unit.core.controller.cluster import directory
from tests.unit.core.metadata.given import image
from tidelog.core.metadata.cluster import PartitionState
from tidelog.core.metadata.features import SUPPORTED
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.metadata.records import MetadataRecord
from tidelog.core.model.alarms import Alarms
from tidelog.core.model.trace import ListTrace
from tidelog.core.node.api import api_62_broker_registration, api_63_broker_heartbeat
from tidelog.core.node.connections.liveness_probes import LivenessProbes
from tidelog.core.node.controller.active_controller import ActiveController
from tidelog.core.node.metadata.metadata_log import MetadataLog
from tidelog.core.node.settings import NodeSettings
from tidelog.core.wire.codec import decode, encode
from tidelog.core.wire.messages.api_62_broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)
from tidelog.core.wire.messages.api_63_broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from tidelog.core.wire.schema import Message

M = TypeVar("M", bound=Message)
Then = Callable[[], None]

NODE_ID = 9
"""The controller is no broker: its id is none of theirs."""
SESSION_MS = 9_000


class FakeMetadataLog:
    """Stands for the metadata log: offsets count up, and a proposal waits for `commit`."""

    def __init__(self, decided: ClusterImage) -> None:
        self.decided_image = decided
        self.cluster_id = "c"
        self.controller_epoch = 3
        self.is_active = True
        self.log = SimpleNamespace(log_end_offset=100)
        self.applied_end_offset = 0
        self.records: list[MetadataRecord] = []
        self.is_prompt = True
        self._waiting: list[tuple[Then | None, Then | None]] = []

    def propose(
        self,
        records: Sequence[MetadataRecord],
        then: Then | None,
        *,
        now_ms: int,
        otherwise: Then | None = None,
    ) -> None:
        assert self.is_active
        for record in records:
            self.decided_image.apply(record)
        self.decided_image.check()
        self.records += records
        self.log.log_end_offset += len(records)
        self._waiting.append((then, otherwise))
        if self.is_prompt:
            self.commit()

    def commit(self) -> None:
        waiting, self._waiting = self._waiting, []
        for then, _ in waiting:
            if then is not None:
                then()

    def resign(self) -> None:
        self.is_active = False
        waiting, self._waiting = self._waiting, []
        for _, otherwise in waiting:
            if otherwise is not None:
                otherwise()


class ControllerBench:
    """A node as the controller sees it, and brokers that speak to it in wire bytes."""

    def __init__(self, *records: MetadataRecord, settings: dict[str, str] | None = None) -> None:
        self.settings = NodeSettings.of(
            {
                "node.id": str(NODE_ID),
                "listeners": "PLAINTEXT://localhost:9092",
                "log.dirs": "data",
                "broker.session.timeout.ms": str(SESSION_MS),
                "min.insync.replicas": "2",
                **(settings or {}),
            }
        )
        self.metadata = FakeMetadataLog(image(*records))
        self.trace = ListTrace()
        self.alarms = Alarms()
        self.random = Random(1)
        self.probed: dict[tuple[str, int], Callable[[bool, int], None]] = {}
        self.active_controller = ActiveController(
            settings=self.settings,
            metadata=cast("MetadataLog", self.metadata),
            probes=cast("LivenessProbes", self),
            departures=self,
            alarms=self.alarms,
            trace=self.trace,
        )
        self.now_ms = 0
        self.active_controller.on_activated(0)

    def on_connection_lost(self, broker_id: int, now_ms: int) -> None:
        """A client of this broker would wait for a decision; here is none."""

    def probe(
        self, host: str, port: int, then: Callable[[bool, int], None], *, now_ms: int
    ) -> None:
        self.probed[host, port] = then

    @property
    def brokers(self) -> dict[int, Any]:
        return cast("dict[int, Any]", self.metadata.decided_image.brokers)

    def partition(self, index: int = 0) -> PartitionState:
        return self.metadata.decided_image.topics["t"].partitions[index]

    def wait(self, duration_ms: int) -> None:
        """Time passes, and every alarm rings when it is due."""
        until_ms = self.now_ms + duration_ms
        while self.alarms.heap and self.alarms.heap[0][0] <= until_ms:
            self.now_ms = max(self.now_ms, self.alarms.heap[0][0])
            self.alarms.run(self.now_ms)
        self.now_ms = until_ms

    def send(
        self, api: ModuleType, message: Message, version: int, *, connection: int | None = 7
    ) -> list[bytes]:
        """The list gets the answer when its time comes."""
        answers: list[bytes] = []
        body = encode(message, version)
        request = SimpleNamespace(
            version=version,
            connection=None if connection is None else SimpleNamespace(id=connection),
            connection_id=connection,
            decode=lambda cls: decode(cls, memoryview(body), version),
            answer=lambda answer: answers.append(encode(answer, version)),
        )
        api.handle(cast("Any", self), cast("Any", request), self.now_ms)
        return answers

    def ask(
        self,
        api: ModuleType,
        message: Message,
        response: type[M],
        version: int | None = None,
        *,
        connection: int | None = 7,
    ) -> M:
        version = api.VERSIONS[-1] if version is None else version
        (answer,) = self.send(api, message, version, connection=connection)
        return decode(response, memoryview(answer), version)

    # What brokers say

    def register(
        self,
        broker_id: int,
        *,
        incarnation: int = 1,
        previous_broker_epoch: int = -1,
        directories: Sequence[bytes] | None = None,
        cluster_id: str = "c",
        host: str | None = None,
        connection: int | None = 7,
    ) -> BrokerRegistrationResponse:
        request = BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=cluster_id,
            incarnation_id=incarnation.to_bytes(16, "big"),
            listeners=[Listener(name="PLAINTEXT", host=host or f"host-{broker_id}", port=9092)],
            features=[
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in sorted(SUPPORTED.items())
            ],
            rack=None,
            log_dirs=list(directories or [directory(broker_id)]),
            previous_broker_epoch=previous_broker_epoch,
        )
        api = api_62_broker_registration
        return self.ask(api, request, BrokerRegistrationResponse, connection=connection)

    def beat(
        self,
        broker_id: int,
        *,
        offset: int = 10_000,
        want_fence: bool = False,
        want_shut_down: bool = False,
        broker_epoch: int | None = None,
        lost: Sequence[bytes] = (),
        connection: int | None = 7,
    ) -> BrokerHeartbeatResponse:
        """With the newest broker epoch, unless another is given."""
        if broker_epoch is None:
            broker_epoch = self.brokers[broker_id].broker_epoch
        request = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=broker_epoch,
            current_metadata_offset=offset,
            want_fence=want_fence,
            want_shut_down=want_shut_down,
            offline_log_dirs=list(lost),
        )
        api = api_63_broker_heartbeat
        return self.ask(api, request, BrokerHeartbeatResponse, connection=connection)
