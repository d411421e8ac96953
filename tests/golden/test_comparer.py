"""The oracle's own parts: a comparer that finds what is planted, names that hide only accidents."""

from __future__ import annotations

from pathlib import Path

from tests.golden import recordings
from tests.golden.broker import SocketBroker
from tests.golden.cases import CASES, COORDINATED_CASES
from tests.golden.cluster_cases import CLUSTER_CASES
from tests.golden.compare import ABSENT, Difference, differences
from tests.golden.explained import EXPLAINED, Explained, field_of
from tests.golden.group_cases import GROUP_CASES
from tests.golden.names import Names, quorum_without_accidents
from tests.golden.plain import API_KEYS
from tests.golden.transaction_cases import TRANSACTION_CASES
from tidelog.core.wire.messages import MESSAGES

NEWEST_OF_KAFKA = {"ApiVersions": 4}
"""Where we serve a version that clients of Kafka 4.4 send and Kafka 4.3, the oracle, does not."""
CASES_MIN = 300


def names() -> Names:
    return Names(SocketBroker("here", 9092))


def test_equal_records_do_not_differ() -> None:
    """Two equal answers have no difference between them."""
    steps = [{"answer": {"error_code": 0, "topics": [{"name": "t"}]}}]
    assert differences("c", steps, steps) == []


def test_a_wrong_field_is_found_with_its_path() -> None:
    """One wrong number deep inside is one difference, named by its path."""
    kafka = [{"answer": {"topics": [{"name": "a", "code": 0}, {"name": "b", "code": 3}]}}]
    ours = [{"answer": {"topics": [{"name": "a", "code": 0}, {"name": "b", "code": 0}]}}]
    assert differences("c", kafka, ours) == [
        Difference(case="c", path="0/answer/topics/name=b/code", kafka=3, tidelog=0)
    ]


def test_a_missing_entry_is_one_difference() -> None:
    """An entry that is missing in a list does not shift those after it."""
    kafka = [{"name": "a"}, {"name": "b"}, {"name": "c"}]
    (found,) = differences("c", kafka, [{"name": "a"}, {"name": "c"}])
    assert (found.path, found.tidelog) == ("name=b", ABSENT)


def test_null_and_absent_differ() -> None:
    """A null is not a missing field."""
    assert len(differences("c", {"error_message": None}, {})) == 1


def test_a_closed_connection_differs_from_an_answer() -> None:
    """An outcome of another kind is a difference."""
    assert len(differences("c", [{"answer": "<connection closed>"}], [{"answer": {}}])) == 1


def test_names_hide_ids_clocks_and_addresses() -> None:
    """What differs from run to run has the same placeholder in each."""
    clock_ms = SocketBroker("here", 9092).clock_ms()
    plain = {
        "topics": [{"name": "t", "topic_id": b"0123456789abcdef"}],
        "host": "here",
        "port": 9092,
        "cluster_id": "xyz",
        "log_append_time_ms": clock_ms,
        "error_message": "some words",
        "session_id": 1234,
    }
    namer = names()
    namer.learn(plain)
    assert namer.normal(plain) == {
        "topics": [{"name": "t", "topic_id": "<topic-id:t>"}],
        "host": "<host>",
        "port": "<port>",
        "cluster_id": "<cluster-id>",
        "log_append_time_ms": "<clock>",
        "error_message": "<text>",
        "session_id": "<session:1>",
    }


def test_names_keep_what_is_not_accidental() -> None:
    """Sentinels, old times, other hosts and missing messages stay as they are."""
    plain = {"host": "there", "timestamp": 1_600_000_000_000, "log_append_time_ms": -1}
    plain |= {"session_id": 0, "error_message": None, "cluster_id": None, "producer_id": 7}
    assert names().normal(plain) == plain


def test_a_quorum_keeps_its_shape_and_loses_its_numbers() -> None:
    """Who is a voter is compared; who leads and how far they are is chance."""
    voter: dict[str, object]
    voter = {"replica_id": 2, "replica_directory_id": b"d" * 16, "log_end_offset": 77}
    stranger: dict[str, object]
    stranger = {"replica_id": 4, "replica_directory_id": bytes(16), "log_end_offset": -1}
    partition: dict[str, object]
    partition = {"partition_index": 0, "leader_id": 2, "leader_epoch": 5, "high_watermark": -1}
    partition |= {"current_voters": [voter], "observers": [stranger]}
    shown = quorum_without_accidents({"error_code": 0, "topics": [{"partitions": [partition]}]})

    voter = {"replica_id": 2, "replica_directory_id": "<directory-id>", "log_end_offset": "<known>"}
    stranger["replica_directory_id"] = "<directory-id:none>"
    partition |= {"leader_id": "<known>", "leader_epoch": "<known>"}
    partition |= {"current_voters": [voter], "observers": [stranger]}
    assert shown == {"error_code": 0, "topics": [{"partitions": [partition]}]}


