"""A range reader without a cluster: it does not wait for ever, and says whom it waited for."""

from __future__ import annotations

import socket

import pytest

from tests.process.ports import HOST, free_port
from tidelog.client.ranges.errors import RangeStalled
from tidelog.client.settings import ConfigError
from tidelog.client.shells.range_reader import RangeClient
from tidelog.core.model.ids import TopicPartition

P0 = TopicPartition("orders", 0)


def test_a_cluster_that_nobody_runs_is_named() -> None:
    address = f"{HOST}:{free_port()}"
    client = RangeClient({"bootstrap.servers": address}, stalled_s=0.2)
    with client, pytest.raises(RangeStalled) as stalled:
        next(client.read(P0, start_offset=0, end_offset=1))
    assert f"{address} (refused)" in str(stalled.value)
    assert "orders-0 at offset 0: nothing new for 0.2 s" in str(stalled.value)


def test_a_cluster_that_says_nothing_is_named() -> None:
    with socket.create_server((HOST, 0)) as listening:
        address = f"{HOST}:{listening.getsockname()[1]}"
        client = RangeClient({"bootstrap.servers": address}, stalled_s=0.2)
        with client, pytest.raises(RangeStalled, match="no broker answers") as stalled:
            next(client.read(P0, start_offset=0, end_offset=1))
    assert address in str(stalled.value)


def test_an_empty_range_needs_nobody() -> None:
    with RangeClient({"bootstrap.servers": f"{HOST}:{free_port()}"}) as client:
        assert list(client.read(P0, start_offset=7, end_offset=7)) == []


def test_a_setting_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"group\.id is not a setting"):
        RangeClient({"bootstrap.servers": "localhost:1", "group.id": "mine"})
