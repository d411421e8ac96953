"""The settings of the metadata quorum: the patience of its voters, and the size of its log."""

from __future__ import annotations

from tidelog.core.model.config import Setting, SettingType
from tidelog.core.model.limits import MIB

_INT, _LONG = SettingType.INT, SettingType.LONG


def _setting(type_: SettingType, name: str, default: int, about: str, at_least: int = 0) -> Setting:
    return Setting(name=name, type=type_, default=default, about=about, at_least=at_least)


QUORUM = (
    _setting(
        _INT,
        "controller.quorum.election.timeout.ms",
        1_000,
        "How long a voter waits for the outcome of an election; up to twice as long, by chance.",
    ),
    _setting(
        _INT,
        "controller.quorum.fetch.timeout.ms",
        2_000,
        "Silence of the leader after which a voter starts an election. A leader that no majority "
        "fetches from for half as long again resigns.",
    ),
    _setting(
        _INT,
        "controller.quorum.election.backoff.max.ms",
        1_000,
        "The longest a candidate that lost waits before it tries again.",
    ),
    _setting(
        _INT,
        "controller.quorum.request.timeout.ms",
        2_000,
        "How long a voter waits for the answer of another one.",
    ),
    _setting(
        _INT,
        "controller.quorum.retry.backoff.ms",
        20,
        "How long a voter waits before it tries to reach another one again.",
    ),
    _setting(
        _INT,
        "controller.quorum.fetch.max.bytes",
        1 * MIB,
        "How much metadata a node takes at once.",
        1,
    ),
    _setting(
        _INT,
        "controller.quorum.fetch.snapshot.max.bytes",
        1 * MIB,
        "How much of a snapshot a node takes at once.",
        1,
    ),
    _setting(
        _LONG,
        "metadata.log.max.record.bytes.between.snapshots",
        20 * MIB,
        "Bytes of metadata after which a snapshot is written, and the log before it deleted.",
        1,
    ),
)
