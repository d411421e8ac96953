"""Waiting that ends in time and waiting that does not: the error says what is there instead."""

from __future__ import annotations

from typing import cast

import pytest

import tidelog
from tidelog.client.admin.topics import PartitionDescription
from tidelog.cluster.cluster import Cluster
from tidelog.cluster.errors import ClusterUsageError
from tidelog.cluster.members import Members, wait_until
from tidelog.cluster.queries import Queries


class NoLeader:
    """A partition that nobody leads."""

    leader_id = None
    isr = (2, 3)
    replicas = (1, 2, 3)


class KnownQueries(Queries):
    """Nobody is asked."""

    def _find(self, topic: str, partition: int) -> PartitionDescription | None:
        return cast("PartitionDescription", NoLeader())


def test_the_front_page_shows_what_can_be_imported_from_it() -> None:
    assert {"Cluster", "ClusterError", "WaitTimeout"} <= set(dir(tidelog))
    assert tidelog.Cluster is Cluster
    assert issubclass(tidelog.WaitTimeout, tidelog.ClusterError)


def test_a_wait_that_takes_too_long_says_what_for() -> None:
    with pytest.raises(tidelog.WaitTimeout, match=r"^timed out after 0 s waiting for rain$"):
        wait_until(lambda: False, "rain", timeout_s=0)


@pytest.mark.parametrize(
    ("leader", "text"),
    [
        ("anyone", "waiting for a running leader of orders-0; now: no leader"),
        (2, "waiting for leader 2 of orders-0; now: no leader"),
    ],
)
def test_a_leader_that_does_not_come_is_named(leader: int, text: str) -> None:
    with pytest.raises(tidelog.WaitTimeout, match=text):
        KnownQueries(Members()).wait_leader("orders", 0, leader, timeout_s=0)


def test_an_isr_that_does_not_come_is_named() -> None:
    queries = KnownQueries(Members())
    with pytest.raises(tidelog.WaitTimeout, match="all replicas in the ISR of orders-0; now: 2, 3"):
        queries.wait_isr("orders", 0, None, timeout_s=0)
    queries.wait_isr("orders", 0, {2, 3}, timeout_s=0)


def test_nothing_can_be_asked_before_the_start() -> None:
    with pytest.raises(ClusterUsageError, match="has not been started"):
        Cluster().leader("orders")
