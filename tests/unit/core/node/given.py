"""A broker's cold half for tests: image, settings and metadata, asked through real wire bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from types import ModuleType, SimpleNamespace
from typing import Any, TypeVar, cast

from tests.unit.core.metadata.given import broker, image
from tidelog.core.metadata.changes import Change
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.metadata.records import MetadataRecord
from tidelog.core.model.alarms import Alarms
from tidelog.core.model.trace import NullTrace
from tidelog.core.node.api import HANDLERS
from tidelog.core.node.broker.producer_ids import ProducerIds
from tidelog.core.node.broker.recent_departures import RecentDepartures
from tidelog.core.node.connections.liveness_probes import LivenessProbes
from tidelog.core.node.connections.request import Request
from tidelog.core.node.controller.active_controller import ActiveController
from tidelog.core.node.controller.controller_channel import ControllerChannel
from tidelog.core.node.metadata.metadata_log import MetadataLog
from tidelog.core.node.settings import NodeSettings
from tidelog.core.wire.codec import decode, encode
from tidelog.core.wire.links import Links
from tidelog.core.wire.schema import Message

M = TypeVar("M", bound=Message)

NODE_ID = 1
CLUSTER_ID = "AAAAAAAAQACAAAAAAAAAAQ"


class Proposed:
    """Stands for the metadata log: a proposal waits until the test commits it."""

    def __init__(self, committed: ClusterImage, decided: ClusterImage) -> None:
        self.decided_image = decided
        self.cluster_id = CLUSTER_ID
        self.committed_end_offset = 42
        self.is_active = True
        self.records: list[MetadataRecord] = []
        self.changes: list[Change | None] = []
        self._committed = committed
        self._waiting: list[tuple[Sequence[MetadataRecord], Callable[[], None] | None]] = []

    def leader_address(self) -> tuple[str, int] | None:
        return None

    def propose(
        self,
        records: Sequence[MetadataRecord],
        then: Callable[[], None] | None,
        *,
        now_ms: int,
        otherwise: Callable[[], None] | None = None,
    ) -> None:
        for record in records:
            self.decided_image.apply(record)
        self.records += records
        self._waiting.append((records, then))

    def commit(self) -> None:
        while self._waiting:
            records, then = self._waiting.pop(0)
            self.changes += [self._committed.apply(record) for record in records]
            if then is not None:
                then()


class Broker:
    """Asks one API file and gives its answer, both in the bytes of a version."""

    def __init__(self, *records: MetadataRecord, settings: dict[str, str] | None = None) -> None:
        records = records or (broker(NODE_ID),)
        self.image = image(*records)
        self.metadata = Proposed(self.image, image(*records))
        texts = {
            "node.id": str(NODE_ID),
            "listeners": "PLAINTEXT://localhost:9092",
            "log.dirs": "data",
            **(settings or {}),
        }
        self.settings = NodeSettings.of(texts)
        self.random = Random(7)
        self.now_ms = 1_000
        self.alarms = Alarms()
        self.broker_lifecycle = SimpleNamespace(
            broker_epoch=self.image.brokers[NODE_ID].broker_epoch
        )
        self.recent_departures = RecentDepartures(
            image=self.image, alarms=self.alarms, detects_by_connection=True
        )
        self.controller_channel = ControllerChannel(
            controller=self.metadata,
            alarms=self.alarms,
            links=cast("Links", None),
            clock=self,
            handle=self._handle,
        )
        self.active_controller = ActiveController(
            settings=self.settings,
            metadata=cast("MetadataLog", self.metadata),
            probes=cast("LivenessProbes", None),
            departures=self.recent_departures,
            alarms=self.alarms,
            trace=NullTrace(),
        )
        self.producer_ids = ProducerIds(
            node_id=NODE_ID,
            alarms=self.alarms,
            channel=self.controller_channel,
            broker_epoch=lambda: self.image.brokers[NODE_ID].broker_epoch,
        )
        self.answers: list[tuple[int, bytes]] = []

    def _handle(self, request: Request, now_ms: int) -> None:
        HANDLERS[request.api_key].handle(cast("Any", self), request, now_ms)

    def wall_ms(self, now_ms: int) -> int:
        return now_ms

    def send(self, api: ModuleType, message: Message, version: int) -> SimpleNamespace:
        """Hand a request over; what it is answered lands in `answers` when its time comes."""
        assert version in api.VERSIONS
        body = encode(message, version)
        request = SimpleNamespace(
            version=version,
            connection=SimpleNamespace(client_software=None),
            decode=lambda cls: decode(cls, memoryview(body), version),
            answer=lambda answer: self.answers.append((version, encode(answer, version))),
            answer_bytes=lambda answer: self.answers.append((version, answer)),
        )
        api.handle(cast("Any", self), cast("Any", request), 1_000)
        return request

    def ask(self, api: ModuleType, message: Message, response: type[M], version: int) -> M:
        """Send, commit what was proposed, and take the one answer."""
        self.send(api, message, version)
        self.metadata.commit()
        return self.answer(response)

    def answer(self, response: type[M]) -> M:
        ((version, body),) = self.answers
        self.answers.clear()
        return decode(response, memoryview(body), version)
