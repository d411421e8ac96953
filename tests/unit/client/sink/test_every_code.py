"""Every error code at every step, given to the machines themselves: they do what the table says.

Whatever happens, what a reader sees afterwards is all of the batch or nothing of it, and a run that
may go on publishes it then.
"""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import pytest

from tests.unit.client import fake_answers
from tests.unit.client.fake_cluster import FakeCluster
from tests.unit.client.sink.stage import ROWS, Run, Stage
from tidelog.client.sink.decisions import RESENT, ErrorDecision, decide
from tidelog.client.sink.errors import SinkError
from tidelog.client.sink.requests import STEP_APIS, SinkStep
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.schema import Message, Struct

S = TypeVar("S", bound=Struct)
CODES = [code for code in ErrorCode if code != ErrorCode.NONE]
AT_START = (SinkStep.CONFIGS, SinkStep.FIND, SinkStep.IDENTIFY)


class Injected:
    """Answers the first request of a step with this code, and does not carry it out."""

    def __init__(self, stage: Stage, step: SinkStep, code: int) -> None:
        self._stage = stage
        self._step = step
        self._code = code
        self.asked = 0

    def __call__(self, broker_id: int, request: Any) -> Message | None:
        if not isinstance(request, STEP_APIS[self._step].request) or not self._is_of_step(request):
            return None
        self.asked += 1
        if self.asked > 1:
            return None
        answer = shape(self._stage.cluster, broker_id, request)
        return with_code(answer, self._code, STEP_APIS[self._step].version_max)

    def _is_of_step(self, request: Any) -> bool:
        match self._step:
            case SinkStep.IDENTIFY:
                return bool(request.producer_id == -1)
            case SinkStep.NEXT_EPOCH:
                return bool(request.producer_id != -1)
            case SinkStep.COMMIT:
                return bool(request.committed)
            case SinkStep.ABORT:
                return not request.committed
            case SinkStep.TOPICS:
                return bool(request.topics)
        return True


def shape(cluster: FakeCluster, broker_id: int, request: Any) -> Message:
    """What the answer would be, from a copy of the world that nobody looks at again."""
    rules = [each for each in cluster.rules if not isinstance(each, Injected)]
    aside = FakeCluster(brokers=3)
    aside.topics, aside.partitions = cluster.topics, copy.deepcopy(cluster.partitions)
    for rule in rules:
        coordinator = copy.copy(rule.__self__)  # type: ignore[attr-defined]
        coordinator.cluster = aside
        coordinator.partitions = set(coordinator.partitions)
        answer = coordinator.answer(broker_id, request)
        if answer is not None:
            assert isinstance(answer, Message)
            return answer
    answer = fake_answers.answer(aside, aside.brokers[broker_id], request)
    assert isinstance(answer, Message)
    return answer


def with_code(answer: S, code: int, version: int) -> S:
    """The same answer with this code wherever the version has one."""
    for field in type(answer).schema:
        value = getattr(answer, field.name)
        if field.name in ("error_code", "partition_error_code"):
            if field.exists_in(version):
                setattr(answer, field.name, code)
        elif isinstance(value, list):
            for each in value:
                if isinstance(each, Struct):
                    with_code(each, code, version)
    return answer


def publish(run: Run, *, is_aborting: bool) -> None:
    if is_aborting:
        run.write(run.ticket(0), {0: ["lost"]})
        run.lead(run.driver.abort("a task failed"))
    try:
        run.publish(0, ROWS)
    except SinkError as error:
        if not error.is_final:
            run.lead(run.driver.give_up(error, now_ms=run.host.now_ms))
        raise


STEPS = [step for step in SinkStep if step is not SinkStep.VERSIONS]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_the_machines_do_what_the_table_says(step: SinkStep) -> None:
    """One code for each decision; all codes are tried in the long run."""
    chosen = {decide(step, code): code for code in CODES}

    assert len(chosen) >= 3
    for code in chosen.values():
        inject(step, code)


@pytest.mark.long
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_the_machines_do_what_the_table_says_of_every_code(step: SinkStep) -> None:
    for code in CODES:
        inject(step, code)


def inject(step: SinkStep, code: int) -> None:
    stage = Stage()
    run = stage.run()
    injected = Injected(stage, step, code)
    if step not in AT_START:
        run.take_over()
    stage.cluster.rules.insert(0, injected)
    error: SinkError | None = None
    try:
        if step in AT_START:
            run.take_over()
        publish(run, is_aborting=step is SinkStep.ABORT)
    except SinkError as raised:
        error = raised

    check(stage, run, step, code, injected, error)


def check(
    stage: Stage, run: Run, step: SinkStep, code: int, injected: Injected, error: SinkError | None
) -> None:
    decision = decide(step, code)
    case = (step, code, decision, error)
    assert injected.asked >= 1, case
    assert stage.committed() in ([], ["a", "b", "c", "d"]), case
    if decision in RESENT or decision in (ErrorDecision.GO_ON, ErrorDecision.OVER):
        assert error is None, case
        assert injected.asked >= 2 or decision not in RESENT, case
    elif step is SinkStep.NEXT_EPOCH and decision is ErrorDecision.FENCED:
        assert error is None, "contested, and the marker said that the sink is ours"
    elif step is SinkStep.ABORT:
        assert error is None, "an abort that was refused is made up for by the next begin"
    elif step is SinkStep.TOPICS and code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        assert error is None, "it may just have been created"
    elif decision is ErrorDecision.CHECK_MARKER:
        assert error is not None and stage.committed() == [], case
        assert error.is_final == (code in (47, 49, 90)), case
    else:
        assert error is not None, case
        assert error.is_final == (decision is not ErrorDecision.BATCH_LOST), case
    if error is None:
        assert stage.committed() == ["a", "b", "c", "d"], case
    elif not error.is_final:
        assert run.publish(0, ROWS), case
        assert stage.committed() == ["a", "b", "c", "d"], case
