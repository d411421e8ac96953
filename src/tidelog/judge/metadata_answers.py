"""Metadata as clients see it: producer ids are given once, and topics come and go as answered."""

from __future__ import annotations

from tidelog.judge.anomalies import (
    PRODUCER_ID_REUSED,
    TOPIC_FORGOTTEN,
    TOPIC_RESURRECTED,
    Anomaly,
    AnomalyKind,
)
from tidelog.judge.excuses import Excuses
from tidelog.judge.history import (
    CallOutcome,
    History,
    ProducerIdGiven,
    TopicRequested,
    TopicsListed,
)


def producer_id_reused(history: History, excuses: Excuses) -> list[Anomaly]:
    """Producer ids are unique for ever, over every restart (D4-I3, N23)."""
    given: set[tuple[int, int]] = set()
    found = []
    for operation in history:
        if isinstance(operation, ProducerIdGiven):
            identity = (operation.producer_id, operation.producer_epoch)
            if identity in given:
                found.append(
                    PRODUCER_ID_REUSED.found(
                        at_us=operation.at_us, partition="-", producer_id=operation.producer_id
                    )
                )
            given.add(identity)
    return found


def topic_forgotten(history: History, excuses: Excuses) -> list[Anomaly]:
    """A creation that was answered ok shows in every later list, until a deletion is asked for."""
    deletions = [op for op in history if isinstance(op, TopicRequested) and not op.is_creation]
    created: list[TopicRequested] = []
    found: list[Anomaly] = []
    for operation in history:
        if isinstance(operation, TopicRequested):
            if operation.is_creation and operation.outcome is CallOutcome.OK:
                created.append(operation)
        elif isinstance(operation, TopicsListed):
            listed = {topic_id for _, topic_id in operation.topics}
            for creation in created:
                may_be_gone = any(
                    deletion.topic == creation.topic
                    and creation.invoked_us <= deletion.at_us
                    and deletion.invoked_us <= operation.at_us
                    and deletion.outcome is not CallOutcome.REFUSED
                    for deletion in deletions
                )
                if (
                    creation.topic_id not in listed
                    and not may_be_gone
                    and creation.at_us <= operation.invoked_us
                ):
                    found.append(_topic(TOPIC_FORGOTTEN, operation, creation))
    return found


def topic_resurrected(history: History, excuses: Excuses) -> list[Anomaly]:
    """The id of a topic whose deletion was answered ok never shows again."""
    deleted: list[TopicRequested] = []
    found: list[Anomaly] = []
    for operation in history:
        if isinstance(operation, TopicRequested):
            if not operation.is_creation and operation.outcome is CallOutcome.OK:
                deleted.append(operation)
        elif isinstance(operation, TopicsListed):
            listed = {topic_id for _, topic_id in operation.topics}
            found.extend(
                _topic(TOPIC_RESURRECTED, operation, deletion)
                for deletion in deleted
                if deletion.topic_id in listed and deletion.at_us <= operation.invoked_us
            )
    return found


def _topic(kind: AnomalyKind, listed: TopicsListed, request: TopicRequested) -> Anomaly:
    return kind.found(
        at_us=listed.at_us,
        partition="-",
        topic=request.topic,
        topic_id=request.topic_id,
        answered_us=request.at_us,
    )
