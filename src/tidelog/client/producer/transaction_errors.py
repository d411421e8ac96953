"""What every error code means at every step of a transaction: a table, and one door into it.

The rows of a step come first, then those that hold everywhere, then the step's own default. They
are those of Kafka's producer. A difference: an abort that is refused is fatal in any case, since
another one would be refused as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, IntEnum
from typing import Final

from tidelog.client.producer.transaction_outcome import FailureKind, TransactionFailed
from tidelog.core.model.errors import RETRIABLE
from tidelog.core.model.errors import ErrorCode as E
from tidelog.core.model.exceptions import TidelogError

TRANSACTION_ABORTED = "TRANSACTION_ABORTED"
"""An error of this side: the transaction was aborted before a record or an offset had left."""


class TransactionStep(Enum):
    """A step of the protocol; one API may serve several."""

    FIND_COORDINATOR = "find the transaction coordinator"
    FIND_GROUP_COORDINATOR = "find the group coordinator"
    INIT_PRODUCER_ID = "get a producer id and epoch"
    ADD_PARTITIONS = "add partitions to the transaction"
    ADD_OFFSETS = "add the offsets of a group to the transaction"
    COMMIT_OFFSETS = "commit offsets in the transaction"
    PRODUCE = "write records"
    COMMIT = "commit the transaction"
    ABORT = "abort the transaction"


class StepDecision(IntEnum):
    """What to do about an error code. The heavier one counts where an answer has several."""

    DONE = 0
    RETRY = 1
    """The same again, after a pause."""
    RETRY_SOON = 2
    """The last transaction is still being completed: the same again after a short pause."""
    FIND_COORDINATOR = 3
    """The coordinator moved: look it up, then send the same again."""
    REINITIALIZE = 4
    """The program may call `init_transactions` again."""
    ABORT = 5
    """This transaction cannot be committed."""
    ABORT_AND_BUMP = 6
    """The same, and the sequence numbers are in doubt: the next producer epoch is needed."""
    FATAL = 7
    """This producer is fenced, or would be refused for ever."""


Rows = Mapping[E, StepDecision]


def _rows(decision: StepDecision, *codes: E) -> dict[E, StepDecision]:
    return dict.fromkeys(codes, decision)


EVERYWHERE: Final[Rows] = {
    **_rows(StepDecision.DONE, E.NONE),
    **_rows(StepDecision.RETRY, *RETRIABLE),
    **_rows(StepDecision.FIND_COORDINATOR, E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE),
    **_rows(StepDecision.ABORT, E.TRANSACTION_ABORTABLE),
    **_rows(
        StepDecision.FATAL,
        E.PRODUCER_FENCED,
        E.INVALID_PRODUCER_EPOCH,
        E.INVALID_PRODUCER_ID_MAPPING,
        E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        E.UNSUPPORTED_VERSION,
    ),
}
_BUMP = _rows(StepDecision.ABORT_AND_BUMP, E.UNKNOWN_PRODUCER_ID)

OF_STEP: Final[dict[TransactionStep, Rows]] = {
    TransactionStep.FIND_COORDINATOR: {},
    TransactionStep.FIND_GROUP_COORDINATOR: _rows(StepDecision.ABORT, E.GROUP_AUTHORIZATION_FAILED),
    TransactionStep.INIT_PRODUCER_ID: _rows(
        StepDecision.REINITIALIZE,
        E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        E.CLUSTER_AUTHORIZATION_FAILED,
        E.TRANSACTION_ABORTABLE,
    ),
    TransactionStep.ADD_PARTITIONS: {
        **_BUMP,
        **_rows(StepDecision.RETRY_SOON, E.CONCURRENT_TRANSACTIONS),
        **_rows(StepDecision.FATAL, E.INVALID_TXN_STATE),
    },
    TransactionStep.ADD_OFFSETS: {
        **_BUMP,
        **_rows(StepDecision.RETRY_SOON, E.CONCURRENT_TRANSACTIONS),
        **_rows(StepDecision.ABORT, E.GROUP_AUTHORIZATION_FAILED),
    },
    TransactionStep.COMMIT_OFFSETS: {
        **_rows(StepDecision.FIND_COORDINATOR, E.REQUEST_TIMED_OUT),
        # The member was fenced from its group: somebody else owns the partitions.
        **_rows(
            StepDecision.ABORT,
            E.GROUP_AUTHORIZATION_FAILED,
            E.FENCED_INSTANCE_ID,
            E.UNKNOWN_MEMBER_ID,
            E.ILLEGAL_GENERATION,
            E.STALE_MEMBER_EPOCH,
        ),
    },
    # A leader may know an old producer epoch because the transaction timed out: whether the
    # producer is fenced is for the coordinator to say, when it is asked to abort.
    TransactionStep.PRODUCE: {
        **_rows(StepDecision.ABORT_AND_BUMP, *RETRIABLE, E.INVALID_PRODUCER_EPOCH),
        **_rows(StepDecision.ABORT_AND_BUMP, E.TRANSACTION_ABORTABLE),
        **_rows(StepDecision.FATAL, E.CLUSTER_AUTHORIZATION_FAILED),
    },
    TransactionStep.COMMIT: _BUMP,
    TransactionStep.ABORT: _rows(StepDecision.FATAL, E.TRANSACTION_ABORTABLE),
}
assert set(OF_STEP) == set(TransactionStep)

OTHERWISE: Final[dict[TransactionStep, StepDecision]] = {
    TransactionStep.ADD_PARTITIONS: StepDecision.ABORT,
    TransactionStep.PRODUCE: StepDecision.ABORT_AND_BUMP,
}
"""What an unforeseen code means; elsewhere it is fatal."""

NOT_DECIDED: Final = frozenset(
    {
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.CONCURRENT_TRANSACTIONS,
        E.PRODUCER_FENCED,
        E.INVALID_PRODUCER_EPOCH,
        E.INVALID_PRODUCER_ID_MAPPING,
        E.INVALID_TXN_STATE,
        E.UNKNOWN_PRODUCER_ID,
        E.TRANSACTION_ABORTABLE,
        E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        E.UNSUPPORTED_VERSION,
    }
)
"""A commit that was refused in this way was not written by this request. All other codes may come
after the coordinator's append, as NOT_COORDINATOR of one that is deposed while it waits."""


