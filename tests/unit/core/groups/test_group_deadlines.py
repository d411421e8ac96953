"""Deadlines: one per key, moved and cancelled, due in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidelog.core.groups.group_deadlines import DeadlineKey, DeadlineKind, GroupDeadlines

KEYS = [DeadlineKey(DeadlineKind.SESSION, "g", str(number)) for number in range(4)]


def test_a_moved_deadline_is_due_at_its_new_time_only() -> None:
    deadlines = GroupDeadlines()
    deadlines.schedule(KEYS[0], 10)
    deadlines.schedule(KEYS[0], 20)
    assert deadlines.pop_due(19) is None
    assert deadlines.pop_due(20) == KEYS[0]
    assert deadlines.pop_due(30) is None


def test_equal_deadlines_are_due_in_the_order_in_which_they_were_set() -> None:
    deadlines = GroupDeadlines()
    for key in KEYS:
        deadlines.schedule(key, 5)
    assert [deadlines.pop_due(5) for _ in KEYS] == KEYS


def test_heartbeats_do_not_make_the_queue_grow() -> None:
    deadlines = GroupDeadlines()
    for now_ms in range(1_000):
        deadlines.schedule(KEYS[0], now_ms + 100)
        assert deadlines.pop_due(now_ms) is None
    assert len(deadlines._queue) == 1


@given(
    st.lists(
        st.tuples(st.sampled_from(KEYS), st.none() | st.integers(0, 20), st.integers(0, 3)),
        max_size=40,
    )
)
def test_like_a_dictionary_of_times(steps: list[tuple[DeadlineKey, int | None, int]]) -> None:
    """None cancels; after each step some time passes and what is due comes out."""
    deadlines, model, now_ms = GroupDeadlines(), dict[DeadlineKey, int](), 0
    for key, delay_ms, passing_ms in steps:
        if delay_ms is None:
            deadlines.cancel(key)
            model.pop(key, None)
        else:
            deadlines.schedule(key, now_ms + delay_ms)
            model[key] = now_ms + delay_ms
        deadlines.check()
        now_ms += passing_ms
        assert deadlines.next_deadline_ms() == min(model.values(), default=None)
        due = set()
        while (popped := deadlines.pop_due(now_ms)) is not None:
            due.add(popped)
        assert due == {key for key, at_ms in model.items() if at_ms <= now_ms}
        model = {key: at_ms for key, at_ms in model.items() if at_ms > now_ms}
        assert len(deadlines) == len(model)


def test_what_is_cancelled_in_a_loop_leaves_nothing_behind() -> None:
    """Members come and go with new ids, and their deadlines lie far ahead."""
    deadlines = GroupDeadlines()
    kept = DeadlineKey(DeadlineKind.SESSION, "g", "kept")
    deadlines.schedule(kept, 50)
    for at in range(10_000):
        key = DeadlineKey(DeadlineKind.SESSION, "g", f"m{at}")
        deadlines.schedule(key, 1_000_000 + at)
        deadlines.cancel(key)
        assert deadlines.entries_count < 200
    deadlines.check()
    assert deadlines.pop_due(50) == kept
    assert deadlines.next_deadline_ms() is None
