"""Runs clients against a broker and says how long it took and what it cost both sides."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.brokers import Broker
from bench.process_stat import cpu_s, machine_cpu_s

ROOT = Path(__file__).parents[1]
CLIENT_TIMEOUT_S = 180.0


class ClientEnded(Exception):
    """A client process ended early; the message has what it said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one run of some clients came to."""

    elapsed_s: float
    count: int
    broker_cpu_s: float
    client_cpu_s: float
    other_cpu_s: float
    """What other programs took away meanwhile."""
    details: list[dict[str, Any]]

    @property
    def per_s(self) -> float:
        return self.count / self.elapsed_s

    @property
    def broker_cores(self) -> float:
        return self.broker_cpu_s / self.elapsed_s

    @property
    def client_cores(self) -> float:
        return self.client_cpu_s / self.elapsed_s

    @property
    def other_cores(self) -> float:
        return self.other_cpu_s / self.elapsed_s

    @property
    def broker_us_each(self) -> float:
        return self.broker_cpu_s / self.count * 1e6


def run_clients(broker: Broker, kind: str, *parameters: dict[str, Any]) -> Outcome:
    """One process for each set of parameters; they begin together when all are ready."""
    with _started(broker, kind, parameters) as clients:
        for client in clients:
            if _line(client).strip() != "ready":
                raise ClientEnded(_complaint(client))
        before_s, machine_before_s = _brokers_cpu_s(broker), machine_cpu_s()
        for client in clients:
            assert client.stdin is not None
            client.stdin.write("go\n")
            client.stdin.flush()
        results = [_result(client) for client in clients]
        used_s = _brokers_cpu_s(broker) - before_s
        machine_s = machine_cpu_s() - machine_before_s
    clients_s = sum(result["cpu_s"] for result in results)
    started_s = min(result["started_s"] for result in results)
    return Outcome(
        elapsed_s=max(result["ended_s"] for result in results) - started_s,
        count=sum(result["count"] for result in results),
        broker_cpu_s=used_s,
        client_cpu_s=clients_s,
        other_cpu_s=max(0.0, machine_s - used_s - clients_s),
        details=results,
    )


def _brokers_cpu_s(broker: Broker) -> float:
    return sum(map(cpu_s, broker.pids))


@contextmanager
def _started(
    broker: Broker, kind: str, parameters: tuple[dict[str, Any], ...]
) -> Iterator[list[subprocess.Popen[str]]]:
    clients: list[subprocess.Popen[str]] = []
    try:
        for one in parameters:
            text = json.dumps({"address": broker.address, **one})
            clients.append(
                subprocess.Popen(
                    [sys.executable, "-m", "bench.clients", kind, text],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    cwd=ROOT,
                )
            )
        yield clients
    finally:
        for client in clients:
            client.kill()
            client.communicate()


def _result(client: subprocess.Popen[str]) -> dict[str, Any]:
    text = _line(client)
    if not text:
        raise ClientEnded(_complaint(client))
    result: dict[str, Any] = json.loads(text)
    return result


def _line(client: subprocess.Popen[str]) -> str:
    assert client.stdout is not None
    return client.stdout.readline()


def _complaint(client: subprocess.Popen[str]) -> str:
    _, errors = client.communicate(timeout=CLIENT_TIMEOUT_S)
    return errors.strip() or f"a client ended with {client.returncode}"