def decide(step: TransactionStep, code: E) -> StepDecision:
    """What this code means at this step."""
    known = OF_STEP[step].get(code, EVERYWHERE.get(code))
    return OTHERWISE.get(step, StepDecision.FATAL) if known is None else known


def heaviest(step: TransactionStep, codes: Iterable[E]) -> E:
    """The code that decides where an answer has several."""
    return max(codes, key=lambda code: (decide(step, code), code), default=E.NONE)


class TransactionError(TidelogError):
    """A transaction cannot go on in the way that was wanted."""

    def __init__(self, failure: TransactionFailed) -> None:
        what = f"{failure.error}: {failure.reason}"
        doubt = "; whether the transaction is committed is unknown" if failure.is_unknown else ""
        super().__init__(f"{what}{doubt} ({failure.kind.value})")
        self.failure = failure


class TransactionAbortable(TransactionError):
    """Abort the transaction; then another may begin."""


class TransactionFatal(TransactionError):
    """This producer writes nothing any more."""


class ProducerFenced(TransactionFatal):
    """Another producer has the same transactional id, or the transaction took too long."""


class IllegalTransactionState(TidelogError):
    """Calls in the wrong order; the message says what would be right."""


_FENCED = frozenset(
    {E.PRODUCER_FENCED.name, E.INVALID_PRODUCER_EPOCH.name, E.INVALID_PRODUCER_ID_MAPPING.name}
)


def exception_for(failure: TransactionFailed) -> TransactionError:
    if failure.kind is FailureKind.ABORTABLE:
        return TransactionAbortable(failure)
    if failure.kind is FailureKind.REINITIALIZE:
        return TransactionError(failure)
    return (ProducerFenced if failure.error in _FENCED else TransactionFatal)(failure)
