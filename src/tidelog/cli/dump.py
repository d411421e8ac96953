"""`tidelog dump`: the facts of worlds/runtime/dump.py as indented lines or as JSON lines."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime

from tidelog.worlds.runtime.dump import Fact, NothingToDump, dump

NOT_FOUND = 2
BAD_DATA = 1

_BAD_KINDS = ("no batch", "no records", "unreadable")


def print_dump(path: str, *, with_records: bool, as_json: bool) -> int:
    """Exit code 0, 1 if anything on the disk is damaged, 2 if there is nothing to show."""
    code = 0
    try:
        for fact in dump(path, with_records=with_records):
            if fact["kind"] in _BAD_KINDS or fact.get("crc_is_valid") is False:
                code = BAD_DATA
            print(json.dumps(fact) if as_json else as_text(fact))
        sys.stdout.flush()
    except NothingToDump as error:
        print(f"tidelog dump: {error}", file=sys.stderr)
        return NOT_FOUND
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def as_text(fact: Fact) -> str:
    """One fact in one or more lines."""
    return _FORMS[str(fact["kind"])](fact)


def _name(fact: Fact) -> str:
    return os.path.basename(str(fact["path"]))


def _log_directory(fact: Fact) -> str:
    stop = "stopped cleanly" if fact["stopped_cleanly"] else "not stopped cleanly, or running"
    return f"log directory {fact['path']}: partitions {fact['partitions']}, {stop}"


def _mapping(fact: Fact) -> str:
    entries = fact["entries"]
    assert isinstance(entries, dict)
    lines = [f"\n    {key}: {value}" for key, value in entries.items()]
    return f"  {_name(fact)}" + ("".join(lines) or "\n    (empty)")


def _partition(fact: Fact) -> str:
    return f"partition {fact['name']}: topic id {fact['topic_id'] or 'unknown'}"


def _leader_epochs(fact: Fact) -> str:
    return _list(fact, lambda one: f"leader epoch {one['leader_epoch']} from {one['start_offset']}")


def _producers(fact: Fact) -> str:
    return _list(fact, _producer)


def _producer(one: Fact) -> str:
    text = f"producer {one['producer_id']} epoch {one['producer_epoch']}"
    if one["end_offset"] is None:
        text += ": no batch remembered"
    else:
        text += f": next sequence {one['next_sequence']}"
        text += f", latest batch [{one['base_offset']}, {one['end_offset']})"
    if one["transaction_first_offset"] is not None:
        text += f", transaction open since {one['transaction_first_offset']}"
    return f"{text}, {_time(one['timestamp_ms'])}"


def _offset_index(fact: Fact) -> str:
    return _list(fact, lambda one: f"offset {one['offset']} at {one['position']}")


def _time_index(fact: Fact) -> str:
    return _list(fact, lambda one: f"{_time(one['timestamp_ms'])} at offset {one['offset']}")


def _aborted(fact: Fact) -> str:
    return _list(
        fact,
        lambda one: (
            f"producer {one['producer_id']} [{one['first_offset']}, {one['end_offset']}), "
            f"stable up to {one['last_stable_offset']}"
        ),
    )


def _list(fact: Fact, line: Callable[[Fact], str]) -> str:
    entries = fact["entries"]
    assert isinstance(entries, list)
    lines = [f"\n    {line(one)}" for one in entries]
    if fact.get("cut_bytes"):
        lines.append(f"\n    and {fact['cut_bytes']} bytes of a cut entry")
    return f"  {_name(fact)}" + ("".join(lines) or "\n    (empty)")


def _segment(fact: Fact) -> str:
    return f"  {_name(fact)}: {fact['size_bytes']} bytes"


def _batch(fact: Fact) -> str:
    words = [
        f"[{fact['base_offset']}, {fact['end_offset']}) at {fact['position']}",
        f"{fact['size_bytes']} bytes",
        f"records {fact['records']}",
        f"leader epoch {fact['leader_epoch']}",
    ]
    if fact["compression"] != "none":
        words.append(str(fact["compression"]))
    if fact["producer_id"] is not None:
        words.append(
            f"producer {fact['producer_id']} epoch {fact['producer_epoch']} "
            f"sequence {fact['base_sequence']}"
        )
    words += [word for word in ("is_transactional", "is_control") if fact[word]]
    words.append(f"{fact['timestamp_type']} {_time(fact['max_timestamp_ms'])}")
    words.append("crc ok" if fact["crc_is_valid"] else f"WRONG CRC {fact['crc']}")
    return "    " + ", ".join(word.removeprefix("is_") for word in words)


def _record(fact: Fact) -> str:
    text = f"      {fact['offset']}: key {_value(fact['key'])}, value {_value(fact['value'])}"
    for special in ("control", "metadata"):
        if special in fact:
            text = f"      {fact['offset']}: {special} {fact[special]}"
    headers = fact["headers"]
    assert isinstance(headers, list)
    if headers:
        text += ", headers " + ", ".join(f"{name}={_value(value)}" for name, value in headers)
    return f"{text}, {_time(fact['timestamp_ms'])}"


def _value(value: object) -> str:
    return "null" if value is None else json.dumps(value, ensure_ascii=False)


def _no_batch(fact: Fact) -> str:
    return f"    NO BATCH at {fact['position']}: {fact['reason']} ({fact['size_bytes']} bytes left)"


def _no_records(fact: Fact) -> str:
    return f"      RECORDS NOT READABLE: {fact['reason']}"


def _unreadable(fact: Fact) -> str:
    return f"  {_name(fact)}\n    NOT READABLE: {fact['reason']}"


def _time(timestamp_ms: object) -> str:
    """A timestamp for people; nonsense values as they are."""
    if not isinstance(timestamp_ms, int):
        return "no time"
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{timestamp_ms} ms"
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + f".{timestamp_ms % 1000:03d}Z"


_FORMS: dict[str, Callable[[Fact], str]] = {
    "log directory": _log_directory,
    "properties": _mapping,
    "checkpoint": _mapping,
    "partition": _partition,
    "leader epochs": _leader_epochs,
    "producers": _producers,
    "offset index": _offset_index,
    "time index": _time_index,
    "aborted transactions": _aborted,
    "segment": _segment,
    "batch": _batch,
    "record": _record,
    "no batch": _no_batch,
    "no records": _no_records,
    "unreadable": _unreadable,
}
