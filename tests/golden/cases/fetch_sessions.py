"""Fetch sessions: made, continued, changed, forgotten and refused."""

from __future__ import annotations

from typing import Any

from tests.golden.batches import batch
from tests.golden.cases.asking import MEBIBYTE, fetched_topic, produce
from tests.golden.cases.registry import case
from tests.golden.talk import MADE_UP_ID, Talk, Topic

VERSIONS = (7, 12, 13, 18)
EDGES = (7, 18)
FINAL = -1


def asked(index: int, offset: int = 0, **options: Any) -> dict[str, Any]:
    return {
        "partition": index,
        "fetch_offset": offset,
        "partition_max_bytes": MEBIBYTE,
        **options,
    }


def session(
    talk: Talk,
    version: int,
    session_id: int,
    session_epoch: int,
    topics: list[tuple[Topic, list[dict[str, Any]]]],
    forgotten: list[tuple[Topic, list[int]]] | None = None,
    **options: Any,
) -> Any:
    """One fetch inside a session."""
    fields = {
        "max_wait_ms": 0,
        "min_bytes": 0,
        "session_id": session_id,
        "session_epoch": session_epoch,
        "topics": [fetched_topic(version, topic, partitions) for topic, partitions in topics],
        "forgotten_topics_data": [
            fetched_topic(version, topic, partitions) for topic, partitions in forgotten or []
        ],
        **options,
    }
    return talk.ask("Fetch", version, **fields)


@case("Fetch", *VERSIONS)
def session_made_and_continued(talk: Talk, version: int) -> None:
    """A new session answers everything; then only partitions with news are answered."""
    topic = talk.new_topic(partitions=2)
    talk.fill(topic, batch("a"), partition=0)
    made = session(talk, version, 0, 0, [(topic, [asked(0), asked(1)])])
    number = made["session_id"]
    session(talk, version, number, 1, [(topic, [asked(0, 1)])])
    session(talk, version, number, 2, [])
    produce(talk, 13, topic, batch("b"), partition=1)
    session(talk, version, number, 3, [])
    session(talk, version, number, 4, [(topic, [asked(1, 1)])])


@case("Fetch", *EDGES)
def session_not_wanted(talk: Talk, version: int) -> None:
    """Session id 0 with the final epoch is a fetch without a session."""
    topic = talk.new_topic()
    talk.fill(topic)
    session(talk, version, 0, FINAL, [(topic, [asked(0)])])


@case("Fetch", *EDGES)
def session_of_nobody(talk: Talk, version: int) -> None:
    """A session id that does not exist."""
    topic = talk.new_topic()
    talk.fill(topic)
    session(talk, version, 123_456, 1, [(topic, [asked(0)])])


@case("Fetch", *EDGES)
def session_at_a_wrong_epoch(talk: Talk, version: int) -> None:
    """A session epoch that is not the next one."""
    topic = talk.new_topic()
    talk.fill(topic)
    number = session(talk, version, 0, 0, [(topic, [asked(0)])])["session_id"]
    session(talk, version, number, 5, [])
    session(talk, version, number, 1, [])


@case("Fetch", *EDGES)
def session_at_a_repeated_epoch(talk: Talk, version: int) -> None:
    """The same session epoch twice."""
    topic = talk.new_topic()
    talk.fill(topic)
    number = session(talk, version, 0, 0, [(topic, [asked(0)])])["session_id"]
    session(talk, version, number, 1, [])
    session(talk, version, number, 1, [])


@case("Fetch", *EDGES)
def session_closed_by_the_final_epoch(talk: Talk, version: int) -> None:
    """The final epoch closes the session; it is unknown afterwards."""
    topic = talk.new_topic()
    talk.fill(topic)
    number = session(talk, version, 0, 0, [(topic, [asked(0)])])["session_id"]
    session(talk, version, number, FINAL, [(topic, [asked(0)])])
    session(talk, version, number, 1, [])


@case("Fetch", *EDGES)
def session_made_anew_from_an_old_one(talk: Talk, version: int) -> None:
    """Epoch 0 with an old session id closes that one and makes another."""
    topic = talk.new_topic()
    talk.fill(topic)
    number = session(talk, version, 0, 0, [(topic, [asked(0)])])["session_id"]
    session(talk, version, number, 0, [(topic, [asked(0)])])
    session(talk, version, number, 1, [])


@case("Fetch", *VERSIONS)
def session_with_forgotten_partitions(talk: Talk, version: int) -> None:
    """A forgotten partition is not answered any more, whatever comes."""
    topic = talk.new_topic(partitions=2)
    number = session(talk, version, 0, 0, [(topic, [asked(0), asked(1)])])["session_id"]
    session(talk, version, number, 1, [], [(topic, [0])])
    produce(talk, 13, topic, batch("a"), partition=0)
    produce(talk, 13, topic, batch("b"), partition=1)
    session(talk, version, number, 2, [])


@case("Fetch", *EDGES)
def session_that_forgets_what_it_never_had(talk: Talk, version: int) -> None:
    """Forgetting an unknown partition does no harm."""
    topic = talk.new_topic()
    number = session(talk, version, 0, 0, [(topic, [asked(0)])])["session_id"]
    session(talk, version, number, 1, [], [(topic, [9])])


@case("Fetch", *EDGES)
def session_that_forgets_everything(talk: Talk, version: int) -> None:
    """A session without partitions lives on, or not."""
    topic = talk.new_topic()
    number = session(talk, version, 0, 0, [(topic, [asked(0)])])["session_id"]
    session(talk, version, number, 1, [], [(topic, [0])])
    session(talk, version, number, 2, [(topic, [asked(0)])])


