"""Creating and deleting topics: what is refused and in which order, and the records of the rest.

The order of the questions is Kafka's, because it decides which of several errors a client sees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from tidelog.core.controller.configs import ConfigRules, decide_new_topic
from tidelog.core.controller.decision import (
    RECORDS_PER_DECISION_MAX,
    TOO_LARGE,
    Decision,
    Refusal,
)
from tidelog.core.controller.partitions import (
    ReplicaAssignment,
    assigned_states,
    placed_states,
)
from tidelog.core.controller.topic_ids import new_topic_id
from tidelog.core.metadata.cluster import PartitionState, collision_form, partition_record
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.metadata.records import MetadataRecord, RemoveTopicRecord, TopicRecord
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicId
from tidelog.core.model.limits import PARTITIONS_PER_REQUEST_MAX
from tidelog.core.model.topic_name import METADATA_TOPIC, refuse_topic_name

Key = TypeVar("Key", str, TopicId)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A request for a topic. A count of None means the default."""

    name: str
    partitions_count: int | None = None
    replication_factor: int | None = None
    assignments: tuple[ReplicaAssignment, ...] = ()
    configs: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedTopic:
    """The outcome of a request; without a refusal, the topic that will be there."""

    name: str
    refusal: Refusal | None = None
    topic_id: TopicId | None = None
    partitions_count: int = 0
    replication_factor: int = 0
    configs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreationRules:
    """What the deciding node brings along."""

    default_partitions_count: int
    default_replication_factor: int
    configs: ConfigRules
    random: Random


def decide_create(
    image: ClusterImage, requests: Sequence[NewTopic], rules: CreationRules
) -> Decision[CreatedTopic]:
    """One outcome per request, but only one for a name that was given twice."""
    counts = Counter(request.name for request in requests)
    allowed = [w for w in requests if counts[w.name] == 1 and w.name != METADATA_TOPIC]
    if _partitions_requested(allowed, rules) > PARTITIONS_PER_REQUEST_MAX:
        return _all_refused(requests)
    records: list[MetadataRecord] = []
    outcomes = []
    for request in allowed:
        outcome = _decide_one(image, request, rules, records)
        outcomes.append(outcome)
        if len(records) > RECORDS_PER_DECISION_MAX:
            return _all_refused(requests)
    for name in counts:
        if counts[name] > 1:
            refusal = Refusal(ErrorCode.INVALID_REQUEST, "the topic is named twice")
            outcomes.append(CreatedTopic(name=name, refusal=refusal))
        elif name == METADATA_TOPIC:
            refusal = Refusal(ErrorCode.INVALID_REQUEST, f"{name} cannot be created")
            outcomes.append(CreatedTopic(name=name, refusal=refusal))
    return Decision(records=records, outcomes=outcomes)


def _all_refused(requests: Sequence[NewTopic]) -> Decision[CreatedTopic]:
    outcomes = [CreatedTopic(name=request.name, refusal=TOO_LARGE) for request in requests]
    return Decision(records=[], outcomes=outcomes)


def _partitions_requested(requests: Sequence[NewTopic], rules: CreationRules) -> int:
    """An upper bound, known before anything is placed."""
    total = 0
    for request in requests:
        if request.assignments:
            total += len(request.assignments)
        elif request.partitions_count is None:
            total += rules.default_partitions_count
        else:
            total += max(request.partitions_count, 0)
    return total


def _decide_one(
    image: ClusterImage, request: NewTopic, rules: CreationRules, records: list[MetadataRecord]
) -> CreatedTopic:
    """Adds the records of a topic that may be created."""
    refusal = refuse_new_name(image, request.name)
    if refusal is not None:
        return CreatedTopic(name=request.name, refusal=refusal)
    config_records = decide_new_topic(request.name, request.configs, rules.configs)
    if isinstance(config_records, Refusal):
        return CreatedTopic(name=request.name, refusal=config_records)
    states = _states(image, request, rules)
    if isinstance(states, Refusal):
        return CreatedTopic(name=request.name, refusal=states)
    topic_id = new_topic_id(rules.random, taken=image.topics_by_id)
    records.append(TopicRecord(name=request.name, topic_id=topic_id))
    records.extend(config_records)
    records.extend(partition_record(topic_id, index, state) for index, state in enumerate(states))
    return CreatedTopic(
        name=request.name,
        topic_id=topic_id,
        partitions_count=len(states),
        replication_factor=len(states[0].replicas),
        configs=tuple((name, value) for name, value in request.configs if value is not None),
    )


