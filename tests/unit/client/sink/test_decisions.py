"""The table of decisions: every error code at every step, and codes that nobody knows."""

from __future__ import annotations

import pytest

from tidelog.client.sink.decisions import OF_STEP, Decision, decide, heaviest, name_of_code
from tidelog.client.sink.steps import SPOKEN, Step
from tidelog.core.model.errors import ErrorCode

D = Decision
COORDINATOR = {14: D.FIND_AGAIN, 15: D.FIND_AGAIN, 16: D.FIND_AGAIN}
LEADER = dict.fromkeys((5, 6, 8, 9, 56, 72, 74, 75, 78), D.REFRESH)
OF_EVERYBODY = {
    0: D.GO_ON,
    51: D.WAIT,
    88: D.WAIT,
    **COORDINATOR,
    **LEADER,
    **dict.fromkeys((7, 13, 41, 89), D.AGAIN),
    47: D.FENCED,
    90: D.FENCED,
}
ASKS_COORDINATOR = {7: D.FIND_AGAIN, 13: D.FIND_AGAIN}
ASKS_LEADER = {3: D.REFRESH, 7: D.REFRESH, 13: D.REFRESH}
IN_TRANSACTION = {-1: D.BATCH_LOST, 48: D.BATCH_LOST, 120: D.BATCH_LOST, 49: D.FENCED}

# Everything that is not here is STOP, and at the commit LOOK.
EXPECTED: dict[Step, dict[int, Decision]] = {
    Step.VERSIONS: OF_EVERYBODY,
    Step.CONFIGS: OF_EVERYBODY,
    Step.TOPICS: {**OF_EVERYBODY, 5: D.AGAIN},
    Step.FIND: {**OF_EVERYBODY, **dict.fromkeys((14, 15, 16, 38), D.AGAIN)},
    Step.IDENTIFY: {**OF_EVERYBODY, **ASKS_COORDINATOR},
    Step.READ_MARKER: {**OF_EVERYBODY, **ASKS_COORDINATOR, 69: D.GO_ON},
    Step.NEXT_EPOCH: {**OF_EVERYBODY, **ASKS_COORDINATOR},
    Step.END_OFFSETS: {**OF_EVERYBODY, **ASKS_LEADER},
    Step.ADD_PARTITIONS: {
        **OF_EVERYBODY,
        **ASKS_COORDINATOR,
        **IN_TRANSACTION,
        3: D.AGAIN,
        55: D.AGAIN,
    },
    Step.PRODUCE: {
        **OF_EVERYBODY,
        **ASKS_LEADER,
        **IN_TRANSACTION,
        **dict.fromkeys((2, 19, 20), D.AGAIN),
        **dict.fromkeys((45, 46, 59), D.BATCH_LOST),
    },
    Step.TRANSACTION: {
        **OF_EVERYBODY,
        **ASKS_COORDINATOR,
        **dict.fromkeys((-1, 105), D.BATCH_LOST),
    },
    Step.PRODUCERS: {**OF_EVERYBODY, **ASKS_LEADER, -1: D.BATCH_LOST},
    Step.ADD_OFFSETS: {**OF_EVERYBODY, **ASKS_COORDINATOR, **IN_TRANSACTION},
    Step.MARK: {**OF_EVERYBODY, **ASKS_COORDINATOR, **IN_TRANSACTION, 3: D.AGAIN},
    Step.COMMIT: {0: D.GO_ON, 51: D.WAIT, **COORDINATOR, **ASKS_COORDINATOR},
    Step.ABORT: {
        **OF_EVERYBODY,
        **ASKS_COORDINATOR,
        **dict.fromkeys((47, 48, 49, 90), D.OVER),
    },
}
NOBODYS_CODES = (-2, 134, 150, 32_767)


def otherwise(step: Step) -> Decision:
    return D.LOOK if step is Step.COMMIT else D.STOP


@pytest.mark.parametrize("step", Step, ids=lambda step: step.name)
def test_every_code_has_its_decision_at_every_step(step: Step) -> None:
    decisions = {code.value: decide(step, code) for code in ErrorCode}

    wanted = {code.value: EXPECTED[step].get(code.value, otherwise(step)) for code in ErrorCode}
    assert decisions == wanted


@pytest.mark.parametrize("step", Step, ids=lambda step: step.name)
@pytest.mark.parametrize("code", NOBODYS_CODES)
def test_a_code_that_nobody_knows_is_final_and_at_the_commit_looked_up(
    step: Step, code: int
) -> None:
    assert decide(step, code) == otherwise(step)


def test_fenced_is_final_wherever_a_batch_is_under_way() -> None:
    """Errors 47 and 90: only an abort may shrug, and a commit may have happened before."""
    for step in set(Step) - {Step.COMMIT, Step.ABORT}:
        assert decide(step, 47) == decide(step, 90) == D.FENCED, step


def test_no_row_says_stop_or_repeats_what_holds_everywhere() -> None:
    """A row that changes nothing would be read as if it did."""
    for step, rows in OF_STEP.items():
        if step is not Step.COMMIT:
            for code, decision in rows.items():
                assert decision != D.STOP, (step, code)


def test_the_heaviest_code_of_an_answer_decides() -> None:
    codes = [ErrorCode.NONE, ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.PRODUCER_FENCED]

    assert heaviest(Step.ADD_PARTITIONS, codes) == ErrorCode.PRODUCER_FENCED
    assert heaviest(Step.ADD_PARTITIONS, []) == ErrorCode.NONE
    assert heaviest(Step.ADD_PARTITIONS, [0, 150]) == 150


def test_codes_have_names_for_people() -> None:
    assert (name_of_code(90), name_of_code(150)) == ("PRODUCER_FENCED", "error 150")


def test_the_sink_speaks_the_classic_protocol() -> None:
    """With newer versions a late task could join a transaction by merely writing."""
    highest = {
        spoken.request.__name__.removesuffix("Request"): spoken.version_max
        for spoken in SPOKEN.values()
    }

    assert highest["AddPartitionsToTxn"] == 3
    assert highest["Produce"] == 11
    assert highest["EndTxn"] == highest["AddOffsetsToTxn"] == highest["TxnOffsetCommit"] == 4
    for spoken in SPOKEN.values():
        assert spoken.version_min in spoken.request.versions
        assert spoken.version_max in spoken.request.versions
