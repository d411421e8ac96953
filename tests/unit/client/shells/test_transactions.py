"""Transactions of a cluster: put together from all brokers, and never from some of them."""

from __future__ import annotations

from typing import cast

import pytest

from tests.unit.client.shells.transaction_cluster import P0, P1, TransactionCluster
from tidelog.client.admin.transactions import OpenTransaction, TransactionListing
from tidelog.client.shells import transactions as shell
from tidelog.client.shells.blocking_clients import Admin, RequestFailed
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages.api_61_describe_producers import DescribeProducersRequest
from tidelog.core.wire.messages.api_66_list_transactions import ListTransactionsRequest

TIMEOUT_S = 1.0
NOW_MS = 1_000_000
BY_LEADER = {1: [P0], 2: [P1]}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> TransactionCluster:
    monkeypatch.setattr(shell, "wall_clock_ms", lambda: NOW_MS)
    return TransactionCluster()


def listed(cluster: TransactionCluster, **filters: str) -> shell.ListedTransactions:
    pattern = filters.get("id_pattern")
    admin = cast(Admin, cluster)
    return shell.list_all_transactions(admin, id_pattern=pattern, timeout_s=TIMEOUT_S)


def found(
    cluster: TransactionCluster, partitions: dict[int, list[TopicPartition]] | None = None
) -> shell.HangingTransactions:
    return shell.find_hanging(
        cast(Admin, cluster),
        partitions or BY_LEADER,
        transaction_timeout_ms=100,
        timeout_s=TIMEOUT_S,
    )


def test_a_list_names_the_coordinator_of_each_and_who_was_silent(
    cluster: TransactionCluster,
) -> None:
    cluster.begin("b", 8, coordinator=1)
    cluster.begin("a", 7, coordinator=2)
    assert listed(cluster).transactions == {
        "a": (TransactionListing("a", 7, "Ongoing"), 2),
        "b": (TransactionListing("b", 8, "Ongoing"), 1),
    }
    cluster.silent = {2}
    holed = listed(cluster)
    assert (list(holed.transactions), holed.silent) == (["b"], {2: "silent"})


def test_states_that_brokers_do_not_know_are_named_once(cluster: TransactionCluster) -> None:
    cluster.unknown_states = ["Sleepy"]
    assert listed(cluster).unknown_states == ("Sleepy",)


def test_a_refused_list_is_none(cluster: TransactionCluster) -> None:
    cluster.list_error = ErrorCode.INVALID_REGULAR_EXPRESSION
    with pytest.raises(RequestFailed, match=r"INVALID_REGULAR_EXPRESSION: 'a\(b'"):
        listed(cluster, id_pattern="a(b")
    cluster.list_error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    with pytest.raises(RequestFailed, match="CLUSTER_AUTHORIZATION_FAILED: broker 1 lists none"):
        listed(cluster)


def test_each_is_described_by_its_coordinator(cluster: TransactionCluster) -> None:
    cluster.begin("a", 7, P1, coordinator=2)
    admin = cast(Admin, cluster)
    described = shell.describe_transactions(admin, ["a", "x", "a"], timeout_s=TIMEOUT_S)

    assert list(described) == ["a", "x"]
    assert described["a"].coordinator == 2
    assert described["a"].description.partitions == (P1,)
    assert described["x"].description.error == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert shell.describe_transactions(admin, [], timeout_s=TIMEOUT_S) == {}
    cluster.silent = {2}
    with pytest.raises(RequestFailed, match="silent"):
        shell.describe_transactions(admin, ["a"], timeout_s=TIMEOUT_S)


def test_a_transaction_is_found_by_where_it_begins(cluster: TransactionCluster) -> None:
    cluster.write(P0, 7, start_offset=17, at_ms=1)
    admin = cast(Admin, cluster)

    opened = shell.open_transaction_at(admin, P0, 17, timeout_s=TIMEOUT_S)
    assert opened == OpenTransaction(P0, 7, 3, None, 17, 1)
    assert shell.open_transaction_at(admin, P0, 18, timeout_s=TIMEOUT_S) is None


def test_what_no_coordinator_will_end_hangs(cluster: TransactionCluster) -> None:
    cluster.begin("a", 7, P0)
    cluster.begin("b", 8, P0, coordinator=2)
    cluster.write(P0, 7, start_offset=1, at_ms=1)
    cluster.write(P1, 8, start_offset=2, at_ms=1)
    cluster.write(P1, 9, start_offset=3, at_ms=1)

    hanging = found(cluster)
    assert [(each.producer_id, each.partition) for each in hanging.transactions] == [
        (8, P1),
        (9, P1),
    ]
    assert hanging.refused == {}


def test_what_was_written_to_recently_is_left_alone(cluster: TransactionCluster) -> None:
    """Without anything old no coordinator is asked at all."""
    cluster.write(P0, 9, start_offset=3, at_ms=NOW_MS - 100)
    assert found(cluster).transactions == ()
    assert not [it for it in cluster.requests if isinstance(it, ListTransactionsRequest)]


def test_a_coordinator_that_is_silent_does_not_make_its_transactions_hang(
    cluster: TransactionCluster,
) -> None:
    cluster.begin("a", 7, P0, coordinator=2)
    cluster.write(P0, 7, start_offset=1, at_ms=1)
    cluster.silent = {2}
    with pytest.raises(RequestFailed, match="broker 2 did not list its transactions"):
        found(cluster, {1: [P0]})


def test_partitions_that_cannot_be_searched_are_named(cluster: TransactionCluster) -> None:
    cluster.silent = {2}
    assert found(cluster).refused == {P1: "silent"}


def test_many_partitions_are_asked_about_in_several_questions(cluster: TransactionCluster) -> None:
    many = [TopicPartition("wide", index) for index in range(shell.PARTITIONS_MAX + 1)]
    found(cluster, {1: many})
    sizes = [
        len(it.topics[0].partition_indexes)
        for it in cluster.requests
        if isinstance(it, DescribeProducersRequest)
    ]
    assert sizes == [shell.PARTITIONS_MAX, 1]
