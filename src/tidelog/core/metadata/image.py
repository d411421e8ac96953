"""The cluster as the metadata log tells it: brokers, topics, partitions, configs, features.

`apply` is the only mutator, but for `restore`, by which a snapshot takes the place of records.
Start-up, a standby and the active controller all build their image by applying the same records in
the same order, so they agree. What hangs on an image (`RegisteredBroker`, `PartitionState`) is
immutable and may be kept by whoever read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from tidelog.core.metadata.changes import (
    BrokerChanged,
    BrokerRegistered,
    BrokerUnregistered,
    Change,
    ConfigChanged,
    EligibleLeadersCleared,
    FeatureLevelChanged,
    PartitionChanged,
    PartitionCreated,
    ProducerIdsReserved,
    TopicCreated,
    TopicDeleted,
)
from tidelog.core.metadata.cluster import (
    ConfigResource,
    PartitionState,
    RegisteredBroker,
    ResourceType,
    TopicState,
    broker_after,
    broker_of,
    broker_record,
    collision_form,
    partition_after,
    partition_of,
    partition_record,
)
from tidelog.core.metadata.features import METADATA_VERSION
from tidelog.core.metadata.partitions_by_broker import PartitionKey, PartitionsByBroker
from tidelog.core.metadata.records import (
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from tidelog.core.model.ids import TopicId
from tidelog.core.wire.sentinels import NO_NODE

CLUSTER_DEFAULTS = ConfigResource(ResourceType.BROKER, "")
"""The broker settings that hold for the whole cluster unless a broker has its own."""

_NOTHING: dict[str, str] = {}


class ClusterImage:
    """Invariants: see `check`."""

    def __init__(self) -> None:
        self.brokers: dict[int, RegisteredBroker] = {}
        self.topics: dict[str, TopicState] = {}
        self.topics_by_id: dict[TopicId, TopicState] = {}
        self.configs: dict[ConfigResource, dict[str, str]] = {}
        self.features: dict[str, int] = {}
        self.next_producer_id = 0
        self.colliding_names: dict[str, list[str]] = {}
        """The topics with "." or "_" in their name, by the form that metrics would give them."""
        self._index: PartitionsByBroker | None = None
        self._has_changed = True

    def apply(self, record: MetadataRecord) -> Change | None:
        """The only way an image changes. Records come in the order of the log."""
        self._has_changed = True
        return _APPLIERS[type(record)](self, record)

    @property
    def index(self) -> PartitionsByBroker:
        """Which partitions a broker is in; built when somebody asks for the first time."""
        if self._index is None:
            self._index = PartitionsByBroker(self.topics.values())
        return self._index

    def restore(self, other: ClusterImage) -> ClusterImage:
        """Become what another image is, which is given up: a snapshot was loaded.

        Returns an image with what this one was. Whoever holds this image sees the new facts.
        """
        before = ClusterImage()
        for old, new in ((before, self), (self, other)):
            old.brokers, old.topics, old.topics_by_id = new.brokers, new.topics, new.topics_by_id
            old.configs, old.features = new.configs, new.features
            old.next_producer_id, old.colliding_names = new.next_producer_id, new.colliding_names
            old._index, old._has_changed = None, True
        return before

    def copy(self) -> ClusterImage:
        """Another image with the same facts, which goes its own way from here."""
        made = ClusterImage()
        made.brokers = dict(self.brokers)
        for topic in self.topics.values():
            twin = TopicState(
                name=topic.name, topic_id=topic.topic_id, partitions=list(topic.partitions)
            )
            made.topics[twin.name] = made.topics_by_id[twin.topic_id] = twin
        made.configs = {resource: dict(own) for resource, own in self.configs.items()}
        made.features = dict(self.features)
        made.next_producer_id = self.next_producer_id
        made.colliding_names = {form: list(names) for form, names in self.colliding_names.items()}
        return made

    def records(self) -> Iterator[MetadataRecord]:
        """What a snapshot holds: applied to an empty image they make an equal one.

        The metadata version comes first, as readers need it for the rest.
        """
        for name in sorted(self.features, key=lambda name: (name != METADATA_VERSION, name)):
            yield FeatureLevelRecord(name=name, feature_level=self.features[name])
        for broker_id in sorted(self.brokers):
            yield broker_record(self.brokers[broker_id])
        for topic in self.topics.values():
            yield TopicRecord(name=topic.name, topic_id=topic.topic_id)
            for index, state in enumerate(topic.partitions):
                yield partition_record(topic.topic_id, index, state)
        for resource in sorted(self.configs):
            for name, value in sorted(self.configs[resource].items()):
                yield ConfigRecord(
                    resource_type=resource.type,
                    resource_name=resource.name,
                    name=name,
                    value=value,
                )
        if self.next_producer_id > 0:
            # In a snapshot no broker requested the producer ids.
            yield ProducerIdsRecord(broker_id=NO_NODE, next_producer_id=self.next_producer_id)

    def __eq__(self, other: object) -> bool:
        """The same facts, however they came to be."""
        return isinstance(other, ClusterImage) and self._facts() == other._facts()

    __hash__ = None  # type: ignore[assignment]

    def _facts(self) -> tuple[object, ...]:
        return (
            self.brokers,
            self.topics,
            self.configs,
            self.features,
            self.next_producer_id,
            self.colliding_names,
        )

    def partition(self, topic: str, index: int) -> PartitionState | None:
        found = self.topics.get(topic)
        if found is None or not 0 <= index < len(found.partitions):
            return None
        return found.partitions[index]

    def topic_config(self, topic: str) -> dict[str, str]:
        """The settings that this topic has of its own; not to be changed by the reader."""
        return self.configs.get(ConfigResource(ResourceType.TOPIC, topic), _NOTHING)

    def group_config(self, group_id: str) -> dict[str, str]:
        """A group's own settings, as text; nobody need have heard of the group."""
        return self.configs.get(ConfigResource(ResourceType.GROUP, group_id), _NOTHING)

    def broker_config(self, broker_id: int) -> dict[str, str]:
        """The settings that this broker was given while running, without the cluster's."""
        return self.configs.get(ConfigResource(ResourceType.BROKER, str(broker_id)), _NOTHING)

    def cluster_config(self) -> dict[str, str]:
        """The broker settings that were given to the whole cluster while running."""
        return self.configs.get(CLUSTER_DEFAULTS, _NOTHING)

    def alive_brokers(self) -> list[RegisteredBroker]:
        """Those that are not fenced, by id."""
        return [self.brokers[i] for i in sorted(self.brokers) if not self.brokers[i].is_fenced]

    def check_changes(self) -> None:
        """`check` for whoever looks after every tick: nothing to do if nothing was applied."""
        if self._has_changed:
            self.check()
            self._has_changed = False

    def check(self) -> None:
        """What must hold after every record."""
        assert len(self.topics) == len(self.topics_by_id)
        for name, topic in self.topics.items():
            assert topic.name == name
            assert self.topics_by_id[topic.topic_id] is topic
            for partition in topic.partitions:
                partition.check()
        for form, names in self.colliding_names.items():
            assert names, form
            assert all(collision_form(name) == form and name in self.topics for name in names)
        for resource, settings in self.configs.items():
            assert settings, resource
            if resource.type == ResourceType.TOPIC:
                assert resource.name in self.topics, resource
        assert self.next_producer_id >= 0
        if self._index is not None:
            self._index.check(self.topics.values())

    def _register_broker(self, record: RegisterBrokerRecord) -> Change:
        known = self.brokers.get(record.broker_id)
        if known is not None and known.incarnation_id == record.incarnation_id:
            assert known.broker_epoch <= record.broker_epoch, "broker epochs grow"
        elif known is not None:
            assert known.broker_epoch < record.broker_epoch, "broker epochs grow"
        broker = self.brokers[record.broker_id] = broker_of(record)
        return BrokerRegistered(
            broker_id=broker.broker_id,
            broker_epoch=broker.broker_epoch,
            rack=broker.rack,
            is_fenced=broker.is_fenced,
            endpoints=broker.endpoints,
        )

    def _unregister_broker(self, record: UnregisterBrokerRecord) -> Change:
        known = self.brokers.pop(record.broker_id)
        assert known.broker_epoch == record.broker_epoch, "of this registration"
        return BrokerUnregistered(broker_id=known.broker_id, broker_epoch=known.broker_epoch)

    def _change_broker(self, record: BrokerRegistrationChangeRecord) -> Change:
        known = self.brokers[record.broker_id]
        assert known.broker_epoch == record.broker_epoch, "of this registration"
        broker = self.brokers[record.broker_id] = broker_after(known, record)
        return BrokerChanged(
            broker_id=broker.broker_id,
            broker_epoch=broker.broker_epoch,
            is_fenced=broker.is_fenced,
            in_controlled_shutdown=broker.in_controlled_shutdown,
        )

    def _create_topic(self, record: TopicRecord) -> Change:
        topic = TopicState(name=record.name, topic_id=TopicId(record.topic_id))
        assert topic.name not in self.topics, topic.name
        assert topic.topic_id not in self.topics_by_id, topic.name
        self.topics[topic.name] = topic
        self.topics_by_id[topic.topic_id] = topic
        form = collision_form(topic.name)
        if form is not None:
            self.colliding_names.setdefault(form, []).append(topic.name)
        return TopicCreated(topic=topic.name, topic_id=topic.topic_id)

    def _remove_topic(self, record: RemoveTopicRecord) -> Change:
        topic = self.topics_by_id.pop(TopicId(record.topic_id))
        del self.topics[topic.name]
        self.configs.pop(ConfigResource(ResourceType.TOPIC, topic.name), None)
        form = collision_form(topic.name)
        if form is not None:
            self.colliding_names[form].remove(topic.name)
            if not self.colliding_names[form]:
                del self.colliding_names[form]
        if self._index is not None:
            for index, state in enumerate(topic.partitions):
                self._index.drop(PartitionKey(topic.topic_id, index), state)
        return TopicDeleted(
            topic=topic.name, topic_id=topic.topic_id, partitions_count=len(topic.partitions)
        )

    def _create_partition(self, record: PartitionRecord) -> Change:
        topic = self.topics_by_id[TopicId(record.topic_id)]
        assert record.partition_id == len(topic.partitions), "partitions come in order"
        state = partition_of(record)
        topic.partitions.append(state)
        if self._index is not None:
            self._index.put(PartitionKey(topic.topic_id, record.partition_id), state)
        return _described(PartitionCreated, topic, record.partition_id)

    def _change_partition(self, record: PartitionChangeRecord) -> PartitionChanged:
        topic = self.topics_by_id[TopicId(record.topic_id)]
        before = topic.partitions[record.partition_id]
        after = partition_after(before, record)
        topic.partitions[record.partition_id] = after
        if self._index is not None:
            key = PartitionKey(topic.topic_id, record.partition_id)
            self._index.drop(key, before)
            self._index.put(key, after)
        return partition_changed(topic, record.partition_id)

    def _clear_eligible_leaders(self, record: ClearElrRecord) -> Change:
        """Where somebody is in sync: where nobody is, nothing was committed since they left, and
        without them nobody could ever lead again. (Kafka clears those, too.)"""
        topics = [self.topics[record.topic_name]] if record.topic_name else self.topics.values()
        return EligibleLeadersCleared(
            partitions=tuple(
                self._change_partition(
                    PartitionChangeRecord(
                        partition_id=index,
                        topic_id=topic.topic_id,
                        eligible_leader_replicas=[],
                        last_known_elr=[],
                    )
                )
                for topic in topics
                for index, state in enumerate(topic.partitions)
                if state.isr and (state.eligible_leader_replicas or state.last_known_leaders)
            )
        )

    def _set_config(self, record: ConfigRecord) -> Change:
        resource = ConfigResource(record.resource_type, record.resource_name)
        if record.value is not None:
            self.configs.setdefault(resource, {})[record.name] = record.value
        else:
            settings = self.configs.get(resource, {})
            settings.pop(record.name, None)
            if not settings:
                self.configs.pop(resource, None)
        return ConfigChanged(
            resource_type=record.resource_type,
            resource_name=record.resource_name,
            name=record.name,
            value=record.value,
        )

    def _set_feature(self, record: FeatureLevelRecord) -> Change:
        if record.feature_level == 0:
            self.features.pop(record.name, None)
        else:
            self.features[record.name] = record.feature_level
        return FeatureLevelChanged(name=record.name, level=record.feature_level)

    def _reserve_producer_ids(self, record: ProducerIdsRecord) -> Change:
        assert record.next_producer_id > self.next_producer_id, "producer ids are given once"
        self.next_producer_id = record.next_producer_id
        return ProducerIdsReserved(
            broker_id=record.broker_id, next_producer_id=record.next_producer_id
        )

    def _pass(self, _: NoOpRecord) -> None:
        return None