def refuse_new_name(image: ClusterImage, name: str) -> Refusal | None:
    """Why no topic of this name can be made."""
    if name in image.topics:
        return Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic '{name}' already exists")
    reason = refuse_topic_name(name)
    if reason is not None:
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
    form = collision_form(name)
    if form is not None and form in image.colliding_names:
        other = image.colliding_names[form][0]
        return Refusal(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"topic '{name}' collides with '{other}': metrics cannot tell '.' from '_'",
        )
    return None


def _states(
    image: ClusterImage, request: NewTopic, rules: CreationRules
) -> list[PartitionState] | Refusal:
    if request.assignments:
        if request.replication_factor is not None or request.partitions_count is not None:
            return Refusal(
                ErrorCode.INVALID_REQUEST, "an assignment and a count exclude each other"
            )
        return assigned_states(image, request.assignments)
    if request.replication_factor is not None and request.replication_factor < 1:
        return Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "the replication factor must be positive, or -1 for the default",
        )
    if request.partitions_count is not None and request.partitions_count < 1:
        return Refusal(
            ErrorCode.INVALID_PARTITIONS,
            "the number of partitions must be positive, or -1 for the default",
        )
    return placed_states(
        image,
        partitions_count=request.partitions_count or rules.default_partitions_count,
        replication_factor=request.replication_factor or rules.default_replication_factor,
        random=rules.random,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedTopic:
    """A topic to be deleted, by name or by id, and what became of it."""

    name: str | None = None
    topic_id: TopicId | None = None
    refusal: Refusal | None = None


def decide_delete(image: ClusterImage, requests: Sequence[DeletedTopic]) -> Decision[DeletedTopic]:
    """Each request names a topic by name or by id, not by both; nothing may be named twice."""
    outcomes: list[DeletedTopic] = []
    names: Counter[str] = Counter()
    ids: Counter[TopicId] = Counter()
    for request in requests:
        if request.name is not None and request.topic_id is not None:
            outcomes.append(_bad(request.name, request.topic_id, "give a name or an id, not both"))
        elif request.name is not None:
            names[request.name] += 1
        elif request.topic_id is not None:
            ids[request.topic_id] += 1
        else:
            outcomes.append(_bad(None, None, "neither a name nor an id was given"))
    outcomes += [_bad(name, None, "the topic is named twice") for name in _twice(names)]
    outcomes += [_bad(None, topic_id, "the topic id is given twice") for topic_id in _twice(ids)]
    chosen, refused = _found(image, names, ids)
    outcomes += refused
    records: list[MetadataRecord] = []
    for topic_id, name in chosen.items():
        refusal = TOO_LARGE if len(records) >= RECORDS_PER_DECISION_MAX else None
        if refusal is None:
            records.append(RemoveTopicRecord(topic_id=topic_id))
        outcomes.append(DeletedTopic(name=name, topic_id=topic_id, refusal=refusal))
    return Decision(records=records, outcomes=outcomes)


def _found(
    image: ClusterImage, names: Counter[str], ids: Counter[TopicId]
) -> tuple[dict[TopicId, str], list[DeletedTopic]]:
    """The topics behind names and ids that were given once, and those that are not there."""
    chosen: dict[TopicId, str] = {}
    refused = []
    for topic_id in _once(ids):
        topic = image.topics_by_id.get(topic_id)
        if topic is None:
            refusal = Refusal(ErrorCode.UNKNOWN_TOPIC_ID, "no topic has this id")
            refused.append(DeletedTopic(topic_id=topic_id, refusal=refusal))
        else:
            chosen[topic_id] = topic.name
    for name in _once(names):
        topic = image.topics.get(name)
        if topic is None:
            refusal = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no topic has this name")
            refused.append(DeletedTopic(name=name, refusal=refusal))
        elif ids[topic.topic_id] > 0:
            chosen.pop(topic.topic_id, None)
            refused.append(_bad(name, topic.topic_id, "the topic is named by name and by id"))
        else:
            chosen[topic.topic_id] = name
    return chosen, refused


def _bad(name: str | None, topic_id: TopicId | None, message: str) -> DeletedTopic:
    return DeletedTopic(
        name=name, topic_id=topic_id, refusal=Refusal(ErrorCode.INVALID_REQUEST, message)
    )


def _once(counts: Counter[Key]) -> list[Key]:
    return [key for key in counts if counts[key] == 1]


def _twice(counts: Counter[Key]) -> list[Key]:
    return [key for key in counts if counts[key] > 1]
