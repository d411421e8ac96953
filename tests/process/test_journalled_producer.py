"""A producer with a journal: the journal tells of every record what the topic holds."""

from __future__ import annotations

import hashlib
import json
import threading
from pathlib import Path
from typing import Any

from tests.process.fixtures import NewTopic
from tests.process.ports import HOST, free_port
from tests.process.waiting import PATIENCE_S
from tidelog.client.shells.blocking_clients import Consumer
from tidelog.client.shells.journalled_producer import JournalledProducer
from tidelog.core.model.ids import TopicPartition


def lines_of(journal: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in journal.read_text().splitlines()]


def test_the_journal_and_the_topic_tell_the_same(
    bootstrap: str, new_topic: NewTopic, tmp_path: Path
) -> None:
    """Of two runs in one file, the second of which three threads share."""
    topic, journal = new_topic(), tmp_path / "acks.jsonl"
    settings = {"bootstrap.servers": bootstrap}
    with JournalledProducer(settings, topic=topic, journal=journal, run="first") as first:
        sent = [first.send(b"a", key=b"k"), first.send(None, key=b"k")]
        assert [each.result(PATIENCE_S).offset for each in sent] == [0, 1]

    with JournalledProducer({**settings, "acks": "1"}, topic=topic, journal=journal) as second:

        def send_some(name: int) -> None:
            for number in range(10):
                second.send(f"{name} {number}".encode())

        threads = [threading.Thread(target=send_some, args=(name,)) for name in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        second.flush(PATIENCE_S)
    second.close()

    begin, _, _, end, again, *entries, last = lines_of(journal)
    assert (begin["run"], begin["topic"], begin["acks"]) == ("first", topic, "all")
    assert (again["acks"], again["idempotence"]) == ("1", False)
    assert (end["end"]["ok"], last["end"]["ok"], second.counts.ok) == (2, 30, 30)
    assert sorted(each["number"] for each in entries) == list(range(30))
    digests = {each["offset"]: each["value_sha256"] for each in entries}
    with Consumer({**settings, "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        held: dict[int, str] = {}
        while len(held) < 32:
            for record in consumer.poll(PATIENCE_S):
                held[record.offset] = hashlib.sha256(record.value or b"").hexdigest()
    assert digests == {offset: held[offset] for offset in range(2, 32)}


def test_what_nobody_took_is_told_too(tmp_path: Path) -> None:
    journal = tmp_path / "acks.jsonl"
    settings = {"bootstrap.servers": f"{HOST}:{free_port()}", "max.block.ms": 50}
    with JournalledProducer(settings, topic="orders", journal=journal) as producer:
        producer.send(b"a")
    _, entry, end = lines_of(journal)
    assert (entry["outcome"], entry["error"]) == ("refused", "TIMED_OUT")
    assert end["end"] == {"ok": 0, "refused": 1, "unknown": 0, "errors": {"TIMED_OUT": 1}}
