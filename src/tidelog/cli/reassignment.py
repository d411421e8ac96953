"""Moving partitions, for the verbs that do so: the plan shown, begun, and watched until its end."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tidelog.cli.client_options import Access
from tidelog.cli.exit_codes import VerbFailed, refusal
from tidelog.cli.text_columns import cell, columns

if TYPE_CHECKING:
    from tidelog.client.admin.reassignments import OngoingReassignment
    from tidelog.client.admin.topics import TopicDescription
    from tidelog.client.shells.blocking_clients import Admin
    from tidelog.core.model.ids import TopicPartition

LOOK_AGAIN_S = 0.3
Replicas = tuple[int, ...]


def replicas_of(topics: Iterable[TopicDescription]) -> dict[TopicPartition, Replicas]:
    """The replicas of every partition of these topics."""
    from tidelog.core.model.ids import TopicPartition

    return {
        TopicPartition(topic.name, index): partition.replicas
        for topic in topics
        for index, partition in topic.partitions.items()
    }


def targets_of(
    admin: Admin, at: Access, topics: Iterable[TopicDescription]
) -> tuple[dict[TopicPartition, Replicas], dict[TopicPartition, OngoingReassignment]]:
    """The replicas of every partition, as they will be where it is on the move; and those moves."""
    from tidelog.client.admin.reassignments import list_reassignments

    found = replicas_of(topics)
    ongoing = admin.ask(list_reassignments(), timeout_s=at.timeout_s)
    for name, move in ongoing.items():
        if name in found:
            found[name] = tuple(each for each in move.replicas if each not in move.removing)
    return found, {name: move for name, move in ongoing.items() if name in found}


def moves_of(
    current: Mapping[TopicPartition, Replicas], planned: Mapping[TopicPartition, Replicas]
) -> dict[TopicPartition, Replicas]:
    """What of a plan is not so already."""
    return {name: after for name, after in planned.items() if current[name] != after}


def plan_text(
    current: Mapping[TopicPartition, Replicas], moves: Mapping[TopicPartition, Replicas]
) -> str:
    """One line for each partition that would move."""
    rows = [(name, cell(current[name]), cell(after)) for name, after in sorted(moves.items())]
    return columns(("partition", "replicas now", "replicas then"), rows)


def moves_json(
    current: Mapping[TopicPartition, Replicas], moves: Mapping[TopicPartition, Replicas]
) -> list[dict[str, Any]]:
    return [
        {
            "topic": name.topic,
            "partition": name.index,
            "replicas": list(current[name]),
            "target": list(after),
        }
        for name, after in sorted(moves.items())
    ]


def ongoing_text(ongoing: Mapping[TopicPartition, OngoingReassignment]) -> str:
    rows = [
        (name, cell(each.replicas), cell(each.adding), cell(each.removing))
        for name, each in sorted(ongoing.items())
    ]
    return columns(("partition", "replicas", "adding", "removing"), rows)


def ongoing_json(ongoing: Mapping[TopicPartition, OngoingReassignment]) -> list[dict[str, Any]]:
    return [
        {
            "topic": name.topic,
            "partition": name.index,
            "replicas": list(each.replicas),
            "adding": list(each.adding),
            "removing": list(each.removing),
        }
        for name, each in sorted(ongoing.items())
    ]


def begin(admin: Admin, at: Access, targets: Mapping[TopicPartition, Sequence[int] | None]) -> None:
    """Let them move (or, without brokers, turn back); VerbFailed names the first refused one."""
    from tidelog.client.admin.reassignments import alter_reassignments

    outcomes = admin.ask(alter_reassignments(targets), timeout_s=at.timeout_s)
    refused = {name: each for name, each in sorted(outcomes.items()) if not each.is_ok}
    for name, outcome in refused.items():
        others = f" ({len(refused)} of {len(targets)} refused)" if len(refused) > 1 else ""
        text = refusal(outcome.error.name, outcome.message, "not moved")
        raise VerbFailed(f"{name}: {text}{others}")


def watch(admin: Admin, at: Access, partitions: Sequence[TopicPartition], *, as_json: bool) -> None:
    """Until none of them moves; Ctrl-C ends the watching, not the moving."""
    from tidelog.client.admin.reassignments import list_reassignments

    printed: int | None = None
    while True:
        ongoing = admin.ask(list_reassignments(partitions), timeout_s=at.timeout_s)
        done = len(partitions) - len(ongoing)
        if done != printed:
            printed = done
            if as_json:
                print(json.dumps({"moved": done, "of": len(partitions)}), flush=True)
            else:
                print(f"moved {done} of {len(partitions)}", flush=True)
        if not ongoing:
            return
        time.sleep(LOOK_AGAIN_S)
