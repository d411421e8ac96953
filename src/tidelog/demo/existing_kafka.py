"""The demo on an existing cluster: with topics of its own, and no broker is killed."""

from __future__ import annotations

import secrets

from tidelog.client.admin.cluster import describe_cluster
from tidelog.client.shells.blocking_clients import Admin
from tidelog.client.shells.connectivity import unfit_for_sinks, unreachable
from tidelog.demo.accounts import PublishedOrders
from tidelog.demo.errors import DemoFailed, Say
from tidelog.demo.flow import Flow
from tidelog.demo.pipeline_file import SINKS, VALID, Targets
from tidelog.demo.published import published_topics
from tidelog.demo.topics import create_topics, delete_topics

PARTITIONS = 3
REPLICAS_MAX = 3
ANSWER_WITHIN_S = 20.0
DELETE_WITHIN_S = 20.0


class ExistingKafka:
    """The demo on a cluster of somebody else; everything that the pipeline writes is a topic."""

    def __init__(self, servers: str, say: Say) -> None:
        self.servers = servers
        self._say = say
        prefix = f"tidelog-demo-{secrets.token_hex(4)}"
        self._topics = {sink: f"{prefix}-{sink.replace('_', '-')}" for sink in SINKS}
        self.targets = Targets(orders=f"{prefix}-orders", topics=self._topics)

    def start(self) -> None:
        settings = {"bootstrap.servers": self.servers}
        if problem := unreachable(settings) or unfit_for_sinks(settings):
            raise DemoFailed(f"--bootstrap: {problem}")
        with Admin(settings) as admin:
            brokers = len(admin.ask(describe_cluster(), timeout_s=ANSWER_WITHIN_S).brokers)
        replicas = min(REPLICAS_MAX, brokers)
        try:
            create_topics(
                self.servers,
                {self.targets.orders: PARTITIONS, **dict.fromkeys(self._topics.values(), 1)},
                replicas=replicas,
                configs={"min.insync.replicas": str(min(2, replicas))},
            )
        except BaseException:
            self.close()
            raise
        copies = f"{replicas} copies" if replicas > 1 else "1 copy"
        self._say(
            f"the cluster at {self.servers} answers, {brokers} brokers; "
            f"topic {self.targets.orders}: {PARTITIONS} partitions, {copies} of each"
        )

    def close(self) -> None:
        """Delete the demo's topics."""
        everything = [self.targets.orders, *self._topics.values()]
        left = delete_topics(self.servers, everything, timeout_s=DELETE_WITHIN_S)
        if left:
            self._say(f"these topics could not be deleted: {', '.join(left)}")

    def inject_failures(self, flow: Flow) -> None:
        """None: these brokers are not ours."""
        self._say("these brokers are not ours to kill; the Spark driver is")

    def audit_arguments(self) -> list[str]:
        return ["--published", self._topics[VALID]]

    def published(self) -> PublishedOrders:
        return published_topics(self.servers, self._topics)