def test_a_topic_made_again_has_another_placeholder() -> None:
    """Two ids of one name stay apart."""
    namer = names()
    namer.learn_topic_id(b"a" * 16, "t")
    namer.learn_topic_id(b"b" * 16, "t")
    assert namer.normal({"topic_id": b"b" * 16}) == {"topic_id": "<topic-id:t#2>"}


def test_lists_of_named_things_are_in_the_order_of_names() -> None:
    """Kafka's maps have no order, so answers are compared without one; batches keep theirs."""
    plain = {"topics": [{"name": "b"}, {"name": "a"}], "replica_nodes": [3, 1]}
    assert names().normal(plain) == {
        "topics": [{"name": "a"}, {"name": "b"}],
        "replica_nodes": [3, 1],
    }


def test_an_explanation_that_wants_less_does_not_cover_more() -> None:
    """What explains a missing entry does not explain a wrong one."""
    entry = Explained(title="t", reason="r", cases=("c1",), fields=("a/b",), only_missing=True)
    missing = Difference(case="c1", path="0/answer/a/b", kafka=1, tidelog=ABSENT)
    wrong = Difference(case="c1", path="0/answer/a/b", kafka=1, tidelog=2)
    elsewhere = Difference(case="d", path="0/answer/a/b", kafka=1, tidelog=ABSENT)
    deeper = Difference(case="c1", path="0/answer/a/b/c", kafka=1, tidelog=ABSENT)
    found = [entry.covers(each) for each in (missing, wrong, elsewhere, deeper)]
    assert found == [True, False, False, False]


def test_a_field_is_named_without_the_step_and_the_topic_of_its_case() -> None:
    """Whatever else a path has tells what differs."""
    named = {
        "3/answer/topics/name=c1-t/partitions/partition_index=0/offset": (
            "topics/<topic>/partitions/partition_index=0/offset"
        ),
        "0/answer/topics/topic_id=<topic-id:c1-t>/code": "topics/<topic>/code",
        "0/answer/api_keys/api_key=8": "api_keys/api_key=8",
        "1/answer": "answer",
    }
    for path, field in named.items():
        assert field_of(Difference(case="c1", path=path, kafka=1, tidelog=2)) == field


def test_explanations_name_cases_that_exist_and_fields_one_by_one() -> None:
    """A pattern would explain what nobody has looked at."""
    known = {*CASES, *COORDINATED_CASES, *GROUP_CASES, *TRANSACTION_CASES, *CLUSTER_CASES}
    for entry in EXPLAINED:
        assert set(entry.cases) <= known, entry.title
        assert len(set(entry.cases)) == len(entry.cases)
        assert len(set(entry.fields)) == len(entry.fields)
        assert not [each for each in (*entry.cases, *entry.fields) if set(each) & set("*?[")]


def test_recordings_survive_being_saved(tmp_path: Path) -> None:
    """What is saved is what is loaded, and cases that are gone leave no trace."""
    case = next(iter(CASES.values()))
    steps = [{"ask": "X v1", "answer": {"topics": ["x" * 200, None, 1]}}]
    (tmp_path / "Gone.json").write_text("{}")
    recordings.save({case.name: steps, "gone": []}, CASES.values(), tmp_path)
    assert recordings.load(tmp_path) == {case.name: steps}
    assert not (tmp_path / "Gone.json").exists()


def test_every_served_api_is_asked_in_its_lowest_and_highest_version() -> None:
    """The recordings hold at least 300 cases, and both ends of every API's versions."""
    stored = recordings.load()
    asked = {step["ask"] for steps in stored.values() for step in steps if "ask" in step}
    assert len(stored) >= CASES_MIN
    for api, key in API_KEYS.items():
        versions = MESSAGES[key][0].versions
        newest = NEWEST_OF_KAFKA.get(api, versions[-1])
        assert {f"{api} v{versions[0]}", f"{api} v{newest}"} <= asked


def test_every_case_is_recorded_and_every_recording_has_its_case() -> None:
    """Cases and recordings are the same set; otherwise `./dev golden record` was forgotten."""
    every = {*CASES, *COORDINATED_CASES, *GROUP_CASES, *TRANSACTION_CASES, *CLUSTER_CASES}
    assert set(recordings.load()) == every


def test_explanations_have_titles_of_their_own() -> None:
    """Each entry is one section of the documentation."""
    titles = [entry.title for entry in EXPLAINED]
    assert len(titles) == len(set(titles))
