"""Letting a broker process register: who is turned away, and what its predecessor leaves behind.

A new process of a known broker ends whatever the former one was. It leaves every in-sync set, so
the leaderships that it held get a new leader epoch, because the process that came back may know
less than the one that left:

  1. Broker 1 leads in leader epoch 4 and writes offset 10, which reaches the page cache only.
  2. The machine loses power; the broker comes back with a log that ends at 10.
  3. It writes another record at offset 10. Without a new leader epoch, a reader that has seen the
     first one cannot find out that its history is gone.

If it brings the broker epoch of the former process, that one stopped cleanly and its logs are
complete: it may stay eligible. Otherwise it must catch up first (KIP-966).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tidelog.core.controller.decision import Refusal
from tidelog.core.controller.directories import with_directory
from tidelog.core.controller.events import BrokerAdmitted
from tidelog.core.controller.partition_changes import PartitionChanges, Settings
from tidelog.core.metadata.cluster import (
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    FeatureRange,
    ListenerEndpoint,
    RegisteredBroker,
    broker_record,
)
from tidelog.core.metadata.features import KRAFT_VERSION, KRAFT_VERSION_LEVEL, METADATA_VERSION
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.metadata.partitions_by_broker import PartitionKey
from tidelog.core.metadata.records import PartitionChangeRecord
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicId

RESERVED_DIRECTORIES = frozenset(number.to_bytes(16, "big") for number in range(100))
"""Kafka keeps the first hundred ids for meanings like "unassigned"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Newcomer:
    """One run of one broker process, as it introduces itself."""

    broker_id: int
    cluster_id: str
    incarnation_id: bytes
    endpoints: tuple[ListenerEndpoint, ...]
    rack: str | None
    log_directories: tuple[bytes, ...]
    features: tuple[FeatureRange, ...]
    previous_broker_epoch: int | None
    """Proof that the former process stopped cleanly: nobody else knows this number."""


def refuse_newcomer(
    image: ClusterImage, newcomer: Newcomer, *, cluster_id: str, former_may_live: bool
) -> Refusal | None:
    """Why it may not register; the order of the questions is Kafka's."""
    if newcomer.cluster_id != cluster_id:
        return Refusal(
            ErrorCode.INCONSISTENT_CLUSTER_ID, f"this is cluster {cluster_id}, not another"
        )
    known = image.brokers.get(newcomer.broker_id)
    is_new = known is None or known.incarnation_id != newcomer.incarnation_id
    if known is not None and is_new and former_may_live:
        return Refusal(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION, "another process with this id may be alive"
        )
    refusal = _refuse_directories(image, newcomer) or _refuse_features(image.features, newcomer)
    if refusal is None and newcomer.broker_id < 0:
        return _invalid("no broker has a negative id")
    return refusal


def decide_admission(
    image: ClusterImage, settings: Settings, newcomer: Newcomer, *, next_offset: int
) -> tuple[PartitionChanges, int]:
    """Records, and the broker epoch that it gets: the offset of its registration in the log.

    The registration is the last record. If the log ends before it, because the controller died,
    the broker registers again, and the next controller cleans up what is left.
    """
    known = image.brokers.get(newcomer.broker_id)
    changes = PartitionChanges(image, settings, leaving=(newcomer.broker_id,))
    if known is not None and known.incarnation_id == newcomer.incarnation_id:
        amended = replace(
            _broker(newcomer, broker_epoch=known.broker_epoch),
            is_fenced=known.is_fenced,
            in_controlled_shutdown=known.in_controlled_shutdown,
        )
        changes.records.append(broker_record(amended))
        return changes, known.broker_epoch
    is_clean = known is not None and _stopped_cleanly(known, newcomer)
    in_sync = image.index.in_sync(newcomer.broker_id)
    if is_clean or not settings.keeps_eligible:
        changes.without_leaving(in_sync)
    else:
        changes.without_trust(newcomer.broker_id, in_sync)
        changes.without_trust(newcomer.broker_id, image.index.eligible(newcomer.broker_id))
    if known is None or not set(known.log_directories) <= set(newcomer.log_directories):
        # Also of a broker that was unregistered meanwhile: its replicas stayed assigned to it.
        _move_directories(image, newcomer, changes)
    broker_epoch = next_offset + len(changes.records)
    changes.records.append(broker_record(_broker(newcomer, broker_epoch=broker_epoch)))
    admitted = BrokerAdmitted(
        broker_id=newcomer.broker_id, broker_epoch=broker_epoch, is_clean=is_clean
    )
    changes.events.insert(0, admitted)
    return changes, broker_epoch


