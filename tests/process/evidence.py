"""Evidence from a cluster of processes: what brokers say on the wire, on disk and in their logs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from tests.process.cluster import ProcessCluster
from tests.process.proxy import Seen, is_produce
from tests.process.stage import Stage, produced, read_request
from tests.process.waiting import wait_until
from tests.process.wire import produce_fields
from tidelog.client.partition_requests import list_offsets_answer, list_offsets_request
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.exchange import decode_response
from tidelog.core.wire.messages.api_00_produce import ProduceRequest
from tidelog.core.wire.record_batch import BatchHeader, batches
from tidelog.core.wire.sentinels import DEBUGGING_REPLICA_ID

EVENT = re.compile(r"^(\S+Z) +\w+ +(\w+) ?(.*)$")
PREFERRED, UNCLEAN = 0, 1


class Event(NamedTuple):
    """One line of a broker's log."""

    at_s: float
    kind: str
    text: str


def events(cluster: ProcessCluster, node_id: int, kind: str, *words: str) -> list[Event]:
    """What a node has said of this kind, with all these words in it."""
    found = []
    for line in cluster.log_text(node_id).splitlines():
        match = EVENT.match(line)
        if match and match[2] == kind and all(word in match[3].lower().split() for word in words):
            at_s = datetime.fromisoformat(match[1]).timestamp()
            found.append(Event(at_s, match[2], match[3]))
    return found


def all_events(cluster: ProcessCluster, kind: str, *words: str) -> list[Event]:
    """The same of all nodes, in order."""
    return sorted(
        event for node_id in cluster.nodes for event in events(cluster, node_id, kind, *words)
    )


def dumped(path: Path) -> list[dict[str, Any]]:
    """What `tidelog dump` says about files of a broker, with all records."""
    command = [sys.executable, "-m", "tidelog.cli.main", "dump", "--json", "--records", str(path)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode in (0, 1), run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


def elect(cluster: ProcessCluster, topic: str, *, kind: int, partition: int = 0, by: int) -> int:
    """ElectLeaders; the error code of the partition."""
    asked = [{"topic": topic, "partitions": [partition]}]
    with cluster.wire(by) as wire:
        answer = wire.ask(
            "ElectLeaders", 2, election_type=kind, topic_partitions=asked, timeout_ms=60_000
        )
    assert answer.error_code == 0, answer.error_code
    return int(answer.replica_election_results[0].partition_result[0].error_code)


def lead_as_preferred(
    cluster: ProcessCluster, topic: str, leader: int, *, partition: int = 0, by: int
) -> None:
    """A preferred election; comes back when everybody names this leader. The former one, until it
    knows, may well write and commit one more.

    That no election is needed is told where a broker had to ask the controller twice.
    """
    answer = elect(cluster, topic, kind=PREFERRED, partition=partition, by=by)
    assert answer in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED), ErrorCode(answer)
    wait_until_named(cluster, topic, leader, partition=partition)


def wait_until_named(
    cluster: ProcessCluster, topic: str, leader: int, *, partition: int = 0
) -> None:
    """Until every broker that runs says that this one leads."""

    def is_named() -> bool:
        witnesses = [each for each in cluster.broker_ids if cluster.is_running(each)]
        answer = [cluster.partition_view(topic, partition, via=each) for each in witnesses]
        return all(each is not None and each.leader == leader for each in answer)

    wait_until(is_named, f"{topic}-{partition} to be led by {leader}")


def end_offset(stage: Stage, topic: str, *, of: int, partition: int = 0) -> int:
    """Where the log of this very broker ends."""
    request = list_offsets_request(topic, partition, replica_id=DEBUGGING_REPLICA_ID)
    with stage.cluster.wire(of) as wire:
        return list_offsets_answer(wire.request(request, 7)).offset


def produce_by_hand(
    cluster: ProcessCluster, topic: str, batch: bytes, *, to: int, partition: int = 0
) -> tuple[Any, list[Any]]:
    """The answer of one broker for the partition, and the endpoints that it names."""
    fields = produce_fields(topic, batch, partition=partition, acks=-1)
    with cluster.wire(to) as wire:
        answer = wire.ask("Produce", 12, **fields)
    return answer.responses[0].partition_responses[0], list(answer.node_endpoints)


def sent_headers(stage: Stage, broker_id: int, value: str) -> list[BatchHeader]:
    """The batch headers with which a broker was sent this value, one for each time."""
    return [
        header
        for seen in stage.proxies[broker_id].produce_requests()
        if value in produced(seen)[1]
        for header in _batch_headers(seen)
    ]


def produce_errors(
    stage: Stage, broker_id: int, value: str, *, partition: int | None = None
) -> list[int]:
    """With which error codes a broker answered whoever sent this value, to one partition or any."""
    found = []
    for asked, frame in list(stage.proxies[broker_id].answers):
        if not is_produce(asked):
            continue
        to_partition, values = produced(asked)
        if value in values and partition in (None, to_partition):
            answer = read_answer(asked, frame)
            found.append(int(answer.responses[0].partition_responses[0].error_code))
    return found


def read_answer(asked: Seen, frame: bytes) -> Any:
    return decode_response(frame, asked.api_key, asked.version)[1]


def _batch_headers(seen: Seen) -> Iterator[BatchHeader]:
    request = read_request(seen, ProduceRequest)
    for topic in request.topic_data:
        for data in topic.partition_data:
            for _, header in batches(memoryview(data.records or b"")):
                yield header
