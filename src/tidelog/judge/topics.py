"""Topics: one that was created is missing from a list, or one that was deleted is back."""

from __future__ import annotations

from tidelog.judge.excuses import NO_EXCUSES, Excuses
from tidelog.judge.history import Anomaly, History, Outcome, TopicAsked, TopicsListed


def topic_forgotten(history: History, excuses: Excuses = NO_EXCUSES) -> list[Anomaly]:
    """A creation that was answered ok shows in every later list, until a deletion is asked for."""
    deletions = [op for op in history if isinstance(op, TopicAsked) and not op.is_creation]
    created: list[TopicAsked] = []
    found: list[Anomaly] = []
    for operation in history:
        if isinstance(operation, TopicAsked):
            if operation.is_creation and operation.outcome is Outcome.OK:
                created.append(operation)
        elif isinstance(operation, TopicsListed):
            listed = {topic_id for _, topic_id in operation.topics}
            for creation in created:
                may_be_gone = any(
                    deletion.topic == creation.topic
                    and creation.invoked_us <= deletion.at_us
                    and deletion.invoked_us <= operation.at_us
                    and deletion.outcome is not Outcome.REFUSED
                    for deletion in deletions
                )
                if (
                    creation.topic_id not in listed
                    and not may_be_gone
                    and creation.at_us <= operation.invoked_us
                ):
                    found.append(_anomaly("topic forgotten", operation, creation))
    return found


def topic_resurrected(history: History, excuses: Excuses = NO_EXCUSES) -> list[Anomaly]:
    """The id of a topic whose deletion was answered ok never shows again."""
    deleted: list[TopicAsked] = []
    found: list[Anomaly] = []
    for operation in history:
        if isinstance(operation, TopicAsked):
            if not operation.is_creation and operation.outcome is Outcome.OK:
                deleted.append(operation)
        elif isinstance(operation, TopicsListed):
            listed = {topic_id for _, topic_id in operation.topics}
            found.extend(
                _anomaly("topic resurrected", operation, deletion)
                for deletion in deleted
                if deletion.topic_id in listed and deletion.at_us <= operation.invoked_us
            )
    return found


def _anomaly(check: str, listed: TopicsListed, asked: TopicAsked) -> Anomaly:
    return Anomaly(
        check=check,
        at_us=listed.at_us,
        partition="-",
        evidence=f"topic {asked.topic} ({asked.topic_id}), answered at {asked.at_us} us",
    )