def _stopped_cleanly(known: RegisteredBroker, newcomer: Newcomer) -> bool:
    """A directory that is missing takes its logs with it, however the process ended."""
    return newcomer.previous_broker_epoch == known.broker_epoch and (
        set(known.log_directories) <= set(newcomer.log_directories)
    )


def _broker(newcomer: Newcomer, *, broker_epoch: int) -> RegisteredBroker:
    return RegisteredBroker(
        broker_id=newcomer.broker_id,
        broker_epoch=broker_epoch,
        incarnation_id=newcomer.incarnation_id,
        endpoints=newcomer.endpoints,
        rack=newcomer.rack,
        is_fenced=True,
        in_controlled_shutdown=False,
        log_directories=newcomer.log_directories,
        features=newcomer.features,
    )


def _move_directories(image: ClusterImage, newcomer: Newcomer, changes: PartitionChanges) -> None:
    """A directory is gone, perhaps with its disk: the replicas in it will be made elsewhere.

    Only after it has left all in-sync sets: an empty log must not pass for a complete one.
    """
    valid = {*newcomer.log_directories, UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY}
    only = newcomer.log_directories[0] if len(newcomer.log_directories) == 1 else None
    moved = only or UNASSIGNED_DIRECTORY
    reassigned = {
        PartitionKey(TopicId(record.topic_id), record.partition_id): record
        for record in changes.records
        if isinstance(record, PartitionChangeRecord) and record.replicas is not None
    }
    for topic in image.topics.values():
        for index, state in enumerate(topic.partitions):
            if newcomer.broker_id not in state.replicas:
                continue
            if state.directory(newcomer.broker_id) in valid:
                continue
            ended = reassigned.get(PartitionKey(topic.topic_id, index))
            if ended is not None:
                _move_in(ended, newcomer.broker_id, moved)
                continue
            changes.records.append(
                PartitionChangeRecord(
                    partition_id=index,
                    topic_id=topic.topic_id,
                    directories=with_directory(state, newcomer.broker_id, moved),
                )
            )


def _move_in(record: PartitionChangeRecord, broker_id: int, directory: bytes) -> None:
    """Its departure ended a reassignment: that record has the replicas and directories to be."""
    assert record.replicas is not None and record.directories is not None
    record.directories = [
        directory if replica == broker_id else old
        for replica, old in zip(record.replicas, record.directories, strict=True)
    ]


def _refuse_directories(image: ClusterImage, newcomer: Newcomer) -> Refusal | None:
    given = newcomer.log_directories
    if not given:
        return _invalid("no log directory")
    if any(each in RESERVED_DIRECTORIES for each in given):
        return _invalid("a reserved directory id")
    if len(set(given)) != len(given):
        return _invalid("the same directory twice")
    for broker in image.brokers.values():
        if broker.broker_id != newcomer.broker_id and set(broker.log_directories) & set(given):
            return _invalid(f"broker {broker.broker_id} has one of these directories")
    return None


def _refuse_features(agreed: Mapping[str, int], newcomer: Newcomer) -> Refusal | None:
    """It must be able to run everything that the cluster has agreed on."""
    levels = {**agreed, KRAFT_VERSION: KRAFT_VERSION_LEVEL}
    known = {feature.name: feature for feature in newcomer.features}
    for name, low, high in newcomer.features:
        if not low <= levels.get(name, 0) <= high:
            return _unsupported(name, levels.get(name, 0))
    if METADATA_VERSION not in known:
        return _invalid(f"the broker does not say which {METADATA_VERSION} it can run")
    for name in sorted(levels):
        if levels[name] != 0 and name not in known:
            return _unsupported(name, levels[name])
    return None


def _unsupported(name: str, level: int) -> Refusal:
    return Refusal(ErrorCode.UNSUPPORTED_VERSION, f"the broker cannot run {name} at level {level}")


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REGISTRATION, message)
