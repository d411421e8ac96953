"""The table of decisions: every error code at every step, and codes that nobody knows."""

from __future__ import annotations

import pytest

from tidelog.client.sink.decisions import OF_STEP, ErrorDecision, code_name, decide, heaviest
from tidelog.client.sink.requests import STEP_APIS, SinkStep
from tidelog.core.model.errors import ErrorCode

D = ErrorDecision
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
EXPECTED: dict[SinkStep, dict[int, ErrorDecision]] = {
    SinkStep.VERSIONS: OF_EVERYBODY,
    SinkStep.CONFIGS: OF_EVERYBODY,
    SinkStep.TOPICS: {**OF_EVERYBODY, 5: D.AGAIN},
    SinkStep.FIND: {**OF_EVERYBODY, **dict.fromkeys((14, 15, 16, 38), D.AGAIN)},
    SinkStep.IDENTIFY: {**OF_EVERYBODY, **ASKS_COORDINATOR},
    SinkStep.READ_MARKER: {**OF_EVERYBODY, **ASKS_COORDINATOR, 69: D.GO_ON},
    SinkStep.NEXT_EPOCH: {**OF_EVERYBODY, **ASKS_COORDINATOR},
    SinkStep.END_OFFSETS: {**OF_EVERYBODY, **ASKS_LEADER},
    SinkStep.ADD_PARTITIONS: {
        **OF_EVERYBODY,
        **ASKS_COORDINATOR,
        **IN_TRANSACTION,
        3: D.AGAIN,
        55: D.AGAIN,
    },
    SinkStep.PRODUCE: {
        **OF_EVERYBODY,
        **ASKS_LEADER,
        **IN_TRANSACTION,
        **dict.fromkeys((2, 19, 20), D.AGAIN),
        **dict.fromkeys((45, 46, 59), D.BATCH_LOST),
    },
    SinkStep.TRANSACTION: {
        **OF_EVERYBODY,
        **ASKS_COORDINATOR,
        **dict.fromkeys((-1, 105), D.BATCH_LOST),
    },
    SinkStep.PRODUCERS: {**OF_EVERYBODY, **ASKS_LEADER, -1: D.BATCH_LOST},
    SinkStep.ADD_OFFSETS: {**OF_EVERYBODY, **ASKS_COORDINATOR, **IN_TRANSACTION},
    SinkStep.MARK: {**OF_EVERYBODY, **ASKS_COORDINATOR, **IN_TRANSACTION, 3: D.AGAIN},
    SinkStep.COMMIT: {0: D.GO_ON, 51: D.WAIT, **COORDINATOR, **ASKS_COORDINATOR},
    SinkStep.ABORT: {
        **OF_EVERYBODY,
        **ASKS_COORDINATOR,
        **dict.fromkeys((47, 48, 49, 90), D.OVER),
    },
}
NOBODYS_CODES = (-2, 134, 150, 32_767)


def otherwise(step: SinkStep) -> ErrorDecision:
    return D.CHECK_MARKER if step is SinkStep.COMMIT else D.STOP


@pytest.mark.parametrize("step", SinkStep, ids=lambda step: step.name)
def test_every_code_has_its_decision_at_every_step(step: SinkStep) -> None:
    decisions = {code.value: decide(step, code) for code in ErrorCode}

    wanted = {code.value: EXPECTED[step].get(code.value, otherwise(step)) for code in ErrorCode}
    assert decisions == wanted


@pytest.mark.parametrize("step", SinkStep, ids=lambda step: step.name)
@pytest.mark.parametrize("code", NOBODYS_CODES)
def test_a_code_that_nobody_knows_is_final_and_at_the_commit_looked_up(
    step: SinkStep, code: int
) -> None:
    assert decide(step, code) == otherwise(step)


def test_fenced_is_final_wherever_a_batch_is_under_way() -> None:
    """Errors 47 and 90: only an abort may shrug, and a commit may have happened before."""
    for step in set(SinkStep) - {SinkStep.COMMIT, SinkStep.ABORT}:
        assert decide(step, 47) == decide(step, 90) == D.FENCED, step


def test_no_row_says_stop_or_repeats_what_holds_everywhere() -> None:
    """A row that changes nothing would be read as if it did."""
    for step, rows in OF_STEP.items():
        if step is not SinkStep.COMMIT:
            for code, decision in rows.items():
                assert decision != D.STOP, (step, code)


def test_the_heaviest_code_of_an_answer_decides() -> None:
    codes = [ErrorCode.NONE, ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.PRODUCER_FENCED]

    assert heaviest(SinkStep.ADD_PARTITIONS, codes) == ErrorCode.PRODUCER_FENCED
    assert heaviest(SinkStep.ADD_PARTITIONS, []) == ErrorCode.NONE
    assert heaviest(SinkStep.ADD_PARTITIONS, [0, 150]) == 150


def test_codes_have_names_for_people() -> None:
    assert (code_name(90), code_name(150)) == ("PRODUCER_FENCED", "error 150")


def test_the_sink_speaks_the_classic_protocol() -> None:
    """With newer versions a late task could join a transaction by merely writing."""
    highest = {
        spoken.request.__name__.removesuffix("Request"): spoken.version_max
        for spoken in STEP_APIS.values()
    }

    assert highest["AddPartitionsToTxn"] == 3
    assert highest["Produce"] == 11
    assert highest["EndTxn"] == highest["AddOffsetsToTxn"] == highest["TxnOffsetCommit"] == 4
    for spoken in STEP_APIS.values():
        assert spoken.version_min in spoken.request.versions
        assert spoken.version_max in spoken.request.versions
