"""A cluster's status as rows and lines: what is wrong must be seen."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path

from rich.console import Console

from tidelog.cli.cluster.live_table import picture
from tidelog.cli.cluster.status import status_text
from tidelog.cli.cluster.tables import (
    LAST_STABLE_OFFSET,
    PARTITION_HEADER,
    changes,
    fault_rows,
    group_rows,
    headline,
    node_rows,
    partition_header,
    partition_rows,
    summary,
    transaction_rows,
)
from tidelog.cluster.fault_registry import ActiveFault
from tidelog.cluster.status import (
    ClusterStatus,
    GroupStatus,
    NodeStatus,
    OpenTransactionStatus,
    PartitionStatus,
    status_as_json,
)
from tidelog.core.model.ids import TopicPartition

COPY = OpenTransactionStatus(
    transactional_id="copy-1",
    coordinator=2,
    producer_id=1_000,
    state="Ongoing",
    start_ms=2_000,
    partitions=(TopicPartition("orders", 0), TopicPartition("orders", 1)),
)


def node(node_id: int, state: str = "up", **fields: object) -> NodeStatus:
    usual: dict[str, object] = {
        "roles": ("broker", "controller"),
        "rack": None,
        "address": f"127.0.0.1:{9091 + node_id}",
        "pid": None if state == "down" else 100 + node_id,
        "is_active_controller": node_id == 1,
        "log_path": f"node-{node_id}/broker.log",
    }
    return NodeStatus(id=node_id, state=state, **{**usual, **fields})  # type: ignore[arg-type]


ORDERS = PartitionStatus(
    topic="orders",
    partition=0,
    leader=1,
    leader_epoch=5,
    isr=(1, 2, 3),
    replicas=(1, 2, 3),
    high_watermark=1_000,
    log_end_offsets={1: 1_005, 2: 1_000, 3: 1_000},
)
HEALTHY = ClusterStatus(
    cluster_id="local-1",
    data="data",
    bootstrap_servers="127.0.0.1:9092",
    profile="tidelog",
    controller=1,
    quorum_epoch=3,
    nodes=(node(1), node(2), node(3)),
    partitions=(ORDERS,),
    partitions_total=1,
    faults=(),
)
KILLED = ActiveFault(id="f1", what="kill", text="killed broker 1", nodes=(1,))
AFTER_A_DEATH = replace(
    HEALTHY,
    controller=2,
    nodes=(node(1, "down", is_active_controller=False), node(2), node(3)),
    partitions=(replace(ORDERS, leader=2, leader_epoch=6, isr=(3, 2)),),
    faults=(KILLED,),
)


def test_rows_of_nodes_show_state_roles_and_what_they_lead() -> None:
    rows = node_rows(HEALTHY)
    assert rows[0] == (
        *("1", "up", "broker,controller (active)", "-", "127.0.0.1:9092", "101", "1"),
    )
    voter = replace(HEALTHY, nodes=(node(4, "down", roles=("controller",), rack="a"),))
    assert node_rows(voter) == [("4", "down", "controller", "a", "127.0.0.1:9095", "-", "-")]


def test_rows_of_partitions_show_who_leads_and_who_lags() -> None:
    [row] = partition_rows([replace(ORDERS, isr=(3, 1))])
    assert row == ("orders-0", "1", "5", "1,3", "2", "1000", "1:1005 2:1000 3:1000")
    nobody = replace(ORDERS, leader=None, isr=(), high_watermark=None, log_end_offsets={})
    assert partition_rows([nobody]) == [("orders-0", "-", "5", "-", "1,2,3", "-", "-")]


def test_rows_of_groups_show_members_and_lag() -> None:
    busy = GroupStatus(group="mail", state="Stable", type="classic", members=2, lag=70)
    assert group_rows([busy]) == [("mail", "Stable", "2", "70")]
    unknown = replace(busy, members=None, lag=None, state=None)
    assert group_rows([unknown]) == [("mail", "-", "-", "-")]
    document = status_as_json(replace(HEALTHY, groups=(busy,)))
    assert document["groups"] == [
        {"group": "mail", "state": "Stable", "type": "classic", "members": 2, "lag": 70}
    ]


def test_rows_of_open_transactions_show_their_age_and_partitions() -> None:
    assert transaction_rows([COPY], wall_ms=14_000) == [
        ("copy-1", "Ongoing", "2", "12 s", "orders-0,orders-1")
    ]
    unknown = replace(COPY, start_ms=None, partitions=None)
    assert transaction_rows([unknown], wall_ms=0) == [("copy-1", "Ongoing", "2", "-", "-")]
    document = status_as_json(replace(HEALTHY, transactions=(COPY, unknown)))
    assert document["transactions"][0] == {
        "transactional_id": "copy-1",
        "coordinator": 2,
        "producer_id": 1_000,
        "state": "Ongoing",
        "start_ms": 2_000,
        "partitions": ["orders-0", "orders-1"],
    }
    assert document["transactions"][1]["partitions"] is None


def test_the_last_stable_offset_is_a_column_only_while_one_is_behind() -> None:
    stable = replace(ORDERS, partition=1, last_stable_offset=1_000)
    assert partition_header([ORDERS, stable]) == PARTITION_HEADER
    assert len(partition_rows([stable])[0]) == len(PARTITION_HEADER)

    held = replace(ORDERS, last_stable_offset=965)
    own = replace(held, topic="__consumer_offsets")
    mixed = [held, stable, replace(ORDERS, partition=2), own, replace(own, partition=1)]
    assert partition_header(mixed) == (*PARTITION_HEADER, LAST_STABLE_OFFSET)
    assert [row[-1] for row in partition_rows(mixed)] == [
        *("965 (35 behind)", "1000", "-", "behind in 2 of them")
    ]
    assert {len(row) for row in partition_rows(mixed)} == {len(PARTITION_HEADER) + 1}
    [document] = status_as_json(replace(HEALTHY, partitions=(held,)))["partitions"]
    assert document["last_stable_offset"] == 965


def test_a_last_stable_offset_that_was_told_later_is_not_behind() -> None:
    assert replace(ORDERS, last_stable_offset=1_010).held_back == 0
    assert replace(ORDERS, last_stable_offset=1_010, high_watermark=None).held_back is None
    assert ORDERS.held_back is None


def test_nothing_is_shown_of_transactions_while_none_is_open() -> None:
    quiet = status_text(HEALTHY, Path("data"))
    assert "transaction" not in quiet and LAST_STABLE_OFFSET not in quiet
    held = replace(ORDERS, last_stable_offset=965)
    text = status_text(replace(HEALTHY, partitions=(held,), transactions=(COPY,)), Path("data"))
    assert "open transaction" in text and "copy-1" in text and "965 (35 behind)" in text


def test_rows_of_faults_show_their_end() -> None:
    ending = ActiveFault(id="f2", what="cut", text="cut 1 <-> 2", until_ms=5_000)
    assert fault_rows([KILLED, ending], wall_ms=2_000) == [
        ("f1", "killed broker 1", "when undone"),
        ("f2", "cut 1 <-> 2", "in 3 s"),
    ]


def test_the_summary_counts_what_is_wrong() -> None:
    assert summary(HEALTHY, shown=1) == "1 partition, all led, all in sync"
    assert summary(AFTER_A_DEATH, shown=1) == "1 partition, all led, 1 not fully in sync"
    led_by_the_dead = replace(AFTER_A_DEATH, partitions=(ORDERS,))
    assert "1 without a living leader" in summary(led_by_the_dead, shown=1)
    assert summary(replace(HEALTHY, partitions_total=None), shown=0).startswith("no broker answers")
    assert summary(replace(HEALTHY, partitions=(), partitions_total=0), shown=0) == "no topics yet"
    many = replace(HEALTHY, partitions_total=5_000)
    assert summary(many, shown=1) == "5000 partitions, all led, all in sync, the first 1 are shown"


def test_the_headline_says_whether_anything_runs() -> None:
    assert "active controller 1" in headline(HEALTHY)
    dead = replace(HEALTHY, nodes=tuple(node(each, "down") for each in (1, 2, 3)))
    assert headline(dead) == "cluster local-1: not running"


def test_nothing_new_is_no_line() -> None:
    assert changes(HEALTHY, HEALTHY) == []
    grown = replace(HEALTHY, partitions=(replace(ORDERS, high_watermark=2_000),))
    assert changes(HEALTHY, grown) == []


def test_a_death_is_told_in_lines_and_so_is_the_return() -> None:
    assert changes(HEALTHY, AFTER_A_DEATH) == [
        "active controller: 1 -> 2",
        "node 1: up -> down",
        "orders-0: leader 1 -> 2, leader epoch 6",
        "orders-0: isr 1,2,3 -> 2,3",
        "fault f1: killed broker 1",
    ]
    assert "fault f1 is over" in changes(AFTER_A_DEATH, HEALTHY)


def test_topics_come_and_go_but_silence_is_no_deletion() -> None:
    nothing = replace(HEALTHY, partitions=(), partitions_total=0)
    assert changes(nothing, HEALTHY) == ["orders-0: new, leader 1, isr 1,2,3"]
    assert changes(HEALTHY, nothing) == ["orders-0: gone"]
    assert changes(HEALTHY, replace(nothing, partitions_total=None)) == []


def test_health_needs_everybody() -> None:
    assert HEALTHY.is_healthy and not HEALTHY.is_down
    assert not AFTER_A_DEATH.is_healthy
    assert not replace(HEALTHY, controller=None).is_healthy
    assert not replace(HEALTHY, partitions=(replace(ORDERS, leader=None),)).is_healthy


def test_the_document_for_programs_has_everything() -> None:
    document = status_as_json(AFTER_A_DEATH)
    assert document["controller"] == 2
    assert document["is_healthy"] is False
    assert document["nodes"][0]["state"] == "down"
    assert document["partitions"][0]["log_end_offsets"] == {"1": 1_005, "2": 1_000, "3": 1_000}
    assert document["faults"][0]["nodes"] == [1]


def test_the_live_picture_shows_nodes_partitions_and_faults_and_fits_the_window() -> None:
    console = Console(width=140, height=40, record=True, file=StringIO())
    console.print(picture(AFTER_A_DEATH, lines=40))
    text = console.export_text()
    for word in (
        "broker,controller",
        "orders-0",
        "1:1005 2:1000 3:1000",
        "killed broker 1",
        "down",
    ):
        assert word in text
    many = replace(
        HEALTHY,
        partitions=tuple(
            replace(ORDERS, partition=each, last_stable_offset=965) for each in range(200)
        ),
        partitions_total=200,
        transactions=(COPY,) * 3,
    )
    console.print(picture(many, lines=30))
    text = console.export_text()
    assert len(text.splitlines()) <= 30
    assert "copy-1" in text and "965 (35 behind)" in text


def test_a_topic_of_the_brokers_is_one_row_while_somebody_leads() -> None:
    own = [replace(ORDERS, topic="__consumer_offsets", partition=index) for index in range(3)]
    alone = replace(own[1], leader=None)
    *rows, rest = partition_rows([ORDERS, own[0], alone, replace(own[2], isr=(3, 1))])
    assert [row[0] for row in rows] == ["orders-0", "__consumer_offsets-1"]
    assert rest == ("__consumer_offsets: 2 led", "-", "-", "-", "in 1 of them", "-", "-")
    assert len(rest) == len(PARTITION_HEADER)
    assert partition_rows(own[:1]) == [("__consumer_offsets: 1 led", *"------")]


def test_changes_of_the_brokers_topics_are_counted() -> None:
    own = tuple(replace(ORDERS, topic="__consumer_offsets", partition=index) for index in range(3))
    before = replace(HEALTHY, partitions=(ORDERS,))
    created = replace(HEALTHY, partitions=(ORDERS, *own))
    moved = replace(own[0], leader=1, leader_epoch=9, isr=(3, 1))
    later = replace(HEALTHY, partitions=(ORDERS, moved, *own[1:]))
    assert changes(before, created) == ["__consumer_offsets: 3 partitions new"]
    assert changes(created, later) == [
        "__consumer_offsets: 1 partitions with another leader",
        "__consumer_offsets: 1 partitions with another isr",
    ]
