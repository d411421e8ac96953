"""A story shows what its steps found, no more; and an engine is known by its words."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import cast

import pytest

from tidelog.cluster.profiles import PROFILES
from tidelog.faults.kinds import EVERYWHERE, PROCESSES
from tidelog.lab.engine import WORDS, CannotHere, Engine
from tidelog.lab.engines.processes import ProcessEngine
from tidelog.lab.engines.simulator import SimulatorEngine
from tidelog.lab.lab import Lab
from tidelog.lab.report import Report
from tidelog.lab.story import BOOK, Story, play, story


class NoWorld:
    """An engine for stories in which nothing happens."""

    name = "nowhere"
    now_us = 0


def report_of(*ids: str, tell: Callable[[Lab], None]) -> Report:
    told = Story("a story", ids, "prose", "path", tell)
    return play(told, cast("Engine", NoWorld()))


def test_a_step_whose_findings_are_as_told_shows_its_scenario() -> None:
    def tell(lab: Lab) -> None:
        lab.step("D1-T1", "D1-T2", "one is one")
        lab.same("one", 1, 1)
        lab.true("true", True)
        lab.among("two", 2, (1, 2))
        lab.between("three", 3, 3, 4)
        lab.other("four", 4, 5)

    report = report_of("D1-T1", "D1-T2", tell=tell)
    assert (report.why_not("D1-T1"), report.why_not("D1-T2")) == (None, None)


@pytest.mark.parametrize(
    "look",
    [
        lambda lab: lab.same("one", 1, 2),
        lambda lab: lab.true("true", False),
        lambda lab: lab.among("two", 2, (1, 3)),
        lambda lab: lab.between("three", 3, 4, 5),
        lambda lab: lab.other("four", 4, 4),
    ],
)
def test_a_wrong_finding_ends_the_story_and_is_named(look: Callable[[Lab], None]) -> None:
    def tell(lab: Lab) -> None:
        lab.step("D1-T1", "something wrong")
        look(lab)
        lab.step("D1-T2", "never told")
        lab.same("one", 1, 1)

    report = report_of("D1-T1", "D1-T2", tell=tell)
    assert "something wrong" in str(report.why_not("D1-T1"))
    assert report.why_not("D1-T2") is not None
    assert any("not" in line for line in report.lines())


def test_what_was_shown_before_a_failure_is_not_counted() -> None:
    """A story that ends early may have seen something else than it should all along."""

    def tell(lab: Lab) -> None:
        lab.step("D1-T1", "fine")
        lab.same("one", 1, 1)
        lab.step("D1-T2", "not fine")
        lab.same("one", 1, 2)

    assert report_of("D1-T1", "D1-T2", tell=tell).why_not("D1-T1") is not None


def test_an_id_without_a_step_or_a_step_without_a_look_shows_nothing() -> None:
    def tell(lab: Lab) -> None:
        lab.step("D1-T1", "looks at nothing")
        lab.step("D1-T2", "looks")
        lab.same("one", 1, 1)

    report = report_of("D1-T1", "D1-T2", "D1-T3", tell=tell)
    assert report.why_not("D1-T1") == "a step of it checks nothing"
    assert report.why_not("D1-T2") is None
    assert report.why_not("D1-T3") == "the story has no step for it"


def test_a_step_may_not_name_what_its_story_does_not() -> None:
    def tell(lab: Lab) -> None:
        lab.step("D1-T1", "D9-X9", "one is one")
        lab.same("one", 1, 1)

    assert "D9-X9" in str(report_of("D1-T1", tell=tell).why_not("D1-T1"))


def test_a_word_that_the_engine_lacks_is_reported_and_is_no_failure() -> None:
    def tell(lab: Lab) -> None:
        raise CannotHere("lose_power")

    report = report_of("D1-T1", tell=tell)
    assert (report.cannot, report.failure) == ("lose_power", None)
    assert report.why_not("D1-T1") is not None


def test_what_a_story_takes_for_granted_and_is_not_there_is_a_failure() -> None:
    def tell(lab: Lab) -> None:
        lab.step("D1-T1", "one happening")
        lab.same("one", 1, 1)
        nothing: list[int] = []
        (one,) = nothing
        lab.same("it", one, 1)

    assert "(one,) = nothing" in str(report_of("D1-T1", tell=tell).why_not("D1-T1"))


def test_the_book_takes_a_story_once_and_only_with_prose() -> None:
    def untold(lab: Lab) -> None: ...

    with pytest.raises(AssertionError, match="no prose"):
        story("D1-T1")(untold)
    assert "untold" not in BOOK


def words_of(engine: type) -> set[str]:
    return {
        name
        for name, member in inspect.getmembers(engine)
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property))
    }


def test_every_word_of_the_interface_says_which_engines_understand_it() -> None:
    assert words_of(Engine) == WORDS.keys()
    assert all(set(engines) <= set(EVERYWHERE) for engines in WORDS.values())


def test_the_simulator_understands_every_word() -> None:
    assert words_of(SimulatorEngine) >= WORDS.keys()
    assert all("simulator" in engines for engines in WORDS.values())


def test_processes_say_which_words_they_do_not_understand() -> None:
    assert words_of(ProcessEngine) >= WORDS.keys()
    engine = ProcessEngine()
    missing = {word for word, engines in WORDS.items() if PROCESSES not in engines}
    arguments: dict[str, dict[str, object]] = {
        "lose_power": {"nodes": [1], "keeps": "nothing"},
        "fill_disk": {"node": 1, "bytes_left": 0},
        "move_clock": {"node": 1, "by_ms": 1},
    }
    assert missing > arguments.keys()
    for word in sorted(missing):
        with pytest.raises(CannotHere, match=word):
            getattr(engine, word)(**arguments.get(word, {"node": 1}))


def test_the_profiles_have_the_times_of_the_documents_and_of_kafka() -> None:
    times = {
        name: (
            settings["broker.heartbeat.interval.ms"],
            settings["broker.session.timeout.ms"],
            settings["replica.lag.time.max.ms"],
            settings["tidelog.failure.detection"],
        )
        for name, settings in PROFILES.items()
        if name != "fast"
    }
    assert times == {
        "documents": ("3000", "6000", "10000", "session"),
        "kafka-4": ("2000", "9000", "30000", "session"),
        "tidelog": ("2000", "9000", "30000", "connection"),
    }
