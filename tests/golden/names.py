"""Answers with their accidents taken out: ids, clocks, addresses and wording become placeholders.

One `Names` lives as long as one case, so that the second topic id of a case is the same
placeholder in every run and for every broker.
"""

from __future__ import annotations

import re
from typing import Any

from tests.golden.batches import describe
from tests.golden.broker import DAY_MS, Broker

ZERO_ID = bytes(16)
TIME_FIELDS = {
    "base_timestamp_ms",
    "current_txn_start_timestamp",
    "last_timestamp",
    "log_append_time_ms",
    "max_timestamp_ms",
    "timestamp",
    "timestamp_ms",
    "transaction_start_time_ms",
}
TEXT_FIELDS = {"batch_index_error_message", "documentation", "error_message"}
EPOCH_FIELDS = {"broker_epoch", "replica_epoch"}
"""Offsets of the metadata log, or epochs of its quorum: chance, unless none is told."""
ORDERED_FIELDS = {"synonyms"}
ADDRESS_SETTINGS = {"advertised.listeners", "controller.quorum.bootstrap.servers", "listeners"}
PATH_SETTINGS = {"log.dir", "log.dirs", "metadata.log.dir"}
MEMBER_ID = re.compile(r".*-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MEMBER_FIELDS = {"member_id", "leader"}
PRODUCER_ID_FIELDS = {"producer_id", "v3_and_below_producer_id"}
SORT_FIELDS = (
    "api_key",
    "group_id",
    "member_id",
    "transactional_id",
    "name",
    "topic",
    "topic_name",
    "topic_id",
    "resource_name",
    "broker_id",
    "node_id",
    "replica_id",
    "feature",
    "index",
    "partition_index",
    "partition",
    "partition_id",
    "producer_id",
)


class Names:
    """The placeholders of one case."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._clock_ms = broker.clock_ms()
        self._topic_ids: dict[bytes, str] = {ZERO_ID: "<topic-id:none>"}
        self._producer_ids: dict[int, str] = {}
        self._sessions: dict[int, str] = {}
        self._members: dict[str, str] = {}
        self._bytes: dict[bytes, str] = {}

    def learn_bytes(self, data: bytes, label: str) -> None:
        """Wherever a field holds exactly these bytes, the label says what they are."""
        self._bytes[data] = f"<{label}>"

    def learn_topic_id(self, topic_id: bytes, name: str) -> None:
        """From now on this id has this topic's placeholder; a recreated topic gets another."""
        if topic_id in self._topic_ids:
            return
        label = f"<topic-id:{name}>"
        again = sum(
            known.split("#")[0].rstrip(">") == label.rstrip(">")
            for known in self._topic_ids.values()
        )
        self._topic_ids[topic_id] = f"<topic-id:{name}#{again + 1}>" if again else label

    def learn_producer_id(self, producer_id: int) -> None:
        if producer_id >= 0:
            self._producer_ids.setdefault(producer_id, f"<pid:{len(self._producer_ids) + 1}>")

    def learn_random_member(self, member_id: str) -> None:
        """An id that is all chance, as members of KIP-848 groups have."""
        self._members.setdefault(member_id, f"<member:{len(self._members) + 1}>")

    def learn_member(self, member_id: str) -> None:
        """An id ends in 36 characters of chance; what stands before is part of the answer."""
        if MEMBER_ID.fullmatch(member_id):
            number = len(self._members) + 1
            self._members.setdefault(member_id, f"<member:{number}:{member_id[:-36]}>")

    def learn(self, plain: Any) -> None:
        """Take in the topic ids that stand next to their names, and the ids of members."""
        if isinstance(plain, dict):
            if isinstance(plain.get("member_id"), str):
                self.learn_member(plain["member_id"])
            name, topic_id = plain.get("name") or plain.get("topic"), plain.get("topic_id")
            if isinstance(name, str) and isinstance(topic_id, bytes):
                self.learn_topic_id(topic_id, name)
            for value in plain.values():
                self.learn(value)
        elif isinstance(plain, list):
            for value in plain:
                self.learn(value)

    def normal(self, plain: Any, *, in_order: bool = False) -> Any:
        """The same data without accidents; lists of named things by name, unless order matters."""
        if isinstance(plain, dict):
            fields = {name: self._field(name, plain[name], in_order) for name in plain}
            if fields.get("name") in ADDRESS_SETTINGS | PATH_SETTINGS and "value" in fields:
                fields["value"] = f"<{fields['name']}>" if fields["value"] else fields["value"]
            return fields
        if isinstance(plain, list):
            items = [self.normal(item, in_order=in_order) for item in plain]
            return items if in_order else sorted(items, key=_sort_key)
        if isinstance(plain, bytes):
            return self._bytes.get(plain) or _readable(plain)
        return plain

    def _field(self, name: str, value: Any, in_order: bool) -> Any:
        if name in ("topic_id", "topic_ids"):
            return self._topic_id(value)
        if name in TEXT_FIELDS:
            return value if value is None else "<text>"
        if name == "records":
            batches = describe(value) if isinstance(value, bytes) else value
            return self.normal(batches, in_order=True)
        if name in TIME_FIELDS and abs(value - self._clock_ms) < 2 * DAY_MS:
            return "<clock>"
        if name == "session_id" and value > 0:
            return self._sessions.setdefault(value, f"<session:{len(self._sessions) + 1}>")
        if name in MEMBER_FIELDS:
            return self._members.get(value, value)
        if name == "client_host":
            return "<client-host>"
        if name in PRODUCER_ID_FIELDS:
            return self._producer_ids.get(value, value)
        if name == "producer_id_filters":
            return [self._producer_ids.get(each, each) for each in value]
        if name == "cluster_id" and value is not None:
            return "<cluster-id>"
        if name == "host" and value == self._broker.host:
            return "<host>"
        if name == "port" and value in self._broker.port_names:
            return self._broker.port_names[value]
        if name in EPOCH_FIELDS and value > 0:
            return "<epoch>"
        if name == "finalized_features_epoch" and value >= 0:
            return "<metadata-offset>"
        return self.normal(value, in_order=in_order or name in ORDERED_FIELDS)

    def _topic_id(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._topic_id(item) for item in value]
        return self._topic_ids.get(value, "<topic-id:unknown>")


def quorum_without_accidents(plain: dict[str, Any]) -> dict[str, Any]:
    """DescribeQuorum without what no two runs share: who leads, how far, since when, and where."""
    topics = []
    for topic in plain["topics"]:
        partitions = []
        for partition in topic["partitions"]:
            shown = dict(partition)
            for field in ("leader_id", "leader_epoch", "high_watermark"):
                shown[field] = _known(partition[field])
            for field in ("current_voters", "observers"):
                shown[field] = [_replica_without_accidents(r) for r in partition[field]]
            partitions.append(shown)
        topics.append({**topic, "partitions": partitions})
    return {**plain, "topics": topics}


def _replica_without_accidents(replica: dict[str, Any]) -> dict[str, Any]:
    shown = {name: _known(value) for name, value in replica.items() if name != "replica_id"}
    if "replica_directory_id" in replica:
        has_one = replica["replica_directory_id"] != ZERO_ID
        shown["replica_directory_id"] = "<directory-id>" if has_one else "<directory-id:none>"
    return {"replica_id": replica["replica_id"], **shown}


def _known(value: Any) -> Any:
    """Unknown numbers stay as they are. Nobody leads, or somebody: the number is chance."""
    return "<known>" if isinstance(value, int) and value > 0 else value


def _sort_key(item: Any) -> tuple[str, ...]:
    """Lists of scalars and of batches keep their order: an equal key does that."""
    if not isinstance(item, dict):
        return ()
    return tuple(_sortable(item[name]) for name in SORT_FIELDS if name in item)


def _sortable(value: Any) -> str:
    return f"{value:012d}" if isinstance(value, int) and value >= 0 else str(value)


def _readable(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"<hex:{data.hex()}>"
