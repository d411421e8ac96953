"""The partitions and offsets that the cluster has now, for the driver."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet

from tidelog.client.admin.descriptions import MetadataDescription, describe_metadata
from tidelog.client.shells.blocking_clients import Admin, Consumer, RequestFailed
from tidelog.client.shells.topic_descriptions import describe_by_any_broker
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.spark.source.errors import ClusterFailed, OptionError
from tidelog.spark.source.offsets import Positions
from tidelog.spark.source.options import Assign, SourceOptions, Subscribe
from tidelog.spark.source.slices import partition_names

API_TIMEOUT_S = 60.0


class ClusterView:
    """Retries until a timeout, then ClusterFailed; keeps its connections for the next call."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._admin = Admin(options.client.of_admin())
        settings = {"isolation.level": "read_committed", **options.client.given}
        self._consumer = Consumer({**settings, "allow.auto.create.topics": False})

    def close(self) -> None:
        self._admin.close()
        self._consumer.close()

    def partitions_after(self, known: AbstractSet[TopicPartition]) -> frozenset[TopicPartition]:
        """The partitions that exist now. A broker with old metadata may not know all that are
        `known`: it is asked again, some times, before they count as gone."""
        found = self.partitions(may_be_gone=True)
        for _ in range(self._options.offset_retries - 1):
            if known <= found:
                break
            time.sleep(self._options.offset_retry_interval_ms / 1_000)
            found = self.partitions(may_be_gone=True)
        return found

    def partitions(self, *, may_be_gone: bool = False) -> frozenset[TopicPartition]:
        """The partitions that the options select. A missing one is an error, or gone."""
        subscription = self._options.subscription
        if isinstance(subscription, Subscribe):
            found, missing = self._partitions_of(subscription.topics)
            if missing and not may_be_gone:
                raise OptionError(f"subscribe: there is no topic {', '.join(sorted(missing))}")
            return found
        if isinstance(subscription, Assign):
            found, _ = self._partitions_of({each.topic for each in subscription.partitions})
            if not subscription.partitions <= found and not may_be_gone:
                odd = partition_names(subscription.partitions - found)
                raise OptionError(f"assign: there is no partition {odd}")
            return found & subscription.partitions
        everything = self._picture(None)
        names = [
            name
            for name, topic in everything.topics.items()
            if not topic.is_internal and re.search(subscription.pattern, name)
        ]
        return _partitions(everything, names)

    def earliest(self, partitions: Iterable[TopicPartition]) -> Positions:
        return self._call(lambda: self._consumer.beginning_offsets(list(partitions)))

    def latest(
        self, partitions: Iterable[TopicPartition], *, known: Mapping[TopicPartition, int]
    ) -> Positions:
        """High watermarks, or last stable offsets when only what is committed is read.

        A new leader may know less than the old one had answered, for a moment: what is behind
        `known` is asked again, some times.
        """
        partitions = list(partitions)
        found = self._latest(partitions)
        for _ in range(self._options.offset_retries - 1):
            if all(found[each] >= known.get(each, 0) for each in partitions):
                break
            time.sleep(self._options.offset_retry_interval_ms / 1_000)
            found = self._latest(partitions)
        return found

    def at_times(
        self, timestamps_ms: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | None]:
        """The first offset at or after each time; None: all records are older."""
        try:
            found = self._consumer.offsets_for_times(dict(timestamps_ms))
        except RequestFailed as failed:
            raise self._failed(failed) from None
        return {each: None if at is None else at.offset for each, at in found.items()}

    def _latest(self, partitions: list[TopicPartition]) -> Positions:
        return self._call(lambda: self._consumer.end_offsets(partitions))

    def _call(self, ask: Callable[[], Positions]) -> Positions:
        try:
            return ask()
        except RequestFailed as failed:
            raise self._failed(failed) from None

    def _partitions_of(self, names: Iterable[str]) -> tuple[frozenset[TopicPartition], set[str]]:
        """The partitions of these topics, and the topics that do not exist."""
        names = sorted(names)
        seen = self._picture(names)
        missing = {name for name in names if not _exists(seen, name)}
        for name in missing:
            topic = seen.topics.get(name)
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic.error
            if error != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise ClusterFailed(f"the topic {name} cannot be read: {error.name}")
        return _partitions(seen, [name for name in names if name not in missing]), missing

    def _picture(self, names: list[str] | None) -> MetadataDescription:
        try:
            if names is None:
                return self._admin.ask(describe_metadata(), timeout_s=API_TIMEOUT_S)
            return describe_by_any_broker(self._admin, names, timeout_s=API_TIMEOUT_S)
        except RequestFailed as failed:
            raise self._failed(failed) from None

    def _failed(self, failed: RequestFailed) -> ClusterFailed:
        servers = self._options.client.given["bootstrap.servers"]
        return ClusterFailed(
            f"the cluster at {servers} cannot be asked for its topics and offsets: {failed}"
        )


def _exists(seen: MetadataDescription, name: str) -> bool:
    topic = seen.topics.get(name)
    return topic is not None and topic.error == ErrorCode.NONE


def _partitions(seen: MetadataDescription, names: Iterable[str]) -> frozenset[TopicPartition]:
    return frozenset(
        TopicPartition(name, index) for name in names for index in seen.topics[name].partitions
    )
