"""`tidelog transaction`: help that teaches, mistakes, and what is said about a cluster."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.unit.client.shells.transaction_cluster import P0, P1, TransactionCluster
from tidelog.cli.app import app
from tidelog.cli.exit_codes import VerbFailed
from tidelog.cli.transaction.find_hanging import by_broker
from tidelog.client.admin.topics import PartitionDescription, TopicDescription
from tidelog.client.shells import blocking_clients, transactions
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_66_list_transactions import ListTransactionsRequest

NOW_MS = 3_600_000
AT_ORDERS = ("--topic", "orders", "--partition", "0")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> TransactionCluster:
    """Every verb finds this cluster, whatever address it is given."""
    made = TransactionCluster()
    monkeypatch.setattr(blocking_clients, "Admin", lambda settings: made)
    monkeypatch.setattr(transactions, "wall_clock_ms", lambda: NOW_MS)
    return made


def tidelog(*arguments: str, code: int = 0) -> tuple[str, str]:
    """What it says, and what it complains of."""
    ended = CliRunner().invoke(app, ["transaction", *arguments])
    assert ended.exit_code == code, (ended.output, ended.exception)
    return ended.stdout, ended.stderr


def document(*arguments: str) -> Any:
    return json.loads(tidelog(*arguments, "--json")[0])


# Before a cluster is reached


@pytest.mark.parametrize("verb", ["list", "describe", "abort", "find-hanging"])
def test_help_teaches(verb: str) -> None:
    shown, _ = tidelog(verb, "--help")
    assert f"tidelog transaction {verb} " in shown, "an example"
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert "--json" in plain and "--bootstrap" in plain


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("find-hanging", "say where: --topic TOPIC or --broker-id ID"),
        ("find-hanging --broker-id 1 --partition 0", "--partition: say of which --topic"),
        ("find-hanging --topic t --max-transaction-timeout x", "Invalid value"),
        ("abort --partition 0 --start-offset 1", "--topic"),
        ("abort --topic t --start-offset 1", "--partition"),
        ("abort --topic t --partition 0", "say which: --start-offset, or --producer-id"),
        ("abort --topic t --partition 0 --producer-id 1 --producer-epoch 0", "say which"),
        ("abort --topic t --partition 0 --start-offset 1 --producer-id 1", "say which"),
        ("list --duration-filter soon", "Invalid value"),
        ("list --timeout soon", "--timeout: 'soon' is no duration"),
    ],
)
def test_a_mistake_is_named_and_the_code_is_2(line: str, complaint: str) -> None:
    said, complained = tidelog(*line.split(), code=2)
    assert complaint in complained and not said


# list


def test_transactions_are_listed_with_their_coordinators(cluster: TransactionCluster) -> None:
    assert tidelog("list")[0] == "no transactions\n"
    cluster.begin("mail-1", 7, coordinator=2)
    head, row = tidelog("list")[0].splitlines()

    assert head.split("  ")[0] == "transactional id"
    assert row.split() == ["mail-1", "2", "7", "Ongoing"]
    assert document("list") == {
        "transactions": [
            {"transactional_id": "mail-1", "coordinator": 2, "producer_id": 7, "state": "Ongoing"}
        ]
    }


def test_filters_are_sent(cluster: TransactionCluster) -> None:
    filters = ("--state", "Ongoing,Empty", "--duration-filter", "5", "--producer-id", "7")
    tidelog("list", *filters, "--transactional-id-pattern", "mail.*")
    tidelog("list", "--duration-filter", "-1")
    sent = [each for each in cluster.requests if isinstance(each, ListTransactionsRequest)]
    assert sent[0] == ListTransactionsRequest(
        state_filters=["Ongoing", "Empty"],
        producer_id_filters=[7],
        duration_filter=5,
        transactional_id_pattern="mail.*",
    )
    assert sent[-1] == ListTransactionsRequest()


def test_a_list_that_has_holes_says_so(cluster: TransactionCluster) -> None:
    cluster.begin("mail-1", 7)
    cluster.silent = {2}
    said, complained = tidelog("list", code=1)
    assert "mail-1" in said
    silent = "tidelog transaction list: broker 2 did not list its transactions: silent\n"
    assert complained == silent


def test_a_state_that_does_not_exist_is_refused(cluster: TransactionCluster) -> None:
    cluster.unknown_states = ["Sleepy"]
    _, complained = tidelog("list", "--state", "Sleepy", code=1)
    assert complained == "tidelog transaction list: no transaction has the state Sleepy\n"


# describe


def test_a_transaction_is_described(cluster: TransactionCluster) -> None:
    assert tidelog("describe")[0] == "no transactions\n"
    cluster.begin("mail-1", 7, P1, P0, coordinator=2)
    _, row = tidelog("describe", "--transactional-id", "mail-1")[0].splitlines()

    expected = ["mail-1", "2", "7", "3", "Ongoing", "60000", "1000", "3599000", "orders-0,orders-1"]
    assert row.split() == expected
    [found] = document("describe")["transactions"]
    assert (found["running_ms"], found["partitions"]) == (3_599_000, ["orders-0", "orders-1"])


def test_an_id_that_does_not_exist_is_named(cluster: TransactionCluster) -> None:
    cluster.begin("mail-1", 7)
    cluster.states["mail-1"].transaction_start_time_ms = -1
    ids = ("--transactional-id", "mail-1", "--transactional-id", "x")
    said, complained = tidelog("describe", *ids, code=1)

    assert said.splitlines()[1].split()[5:] == ["60000", "-", "-", "-"]
    assert complained == (
        "tidelog transaction describe: "
        "TRANSACTIONAL_ID_NOT_FOUND: transactional id x does not exist\n"
    )


# find-hanging


def test_hanging_transactions_are_found(cluster: TransactionCluster) -> None:
    assert tidelog("find-hanging", "--topic", "orders")[0] == "no hanging transactions\n"
    cluster.begin("mail-1", 7, P0)
    cluster.write(P0, 7, start_offset=1, at_ms=1)
    cluster.write(P1, 9, start_offset=17, at_ms=NOW_MS - 16 * 60_000)
    cluster.write(P1, 10, start_offset=18, at_ms=NOW_MS - 14 * 60_000)

    _, row = tidelog("find-hanging", "--topic", "orders")[0].splitlines()
    assert row.split() == ["orders", "1", "9", "3", "-", "17", "2640000", "16"]
    at_all = ("find-hanging", "--broker-id", "1", "--max-transaction-timeout", "0")
    found = document(*at_all)["transactions"]
    assert [each["producer_id"] for each in found] == [9, 10]
    assert document("find-hanging", *AT_ORDERS)["transactions"] == []


def test_a_partition_that_could_not_be_searched_is_named(cluster: TransactionCluster) -> None:
    cluster.silent = {2}
    said, complained = tidelog("find-hanging", "--topic", "orders", code=1)
    assert said == "no hanging transactions\n"
    name = "tidelog transaction find-hanging"
    assert complained == f"{name}: orders-1 was not searched: silent\n"


def test_whom_a_partition_is_searched_at() -> None:
    partitions = {
        index: PartitionDescription(index, leader, 0, (1, 2), (1, 2), (), ErrorCode.NONE)
        for index, leader in ((0, 2), (1, None))
    }
    topic = TopicDescription(ErrorCode.NONE, "orders", bytes(16), partitions)

    assert by_broker([topic], index=0, broker_id=None) == {2: [P0]}
    assert by_broker([topic], index=None, broker_id=1) == {1: [P0, P1]}
    assert by_broker([topic], index=None, broker_id=3) == {}
    with pytest.raises(VerbFailed, match="orders-1 has no leader; name a --broker-id"):
        by_broker([topic], index=None, broker_id=None)
    with pytest.raises(VerbFailed, match="broker 3 has no replica of orders-0"):
        by_broker([topic], index=0, broker_id=3)
    with pytest.raises(VerbFailed, match="orders has partitions 0 to 1, not 2"):
        by_broker([topic], index=2, broker_id=1)


# abort


def test_a_transaction_is_aborted_by_where_it_begins(cluster: TransactionCluster) -> None:
    cluster.write(P0, 9, start_offset=17, at_ms=1)
    said, _ = tidelog("abort", *AT_ORDERS, "--start-offset", "17")

    assert said == "aborted the transaction of producer 9 in orders-0\n"
    [marker] = cluster.markers
    assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (9, 3, 0)
    assert not marker.transaction_result
    _, complained = tidelog("abort", *AT_ORDERS, "--start-offset", "18", code=1)
    name = "tidelog transaction abort"
    assert complained == f"{name}: no open transaction of orders-0 begins at 18\n"


@pytest.mark.parametrize(("given", "sent", "shown"), [("5", 5, 5), ("-1", 0, None)])
def test_a_transaction_is_aborted_by_its_producer(
    cluster: TransactionCluster, given: str, sent: int, shown: int | None
) -> None:
    producer = ("--producer-id", "9", "--producer-epoch", "3", "--coordinator-epoch", given)
    assert document("abort", *AT_ORDERS, *producer) == {
        "topic": "orders",
        "partition": 0,
        "producer_id": 9,
        "producer_epoch": 3,
        "coordinator_epoch": shown,
    }
    [marker] = cluster.markers
    assert marker.coordinator_epoch == sent


def test_a_refusal_of_the_leader_is_one_line(cluster: TransactionCluster) -> None:
    cluster.write(P0, 9, start_offset=17, at_ms=1)
    cluster.marker_error = ErrorCode.TRANSACTION_COORDINATOR_FENCED
    _, complained = tidelog("abort", *AT_ORDERS, "--start-offset", "17", code=1)
    assert complained == (
        "tidelog transaction abort: "
        "TRANSACTION_COORDINATOR_FENCED: the transaction of producer 9 in orders-0\n"
    )
    absent = ("--topic", "x", "--partition", "0", "--start-offset", "1")
    assert "topic x does not exist" in tidelog("abort", *absent, code=1)[1]
