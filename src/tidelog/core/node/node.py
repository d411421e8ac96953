"""A whole broker as one deterministic object: bytes, syncs and time come in, effects go out.

It runs to completion and acts only through the ports given at construction. What one batch of read
events changed is settled once, in `end_of_tick`: high watermarks move, whoever waited for them is
answered, syncs are asked for, and each connection is written to once.
"""

# Size: every event of a node and the order of its tick on one page, and how its parts are joined.

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tidelog.core.metadata.changes import Change, ConfigChanged
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.model.alarms import Alarms
from tidelog.core.model.ids import TopicPartition
from tidelog.core.model.trace import Trace
from tidelog.core.node.api import HANDLERS, api_00_produce, refuse_stranger
from tidelog.core.node.api.api_00_produce import ParkedProduce
from tidelog.core.node.api.api_27_write_txn_markers import MarkerWrite
from tidelog.core.node.broker.broker_lifecycle import BrokerLifecycle
from tidelog.core.node.broker.producer_ids import ProducerIds
from tidelog.core.node.broker.recent_departures import RecentDepartures
from tidelog.core.node.broker.session_watch import SessionWatch
from tidelog.core.node.broker.startup_gate import StartupGate
from tidelog.core.node.connections.connection import Connections
from tidelog.core.node.connections.liveness_probes import LivenessProbes
from tidelog.core.node.connections.membership import Membership
from tidelog.core.node.connections.request import ParkedForData, Request
from tidelog.core.node.connections.request_timeouts import RequestTimeouts
from tidelog.core.node.controller.active_controller import ActiveController
from tidelog.core.node.controller.controller_channel import ControllerChannel
from tidelog.core.node.controller.forwarder import Forwarder
from tidelog.core.node.coordinators.broker_links import BrokerLinks
from tidelog.core.node.coordinators.group_coordinator import GroupCoordinator
from tidelog.core.node.coordinators.internal_topics import InternalTopics
from tidelog.core.node.coordinators.topic_coordinator import CoordinatorParts
from tidelog.core.node.coordinators.transaction_coordinator import TransactionCoordinator
from tidelog.core.node.coordinators.transaction_verifier import TransactionVerifier
from tidelog.core.node.events import NodeStarted, NodeStopped
from tidelog.core.node.fetch.fetch_sessions import FetchSessions
from tidelog.core.node.metadata import cluster_view
from tidelog.core.node.metadata.metadata_log import MetadataLog
from tidelog.core.node.metadata.metadata_port import MetadataPort
from tidelog.core.node.ports import Outbox
from tidelog.core.node.replicas.directory_reports import DirectoryReports
from tidelog.core.node.replicas.hosted_partitions import HostedPartitions
from tidelog.core.node.replicas.isr_changes import IsrChanges
from tidelog.core.node.replicas.log_maintenance import LogMaintenance
from tidelog.core.node.replicas.replica_manager import ReplicaManager
from tidelog.core.node.replicas.replica_selector import ReplicaSelector
from tidelog.core.node.settings import NodeSettings
from tidelog.core.replication.fetcher_links import FetcherLinks
from tidelog.core.replication.fetcher_port import FetcherPort, FetcherSettings
from tidelog.core.replication.partition import Partition
from tidelog.core.storage.disk import Disk, DiskError, File
from tidelog.core.storage.log import Log
from tidelog.core.wire.fast_fields import Topic
from tidelog.core.wire.headers import read_request_header
from tidelog.core.wire.links import Links
from tidelog.core.wire.malformed import MalformedMessage

RESIGN_LINGER_MS = 20
"""How long a controller that resigned stays, so that what it sent arrives."""


