"""`tidelog topic list`: the names, and how many partitions and copies each has."""

from __future__ import annotations

import json
from typing import Annotated

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
from tidelog.cli.exit_codes import verb
from tidelog.cli.text_columns import columns
from tidelog.cli.topic.tables import topic_id_text


def list_(
    internal: Annotated[
        bool, typer.Option("--internal", help="Also those that brokers keep for themselves.")
    ] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """List topics.

    **All topics of a cluster**:

        tidelog topic list --bootstrap-server broker-1:9092,broker-2:9092

    **Only the names**:

        tidelog topic list --json | jq -r '.topics[].topic'

    `--json` is one document: topics, each with topic, topic_id, internal, partitions and
    replication_factor.
    """
    with verb("topic list"):
        at = access(bootstrap, command_config, timeout)
        from tidelog.client.admin.descriptions import describe_metadata
        from tidelog.client.shells.blocking_clients import Admin

        with Admin(at.settings) as admin:
            topics = admin.ask(describe_metadata(), timeout_s=at.timeout_s).topics
        shown = [each for _, each in sorted(topics.items()) if internal or not each.is_internal]
        facts = [
            {
                "topic": each.name,
                "topic_id": topic_id_text(each.topic_id),
                "internal": each.is_internal,
                "partitions": len(each.partitions),
                "replication_factor": max(
                    (len(one.replicas) for one in each.partitions.values()), default=0
                ),
            }
            for each in shown
        ]
        if as_json:
            print(json.dumps({"topics": facts}))
        elif facts:
            header = ("topic", "partitions", "replication factor")
            keys = ("topic", "partitions", "replication_factor")
            print(columns(header, [[each[key] for key in keys] for each in facts]))
        else:
            print("no topics")
