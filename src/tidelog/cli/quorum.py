"""`tidelog quorum`: who leads the metadata log, and how far the others are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer

from tidelog.cli.client_options import (
    DEFAULT_BOOTSTRAP,
    DEFAULT_TIMEOUT,
    AsJson,
    Bootstrap,
    CommandConfig,
    Timeout,
    access,
)
from tidelog.cli.exit_codes import VerbFailed, refusal, verb
from tidelog.cli.text_columns import cell, columns
from tidelog.cli.topic.tables import topic_id_text

if TYPE_CHECKING:
    from tidelog.client.admin.cluster import QuorumInfo, QuorumReplica

app = typer.Typer(
    name="quorum",
    help="Look at the metadata quorum; on any Kafka in KRaft mode.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@app.callback()
def _root() -> None:
    """Look at the metadata quorum; on any Kafka in KRaft mode."""


@app.command()
def describe(
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Describe the metadata quorum: its leader, its epoch, and how far each node has copied.

        tidelog quorum describe --bootstrap-server broker-1:9092

    Voters elect the leader, which is the active controller; observers only read. `lag` is in
    records behind the leader, `behind` is the time since a node had everything.

    `--json` is one document: cluster_id, leader, quorum_epoch, high_watermark,
    max_follower_lag, max_follower_lag_ms, and nodes with node, status (leader, voter, observer),
    directory_id, log_end_offset, lag, behind_ms, last_fetch_ms, last_caught_up_ms. Unknown is null.
    """
    with verb("quorum describe"):
        at = access(bootstrap, command_config, timeout)
        from tidelog.client.admin.cluster import describe_cluster, describe_quorum
        from tidelog.client.shells.blocking_clients import Admin
        from tidelog.core.model.errors import ErrorCode

        with Admin(at.settings) as admin:
            cluster_id = admin.ask(describe_cluster(), timeout_s=at.timeout_s).cluster_id
            quorum = admin.ask(describe_quorum(), timeout_s=at.timeout_s)
        if quorum.error != ErrorCode.NONE:
            raise VerbFailed(refusal(quorum.error.name, quorum.message, "the quorum"))
        document = quorum_json(cluster_id, quorum)
        print(json.dumps(document) if as_json else quorum_text(document))


def quorum_json(cluster_id: str, quorum: QuorumInfo) -> dict[str, Any]:
    """Lags are counted from the leader's own log end and clock."""
    nodes = list(_nodes(quorum))
    voters = [each for each in nodes if each["status"] == "voter"]
    lags = [each["lag"] for each in voters if each["lag"] is not None]
    late_ms = [each["behind_ms"] for each in voters if each["behind_ms"] is not None]
    return {
        "cluster_id": cluster_id,
        "leader": quorum.leader_id,
        "quorum_epoch": quorum.quorum_epoch,
        "high_watermark": quorum.high_watermark,
        "max_follower_lag": max(lags, default=0),
        "max_follower_lag_ms": max(late_ms, default=0),
        "nodes": nodes,
    }


def _nodes(quorum: QuorumInfo) -> Iterator[dict[str, Any]]:
    leader = next((each for each in quorum.voters if each.id == quorum.leader_id), None)
    for kind, replicas in (("voter", quorum.voters), ("observer", quorum.observers)):
        for each in sorted(replicas, key=lambda one: (one.id != quorum.leader_id, one.id)):
            yield {
                "node": each.id,
                "status": "leader" if each is leader else kind,
                "directory_id": topic_id_text(each.directory_id),
                "log_end_offset": each.log_end_offset,
                "lag": _lag(leader, each),
                "behind_ms": _behind_ms(leader, each),
                "last_fetch_ms": each.last_fetch_ms,
                "last_caught_up_ms": each.last_caught_up_ms,
            }


def _lag(leader: QuorumReplica | None, replica: QuorumReplica) -> int | None:
    if leader is None or leader.log_end_offset is None or replica.log_end_offset is None:
        return None
    return max(0, leader.log_end_offset - replica.log_end_offset)


def _behind_ms(leader: QuorumReplica | None, replica: QuorumReplica) -> int | None:
    """The leader's own last time is its present."""
    if leader is None or leader.last_caught_up_ms is None or replica.last_caught_up_ms is None:
        return None
    return max(0, leader.last_caught_up_ms - replica.last_caught_up_ms)


def quorum_text(document: dict[str, Any]) -> str:
    voters = [each["node"] for each in document["nodes"] if each["status"] != "observer"]
    observers = [each["node"] for each in document["nodes"] if each["status"] == "observer"]
    facts = (
        ("cluster id", document["cluster_id"]),
        ("leader", "none" if document["leader"] is None else document["leader"]),
        ("quorum epoch", document["quorum_epoch"]),
        ("high watermark", document["high_watermark"]),
        ("max follower lag", document["max_follower_lag"]),
        ("max follower lag ms", document["max_follower_lag_ms"]),
        ("voters", sorted(voters)),
        ("observers", sorted(observers)),
    )
    status = "\n".join(f"{name + ':':<21}{cell(value)}" for name, value in facts)
    header = ("node", "status", "log end", "lag", "behind ms", "directory id")
    rows = [
        (
            each["node"],
            each["status"],
            each["log_end_offset"],
            each["lag"],
            each["behind_ms"],
            each["directory_id"],
        )
        for each in document["nodes"]
    ]
    return f"{status}\n\n{columns(header, rows)}"
