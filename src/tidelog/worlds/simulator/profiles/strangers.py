"""A stranger in a run: it speaks as a node, and must always be refused."""

from __future__ import annotations

from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.links import Outgoing
from tidelog.core.wire.messages.api_01_fetch import FetchResponse
from tidelog.judge.anomalies import STRANGER_SERVED
from tidelog.worlds.simulator import node_requests
from tidelog.worlds.simulator.client import CallFailed
from tidelog.worlds.simulator.client import Outcome as Reply
from tidelog.worlds.simulator.profiles.context import RunContext
from tidelog.worlds.simulator.profiles.wire_clients import BrokerClients

PAUSE_MS = (200, 1_500)
REFUSALS = (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
STOLEN = "stolen"


class Stranger(BrokerClients):
    """One request at a time, to any broker, while the faults go on."""

    def __init__(self, context: RunContext) -> None:
        super().__init__(context, "stranger")

    def start(self) -> None:
        self.context.later(self.random, *PAUSE_MS, self._go_on)

    def _go_on(self) -> None:
        if self.context.is_over:
            return
        if self.in_flight == 0:
            self._ask(self.random.choice(self.context.plan.brokers))
        self.start()

    def _ask(self, broker: int) -> None:
        request, version = self._request(broker)

        def on_answer(answer: Reply) -> None:
            if not isinstance(answer, CallFailed) and _code(answer) not in REFUSALS:
                self.context.report_anomaly(
                    STRANGER_SERVED, "-", node=broker, request=type(request).__name__
                )

        self.ask(request, version, on_answer, broker=broker)

    def _request(self, broker: int) -> Outgoing:
        kind = self.random.randrange(6)
        topic_id = self.random.choice(self._topic_ids())
        if kind == 0:
            return node_requests.vote(quorum_epoch=self.random.randint(1, 1_000), voter=broker)
        if kind == 1:
            return node_requests.registration()
        if kind == 2:
            return node_requests.envelope(topic=STOLEN)
        if kind == 3:
            return node_requests.alter_partition(
                topic_id=topic_id, leader=broker, broker_epoch=self.random.randint(0, 100)
            )
        if kind == 4:
            return node_requests.metadata_fetch(), node_requests.FETCH_VERSION
        fetch = node_requests.follower_fetch(topic_id=topic_id, replica_id=broker)
        return fetch, node_requests.FETCH_VERSION

    def _topic_ids(self) -> list[bytes]:
        nodes = self.context.cluster.running.values()
        return sorted({each for node in nodes for each in node.image.topics_by_id}) or [bytes(16)]


def _code(answer: Reply) -> int:
    """Of the whole request, or of the one partition."""
    if isinstance(answer, FetchResponse) and answer.responses:
        return answer.responses[0].partitions[0].error_code
    code: int = getattr(answer, "error_code")  # noqa: B009 - every one of these answers has it
    return code
