"""Topic names: Kafka's rules at their edges."""

from __future__ import annotations

import pytest

from tidelog.core.model.topic_name import is_internal_topic, refuse_topic_name


@pytest.mark.parametrize(
    "name", ["a", "orders", "A.b_c-9", "...", "-", "_", "x" * 249, "__consumer_offsets"]
)
def test_a_legal_name_is_not_refused(name: str) -> None:
    assert refuse_topic_name(name) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "empty"),
        (".", "called"),
        ("..", "called"),
        ("x" * 250, "at most 249"),
        ("a b", "only ASCII"),
        ("a/b", "only ASCII"),
        ("a\n", "only ASCII"),
        ("\n", "only ASCII"),
        ("ä", "only ASCII"),
        ("٣", "only ASCII"),
        ("a\0", "only ASCII"),
    ],
)
def test_an_illegal_name_is_refused_with_its_reason(name: str, reason: str) -> None:
    assert reason in (refuse_topic_name(name) or "")


def test_the_topics_of_the_cluster_are_internal() -> None:
    assert is_internal_topic("__consumer_offsets")
    assert is_internal_topic("__transaction_state")
    assert not is_internal_topic("__cluster_metadata")
    assert not is_internal_topic("orders")
