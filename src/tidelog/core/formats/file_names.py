"""The names of the files in a log directory: Kafka's, to the letter."""

from __future__ import annotations

from tidelog.core.model.ids import TopicPartition

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
ABORTED_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"

DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"
TEMPORARY = ".tmp"
LEFTOVERS = (DELETED, CLEANED, SWAP, TEMPORARY)
"""Files in a partition's directory that only an interrupted operation leaves behind."""

LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
QUORUM_STATE = "quorum-state"

META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEANED_OFFSETS = "cleaner-offset-checkpoint"

DELETED_DIRECTORY = "-delete"
_NAME_CHARACTERS_MAX = 255
_OFFSET_DIGITS = 20


def offset_file(directory: str, offset: int, suffix: str) -> str:
    """The path of a file that is named after an offset."""
    return f"{directory}/{offset:0{_OFFSET_DIGITS}d}{suffix}"


def offset_of(name: str, suffix: str) -> int | None:
    """The offset that a file is named after; None if the name is of another kind."""
    digits = name.removesuffix(suffix)
    if digits == name or len(digits) != _OFFSET_DIGITS or not digits.isdecimal():
        return None
    return int(digits)


def topic_partition_of(directory_name: str) -> TopicPartition | None:
    """The partition that a directory is named after; None for other directories."""
    topic, dash, index = directory_name.rpartition("-")
    if not dash or not topic or not index.isdecimal() or not index.isascii():
        return None
    return TopicPartition(topic, int(index))


def deleted_directory_name(topic_partition: TopicPartition, unique: str) -> str:
    """What a partition's directory is called between its deletion and its removal."""
    suffix = f"-{topic_partition.index}.{unique}{DELETED_DIRECTORY}"
    return topic_partition.topic[: _NAME_CHARACTERS_MAX - len(suffix)] + suffix


def parent(path: str) -> str:
    """The directory that holds this one; the root holds itself."""
    head, _, _ = path.rstrip("/").rpartition("/")
    return head or ("/" if path.startswith("/") else "")