class Node:
    """Inputs: start, on_*, end_of_tick, stop. Outputs: the ports. Invariants: check."""

    def __init__(
        self,
        *,
        settings: NodeSettings,
        disk: Disk,
        outbox: Outbox,
        trace: Trace,
        random: Random,
        wall_ms: Callable[[int], int],
    ) -> None:
        self.settings = settings
        self.disk = disk
        self.outbox = outbox
        self.trace = trace
        self.random = random
        self.wall_ms = wall_ms
        self.image = ClusterImage()
        self.partitions = HostedPartitions()
        self.find_partition = self.partitions.find
        self.touch = self.partitions.touch
        self.connections = Connections(outbox)
        self.membership = Membership(
            node_id=settings.node_id, secret=settings.cluster_secret, random=random, trace=trace
        )
        self.links = Links(
            outbox,
            client_id=f"node-{settings.node_id}",
            introductions=self.membership if self.membership.has_secret else None,
        )
        self.alarms = Alarms()
        self.timeouts = RequestTimeouts()
        self.newly_parked: list[ParkedProduce | MarkerWrite] = []
        self.dirty_fetches: list[ParkedForData] = []
        self.fetch_bytes_max = settings.integer("fetch.max.bytes")
        self.fetch_sessions = FetchSessions(
            slots=settings.integer("max.incremental.fetch.session.cache.slots"),
            evict_after_ms=settings.integer("min.incremental.fetch.session.eviction.ms"),
            random=random,
        )
        self.now_ms = 0  # when the event that is being handled happened
        self.is_stopped = False
        self.is_ready_to_stop = False
        self.startup_gate = StartupGate()
        self._is_starting = True
        self._is_broker = settings.is_broker
        self._armed_ms: int | None = None
        self._build()

    def _build(self) -> None:
        """The parts: each is given what it uses."""
        settings, image, alarms = self.settings, self.image, self.alarms
        detects_by_connection = settings.text("tidelog.failure.detection") == "connection"
        self.probes = LivenessProbes(alarms=alarms, links=self.links)
        self.recent_departures = RecentDepartures(
            image=image, alarms=alarms, detects_by_connection=detects_by_connection
        )
        self.metadata = MetadataLog(self._metadata_port())
        self.quorum = self.metadata.quorum
        self.session_watch = SessionWatch(
            settings=settings, metadata=self.metadata, alarms=alarms, trace=self.trace
        )
        self.quorum.fetch_client.on_read = self.session_watch.on_metadata_read
        self._build_controller()
        self._build_replicas()
        self.broker_lifecycle = BrokerLifecycle(
            settings=settings,
            image=image,
            metadata=self.metadata,
            directories=self.replica_manager,
            channel=self.controller_channel,
            session_watch=self.session_watch,
            on_caught_up=self.publish_partitions,
            alarms=alarms,
            clock=self,
            trace=self.trace,
            random=self.random,
        )
        self.quorum.on_leader_found.append(self.broker_lifecycle.on_leader_found)
        self.producer_ids = ProducerIds(
            node_id=settings.node_id,
            alarms=alarms,
            channel=self.controller_channel,
            broker_epoch=self._broker_epoch,
        )
        self._build_coordinators()

    def _build_controller(self) -> None:
        self.controller_channel = ControllerChannel(
            controller=self.metadata,
            alarms=self.alarms,
            links=self.links,
            clock=self,
            handle=self._handle,
        )
        self.quorum.on_leader_found.append(self.controller_channel.on_leader_found)
        self.forwarder = Forwarder(
            controller=self.metadata,
            channel=self.controller_channel,
            image=self.image,
            alarms=self.alarms,
            clock=self,
            handle=self._handle,
        )
        self.active_controller = ActiveController(
            settings=self.settings,
            metadata=self.metadata,
            probes=self.probes,
            departures=self.recent_departures,
            alarms=self.alarms,
            trace=self.trace,
        )
        self.metadata.activations += [self.active_controller, self.forwarder]
        self.quorum.fetch_server.observers.append(self.active_controller)

    def _build_replicas(self) -> None:
        settings, channel = self.settings, self.controller_channel
        self.fetcher_links = FetcherLinks(self._fetcher_port())
        self.isr_changes = IsrChanges(
            node_id=settings.node_id,
            lag_ms_max=settings.integer("replica.lag.time.max.ms"),
            partitions=self.partitions,
            alarms=self.alarms,
            trace=self.trace,
            channel=channel,
            broker_epoch=self._broker_epoch,
        )
        self.directory_reports = DirectoryReports(
            node_id=settings.node_id,
            alarms=self.alarms,
            channel=channel,
            broker_epoch=self._broker_epoch,
        )
        self.replica_manager = ReplicaManager(
            settings=settings,
            image=self.image,
            partitions=self.partitions,
            fetcher_links=self.fetcher_links,
            isr_changes=self.isr_changes,
            directory_reports=self.directory_reports,
            directory_ids=lambda: self.metadata.identity.directory_ids,
            on_directory_lost=lambda: self.broker_lifecycle.on_directory_lost(),
            halt=self.outbox.halt,
            disk=self.disk,
            trace=self.trace,
            random=self.random,
        )
        self.log_maintenance = LogMaintenance(
            settings=settings,
            partitions=self.partitions,
            replica_manager=self.replica_manager,
            wall_ms=self.wall_ms,
            trace=self.trace,
        )
        self.replica_selector = ReplicaSelector.of(settings, self.image)
        self.held_replicas: frozenset[tuple[int, TopicPartition]] = frozenset()
        """A fault for tests: followers that get nothing of a partition that this node leads."""

    def _build_coordinators(self) -> None:
        self.internal_topics = InternalTopics(
            settings=self.settings,
            image=self.image,
            channel=self.controller_channel,
            alarms=self.alarms,
        )
        parts = CoordinatorParts(
            settings=self.settings,
            image=self.image,
            partitions=self.partitions,
            on_log_failed=self.on_log_failed,
            alarms=self.alarms,
            wall_ms=self.wall_ms,
            trace=self.trace,
        )
        self.broker_links = BrokerLinks(
            node_id=self.settings.node_id,
            image=self.image,
            links=self.links,
            alarms=self.alarms,
            clock=self,
            handle=self._handle,
        )
        self.group_coordinator = GroupCoordinator(parts, random=self.random)
        self.transaction_coordinator = TransactionCoordinator(
            parts, links=self.broker_links, producer_ids=self.producer_ids, clock=self
        )
        self.transaction_verifier = TransactionVerifier(
            image=self.image,
            links=self.broker_links,
            partition_of=self.transaction_coordinator.partition_of,
        )
        self._unsettled_groups = self.group_coordinator.runtime.unsettled
        self._unsettled_transactions = self.transaction_coordinator.runtime.unsettled
        self._markers = self.transaction_coordinator.markers

    def _metadata_port(self) -> MetadataPort:
        return MetadataPort(
            settings=self.settings,
            image=self.image,
            disk=self.disk,
            log_directory=lambda: self.replica_manager.directories[0],
            links=self.links,
            probes=self.probes,
            alarms=self.alarms,
            timeouts=self.timeouts,
            trace=self.trace,
            random=self.random,
            wall_ms=self.wall_ms,
            on_change=self.on_change,
            on_data=lambda parked: self.dirty_fetches.extend(parked),
            on_log_failed=self.on_log_failed,
            on_disk_error=self._on_disk_error,
            halt=self.outbox.halt,
        )

    def _fetcher_port(self) -> FetcherPort:
        value = self.settings.integer
        return FetcherPort(
            settings=FetcherSettings(
                node_id=self.settings.node_id,
                wait_ms_max=value("replica.fetch.wait.max.ms"),
                bytes_min=value("replica.fetch.min.bytes"),
                response_bytes_max=value("replica.fetch.response.max.bytes"),
                partition_bytes_max=value("replica.fetch.max.bytes"),
                backoff_ms_max=value("replica.fetch.backoff.ms"),
                socket_timeout_ms=value("replica.socket.timeout.ms"),
            ),
            alarms=self.alarms,
            links=self.links,
            trace=self.trace,
            wall_ms=self.wall_ms,
            broker_epoch=self._broker_epoch,
            address_of=lambda broker_id: cluster_view.address_of(self.image, broker_id),
            touch=self.touch,
            on_log_failed=self.on_log_failed,
            on_connection_lost=self.recent_departures.on_connection_lost,
        )

    # Life

    def start(self, now_ms: int) -> None:
        """Open the metadata log and join the cluster. A node alone serves when this returns."""
        self.now_ms = now_ms
        self.metadata.claim_directories()
        self.replica_manager.open_directories(self.wall_ms(now_ms))
        self.metadata.start(now_ms)
        self.broker_lifecycle.start(now_ms)
        self.broker_lifecycle.end_of_tick(now_ms)
        self.metadata.finish_start(now_ms)
        self._is_starting = False
        self.log_maintenance.start(now_ms)
        self.isr_changes.start(now_ms)
        self.session_watch.start(now_ms)
        if self.broker_lifecycle.is_caught_up:
            self.publish_partitions(now_ms)
        self.trace.emit(
            NodeStarted(
                node_id=self.settings.node_id,
                topics=len(self.image.topics),
                partitions=len(self.partitions),
            )
        )
        self.end_of_tick(now_ms)

    def publish_partitions(self, now_ms: int) -> None:
        """The metadata shows this very process: open the partitions that it gives us."""
        if self._is_starting:
            return
        self.metadata.announce_partitions(now_ms)
        self.replica_manager.remove_orphans()
        self.startup_gate.open(self._handle_late, now_ms)

    def _handle(self, request: Request, now_ms: int) -> None:
        """Answer it here, whatever the way by which it came."""
        HANDLERS[request.api_key].handle(self, request, now_ms)

    def _handle_late(self, request: Request, now_ms: int) -> None:
        try:
            self._handle(request, now_ms)
        except MalformedMessage as error:
            request.close(f"malformed request: {error}")

    def begin_stop(self, now_ms: int) -> None:
        """Hand over what we lead; serve on until `is_ready_to_stop`."""
        self.now_ms = now_ms
        self.broker_lifecycle.leave(now_ms)
        self._resign_when_left(now_ms)

    def stop(self, now_ms: int) -> None:
        """Sync and close everything, and leave the mark that says so."""
        self.is_stopped = True
        self.replica_manager.close_cleanly(broker_epoch=self.broker_lifecycle.broker_epoch)
        self.trace.emit(NodeStopped(node_id=self.settings.node_id))

    # Events

    def on_connection_opened(self, connection: int, peer: str, now_ms: int) -> None:
        self.connections.add(connection, peer)

    def on_connection_closed(self, connection: int, now_ms: int) -> None:
        self.now_ms = now_ms
        self.connections.remove(connection)
        if self.metadata.is_active:
            self.active_controller.on_connection_closed(connection, now_ms)

    def on_frame(self, connection: int, frame: memoryview, now_ms: int) -> None:
        """One request. `frame` is writable, without its size, and valid only during the call."""
        self.now_ms = now_ms
        if now_ms >= self.session_watch.late_ms:
            self._on_paused(now_ms)
        peer = self.connections.open.get(connection)
        if peer is None or peer.is_failed:
            return
        if peer.held is not None:
            peer.held.append(bytearray(frame))
            return
        try:
            header = read_request_header(frame)
            api_key, version, correlation_id, client_id, body_position = header
            api = HANDLERS.get(api_key)
            if api is None or (version not in api.versions and not api.answers_any_version):
                peer.fail(f"api key {api_key} version {version} is not served")
                return
            body = frame[body_position:]
            request = Request(peer, api_key, version, correlation_id, client_id, body)
            peer.add(request)
            if api.is_between_nodes and not request.is_from_member:
                refuse_stranger(request)
            elif (
                api.waits_for_metadata
                and self._is_broker
                and not self.broker_lifecycle.is_caught_up
            ):
                self.startup_gate.add(request)
            elif api.forward is not None:
                api.forward(self, request, frame, now_ms)
            elif api.is_forwarded:
                self.forwarder.forward(request, frame, now_ms)
            else:
                api.handle(self, request, now_ms)
            request.body = None
        except MalformedMessage as error:
            peer.fail(f"malformed request: {error}")

    def on_link_opened(self, link: int, now_ms: int) -> None:
        self.now_ms = now_ms
        self.links.on_link_opened(link, now_ms)

    def on_link_closed(self, link: int, reason: str, now_ms: int) -> None:
        """The reason is one of "refused", "closed", "reset", "unreachable"."""
        self.now_ms = now_ms
        self.links.on_link_closed(link, reason, now_ms)

    def on_answer(self, link: int, frame: memoryview, now_ms: int) -> None:
        """What another node answered. `frame` is without its size, valid only during the call."""
        self.now_ms = now_ms
        if now_ms >= self.session_watch.late_ms:
            self._on_paused(now_ms)
        self.links.on_answer(link, frame, now_ms)

    def on_synced(self, file: File, size_bytes: int, now_ms: int) -> None:
        """A sync that was asked for is done: the first `size_bytes` of the file are durable."""
        self.now_ms = now_ms
        owner = file.owner
        if owner is None:
            return
        owner.on_synced(file, size_bytes)
        if owner is self.metadata.log:
            self.metadata.on_synced(now_ms)
            return
        partition = self.replica_manager.partition_of(owner)
        if partition is not None and partition.waits_for_sync:
            self.touch(partition)

    def on_sync_failed(self, file: File, reason: str, now_ms: int) -> None:
        """Final for its log directory: what the kernel could not write may be gone."""
        self.now_ms = now_ms
        self.replica_manager.fail_directory_of(file.path, f"sync failed: {reason}")

    def on_timer(self, now_ms: int) -> None:
        self.now_ms = now_ms
        if now_ms >= self.session_watch.late_ms:
            self._on_paused(now_ms)
        if self._armed_ms is not None and now_ms >= self._armed_ms:
            self._armed_ms = None
        self.timeouts.expire(now_ms)
        self.links.expire(now_ms)
        self.alarms.run(now_ms)
        self.log_maintenance.run(now_ms)

    def end_of_tick(self, now_ms: int) -> None:
        """Settle what this batch of events changed; the order of the steps is the promise."""
        self.now_ms = now_ms
        if now_ms >= self.session_watch.late_ms:
            self._on_paused(now_ms)
        self.session_watch.on_event(now_ms)
        self.replica_manager.notice_failures()
        if not self.broker_lifecycle.is_caught_up:
            self.broker_lifecycle.end_of_tick(now_ms)
        self._settle_partitions(now_ms)
        self._settle_coordinators(now_ms)
        if self.internal_topics.is_due:
            self.internal_topics.settle(now_ms)
        if self.forwarder.waiting_for_image:
            self.forwarder.end_of_tick()
        if self.recent_departures.is_due:
            self.recent_departures.settle(now_ms)
        if self.newly_parked:
            self._start_timeouts(now_ms)
        while self.dirty_fetches:
            dirty, self.dirty_fetches = self.dirty_fetches, []
            for parked in dirty:
                parked.look_again(now_ms)
        if self.broker_lifecycle.may_stop:
            self._resign_when_left(now_ms)  # before the answers: those who wait for us hear it
        for dropped in self.connections.flush():
            self.trace.emit(dropped)
        self._arm(now_ms)

    # What the API files use

    def hold(self, request: Request) -> None:
        """What the same connection sends behind this request waits until `release`."""
        if request.connection is not None:
            request.connection.hold()

    def release(self, request: Request, now_ms: int) -> None:
        """The request is done: go on with what waits behind it."""
        connection = request.connection
        if connection is None:
            return
        waiting = connection.release()
        while waiting and connection.held is None:
            self.on_frame(connection.id, memoryview(waiting.popleft()), now_ms)
        if waiting and connection.held is not None:
            connection.held.extendleft(reversed(waiting))

    def partition(self, topic: str, index: int) -> Partition | None:
        return self.partitions.find(topic, index)

    def partition_by_id(self, topic_id: bytes, index: int) -> Partition | None:
        return self.partitions.find(topic_id, index)

    def knows_topic_id(self, topic_id: Topic) -> bool:
        return topic_id in self.image.topics_by_id

    def on_change(self, change: Change, now_ms: int) -> None:
        """The image took one committed record: make partitions follow."""
        self.trace.emit(change)
        if self.broker_lifecycle.is_caught_up or isinstance(change, ConfigChanged):
            self.replica_manager.on_change(change, now_ms)
            self.recent_departures.on_change(change, now_ms)
            self.group_coordinator.on_change(change, now_ms)
            self.transaction_coordinator.on_change(change, now_ms)
            self.broker_links.on_change(change, now_ms)
            self.internal_topics.on_change()

    def on_log_failed(self, log: Log) -> None:
        """A log could not be written: its whole directory is given up."""
        self.replica_manager.fail_directory_of(log.directory, log.failed or "write failed")

    def _on_disk_error(self, error: DiskError) -> None:
        self.replica_manager.fail_directory_of(error.path, error.reason)

    def _broker_epoch(self) -> int | None:
        """Of this process's registration; None before it has one."""
        return self.broker_lifecycle.broker_epoch

    def check(self) -> None:
        for partition in self.partitions:
            partition.check()
        self.replica_manager.check()
        self.fetcher_links.check()
        self.fetch_sessions.check()
        self.isr_changes.check()
        self.metadata.check()
        self.quorum.check()
        self.active_controller.check()
        self.broker_lifecycle.check()
        self.producer_ids.check()
        self.group_coordinator.check()
        self.transaction_coordinator.check()
        self.session_watch.check()
        for connection in self.connections.open.values():
            first = connection.queue[0] if connection.queue else None
            assert first is None or first.parts is None, "an answer was forgotten"

    # Inside

    def _on_paused(self, now_ms: int) -> None:
        """We stood still: before anything else, ask whether we still lead what we led.

        Answers to writers that were ready before and did not leave are not given any more.
        """
        self.session_watch.on_paused(now_ms)
        for dropped in self.connections.drop_answered(
            api_00_produce.API_KEY, "the broker was paused before its answer left"
        ):
            self.trace.emit(dropped)
        if self.metadata.is_active:
            self.active_controller.on_paused(now_ms)
        self.broker_lifecycle.on_paused(now_ms)

    def _settle_partitions(self, now_ms: int) -> None:
        """High watermarks move; followers ask on; in-sync sets are proposed."""
        while True:
            for partition in self.partitions.take_touched():
                if partition.is_deleted:
                    continue
                if partition.waits_for_sync:
                    partition.log.want_sync()
                partition.settle(now_ms)
            if self.fetcher_links.awake:
                self.fetcher_links.settle(now_ms)
            if self.isr_changes.wanted:
                self.isr_changes.settle(now_ms)
            if not self.partitions.touched:  # a controller on this node answers at once
                return

    def _settle_coordinators(self, now_ms: int) -> None:
        """Answers that waited for a high watermark; what they lead to may move another one."""
        while True:
            if self._unsettled_groups:
                self.group_coordinator.runtime.settle()
            if self._unsettled_transactions:
                self.transaction_coordinator.runtime.settle()
            if self._markers.is_due:
                self._markers.settle(now_ms)
            if not self.partitions.touched:
                return
            self._settle_partitions(now_ms)

    def _resign_when_left(self, now_ms: int) -> None:
        """The last thing before the end: others may elect a controller without waiting for us."""
        if not self.broker_lifecycle.may_stop or self.quorum.is_stopping:
            return
        was_leader = self.quorum.is_leader and not self.quorum.is_alone
        self.quorum.resign(now_ms)
        if was_leader:
            self.alarms.at(now_ms + RESIGN_LINGER_MS, self._on_resigned)
        else:
            self.is_ready_to_stop = True

    def _on_resigned(self, now_ms: int) -> None:
        self.is_ready_to_stop = True

    def _start_timeouts(self, now_ms: int) -> None:
        """Only those that are still parked after the tick need a deadline."""
        for parked in self.newly_parked:
            if not parked.is_done:
                self.timeouts.add(parked, timeout_ms=parked.timeout_ms, now_ms=now_ms)
        self.newly_parked.clear()

    def _arm(self, now_ms: int) -> None:
        """Ask for a timer, if none is set early enough; at the end of every tick, so no calls."""
        deadline_ms = self.log_maintenance.next_deadline_ms
        links_ms = self.links.next_deadline_ms
        if links_ms is not None and links_ms < deadline_ms:
            deadline_ms = links_ms
        heap = self.alarms.heap
        if heap and heap[0][0] < deadline_ms:
            deadline_ms = heap[0][0]
        if self.timeouts.queues:
            parked_ms = self.timeouts.next_deadline_ms()
            if parked_ms is not None and parked_ms < deadline_ms:
                deadline_ms = parked_ms
        if self._armed_ms is None or deadline_ms < self._armed_ms:
            self._armed_ms = deadline_ms
            self.outbox.arm(deadline_ms)