@case("Fetch", *EDGES)
def session_that_grows(talk: Talk, version: int) -> None:
    """A partition added later is answered from then on."""
    topic, other = talk.new_topic(), talk.new_topic("other")
    talk.fill(other, batch("b"))
    number = session(talk, version, 0, 0, [(topic, [asked(0)])])["session_id"]
    session(talk, version, number, 1, [(other, [asked(0)])])
    session(talk, version, number, 2, [])


@case("Fetch", 7, 12, 13, 18)
def session_with_an_unknown_topic(talk: Talk, version: int) -> None:
    """An unknown topic in a session is told every time."""
    topic = talk.new_topic()
    missing = Topic(talk.name("missing"), MADE_UP_ID)
    made = session(talk, version, 0, 0, [(topic, [asked(0)]), (missing, [asked(0)])])
    session(talk, version, made["session_id"], 1, [])


@case("Fetch", *EDGES)
def session_with_an_error_told_again(talk: Talk, version: int) -> None:
    """An offset out of range is told again until it is mended."""
    topic = talk.new_topic()
    talk.fill(topic)
    number = session(talk, version, 0, 0, [(topic, [asked(0, 7)])])["session_id"]
    session(talk, version, number, 1, [])
    session(talk, version, number, 2, [(topic, [asked(0, 0)])])


@case("Fetch", *EDGES)
def session_without_partitions(talk: Talk, version: int) -> None:
    """A new session that names nothing is not made."""
    session(talk, version, 0, 0, [])


@case("Fetch", *EDGES)
def session_id_without_an_epoch(talk: Talk, version: int) -> None:
    """Session id 0 with epoch 1 belongs to nobody."""
    topic = talk.new_topic()
    session(talk, version, 0, 1, [(topic, [asked(0)])])


@case("Fetch", 18)
def session_that_hears_of_a_moved_log_start(talk: Talk, version: int) -> None:
    """A moved log start is news even without records."""
    topic = talk.new_topic()
    talk.fill(topic, batch("a"), batch("b"))
    number = session(talk, version, 0, 0, [(topic, [asked(0, 2)])])["session_id"]
    session(talk, version, number, 1, [])
    gone = {"partition_index": 0, "offset": 1}
    fields = {"topics": [{"name": topic.name, "partitions": [gone]}], "timeout_ms": 5000}
    talk.quietly("DeleteRecords", 2, **fields)
    session(talk, version, number, 2, [])
    session(talk, version, number, 3, [])


@case("Fetch", 18)
def session_whose_topic_is_deleted(talk: Talk, version: int) -> None:
    """A topic deleted under a session is unknown in its next answer."""
    topic = talk.new_topic()
    talk.fill(topic)
    number = session(talk, version, 0, 0, [(topic, [asked(0)])])["session_id"]
    talk.quietly("DeleteTopics", 6, topics=[{"name": topic.name}], timeout_ms=5000)
    talk.wait_until_gone(topic.name)
    session(talk, version, number, 1, [])


@case("Fetch", 18)
def session_whose_topic_is_made_again(talk: Talk, version: int) -> None:
    """The session's topic id is not that of the new topic of the same name."""
    topic = talk.new_topic()
    talk.fill(topic)
    number = session(talk, version, 0, 0, [(topic, [asked(0)])])["session_id"]
    talk.quietly("DeleteTopics", 6, topics=[{"name": topic.name}], timeout_ms=5000)
    talk.wait_until_gone(topic.name)
    new = talk.new_topic()
    session(talk, version, number, 1, [])
    session(talk, version, number, 2, [(new, [asked(0)])])


@case("Fetch")
def session_that_changes_to_topic_ids(talk: Talk) -> None:
    """A session made by name cannot be continued by topic id."""
    topic = talk.new_topic()
    talk.fill(topic)
    number = session(talk, 12, 0, 0, [(topic, [asked(0)])])["session_id"]
    session(talk, 13, number, 1, [(topic, [asked(0, 1)])])


@case("Fetch")
def session_that_changes_to_topic_names(talk: Talk) -> None:
    """A session made by topic id cannot be continued by name."""
    topic = talk.new_topic()
    talk.fill(topic)
    number = session(talk, 13, 0, 0, [(topic, [asked(0)])])["session_id"]
    session(talk, 12, number, 1, [(topic, [asked(0, 1)])])


@case("Fetch", *EDGES)
def session_used_on_another_connection(talk: Talk, version: int) -> None:
    """A session belongs to nobody's connection."""
    topic = talk.new_topic()
    talk.fill(topic)
    number = session(talk, version, 0, 0, [(topic, [asked(0)])])["session_id"]
    session(talk, version, number, 1, [], on=2)


@case("Fetch", 18)
def session_that_waits(talk: Talk, version: int) -> None:
    """A waiting incremental fetch is woken by news in any of its partitions."""
    topic = talk.new_topic(partitions=2)
    number = session(talk, version, 0, 0, [(topic, [asked(0), asked(1)])])["session_id"]
    finish = talk.start(
        "Fetch",
        version,
        on=2,
        max_wait_ms=15_000,
        min_bytes=1,
        session_id=number,
        session_epoch=1,
        topics=[],
    )
    produce(talk, 13, topic, batch("a"), partition=1)
    finish()


@case("Fetch", 18)
def session_that_waits_in_vain(talk: Talk, version: int) -> None:
    """An incremental fetch without news is answered empty after its wait."""
    topic = talk.new_topic()
    number = session(talk, version, 0, 0, [(topic, [asked(0)])])["session_id"]
    session(talk, version, number, 1, [], max_wait_ms=100, min_bytes=1)
    session(talk, version, number, 2, [])