_APPLIERS: dict[type, Callable[[ClusterImage, Any], Change | None]] = {
    RegisterBrokerRecord: ClusterImage._register_broker,
    UnregisterBrokerRecord: ClusterImage._unregister_broker,
    BrokerRegistrationChangeRecord: ClusterImage._change_broker,
    TopicRecord: ClusterImage._create_topic,
    RemoveTopicRecord: ClusterImage._remove_topic,
    PartitionRecord: ClusterImage._create_partition,
    PartitionChangeRecord: ClusterImage._change_partition,
    ConfigRecord: ClusterImage._set_config,
    FeatureLevelRecord: ClusterImage._set_feature,
    ProducerIdsRecord: ClusterImage._reserve_producer_ids,
    NoOpRecord: ClusterImage._pass,
    ClearElrRecord: ClusterImage._clear_eligible_leaders,
}


def partition_changed(topic: TopicState, index: int) -> PartitionChanged:
    """A partition as it is now, for whoever must follow it and has not seen its history."""
    return _described(PartitionChanged, topic, index)


P = TypeVar("P", PartitionCreated, PartitionChanged)


def _described(kind: type[P], topic: TopicState, index: int) -> P:
    state = topic.partitions[index]
    return kind(
        topic=topic.name,
        topic_id=topic.topic_id,
        index=index,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        replicas=state.replicas,
        isr=state.isr,
        eligible_leader_replicas=state.eligible_leader_replicas,
        leader_is_recovering=state.leader_is_recovering,
    )
