"""What every error code means at every step: a table, and one door into it.

Rows of a step come first, then the rows that hold everywhere. Whatever stands in neither, and
whatever code a later Kafka may invent, stops the sink: better a loud end than a guess. Only the
commit has no rows but its own, since there "failed" may be said only of what certainly failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum

from tidelog.client.sink.requests import SinkStep
from tidelog.core.model.errors import ErrorCode as E


class ErrorDecision(IntEnum):
    """The heavier one counts where an answer has several codes."""

    GO_ON = 0
    WAIT = 1
    """A transaction is just being finished: the same again, 20 ms later."""
    AGAIN = 2
    """The same again, after a pause."""
    REFRESH = 3
    """The leader moved: ask for metadata, then send the same again."""
    FIND_AGAIN = 4
    """The coordinator moved or is loading: look it up, then send the same again."""
    OVER = 5
    """There is nothing left to abort."""
    CHECK_MARKER = 6
    """Unknown whether it is committed: read the marker."""
    BATCH_LOST = 7
    """This transaction cannot be committed: abort it. The batch may be begun again."""
    FENCED = 8
    """Somebody has a newer producer epoch: final for this run."""
    STOP = 9
    """Another attempt would be refused as well."""


WAIT_MS = 20
RESENT = frozenset(
    {ErrorDecision.WAIT, ErrorDecision.AGAIN, ErrorDecision.REFRESH, ErrorDecision.FIND_AGAIN}
)

Rows = Mapping[int, ErrorDecision]


def _rows(decision: ErrorDecision, *codes: E) -> dict[int, ErrorDecision]:
    return dict.fromkeys(codes, decision)


EVERYWHERE: Rows = {
    **_rows(ErrorDecision.GO_ON, E.NONE),
    **_rows(ErrorDecision.WAIT, E.CONCURRENT_TRANSACTIONS, E.UNSTABLE_OFFSET_COMMIT),
    **_rows(
        ErrorDecision.FIND_AGAIN,
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.COORDINATOR_NOT_AVAILABLE,
        E.NOT_COORDINATOR,
    ),
    **_rows(
        ErrorDecision.REFRESH,
        E.LEADER_NOT_AVAILABLE,
        E.NOT_LEADER_OR_FOLLOWER,
        E.BROKER_NOT_AVAILABLE,
        E.REPLICA_NOT_AVAILABLE,
        E.KAFKA_STORAGE_ERROR,
        E.LISTENER_NOT_FOUND,
        E.FENCED_LEADER_EPOCH,
        E.UNKNOWN_LEADER_EPOCH,
        E.OFFSET_NOT_AVAILABLE,
    ),
    **_rows(
        ErrorDecision.AGAIN,
        E.REQUEST_TIMED_OUT,
        E.NETWORK_EXCEPTION,
        E.NOT_CONTROLLER,
        E.THROTTLING_QUOTA_EXCEEDED,
    ),
    **_rows(ErrorDecision.FENCED, E.INVALID_PRODUCER_EPOCH, E.PRODUCER_FENCED),
}

# A coordinator that does not answer may have moved.
_OF_COORDINATOR = _rows(ErrorDecision.FIND_AGAIN, E.REQUEST_TIMED_OUT, E.NETWORK_EXCEPTION)
_OF_LEADER = _rows(
    ErrorDecision.REFRESH,
    E.REQUEST_TIMED_OUT,
    E.NETWORK_EXCEPTION,
    E.UNKNOWN_TOPIC_OR_PARTITION,
)
# Codes by which a cluster says that this transaction is not what we believe.
_IN_TRANSACTION: Rows = {
    **_rows(
        ErrorDecision.BATCH_LOST,
        E.UNKNOWN_SERVER_ERROR,
        E.INVALID_TXN_STATE,
        E.TRANSACTION_ABORTABLE,
    ),
    **_rows(ErrorDecision.FENCED, E.INVALID_PRODUCER_ID_MAPPING),
}

OF_STEP: dict[SinkStep, Rows] = {
    SinkStep.VERSIONS: {},
    SinkStep.CONFIGS: {},
    # A topic that was just created is not known to every broker yet.
    SinkStep.TOPICS: _rows(ErrorDecision.AGAIN, E.LEADER_NOT_AVAILABLE),
    # The coordinators' own topics are created when first needed.
    SinkStep.FIND: _rows(
        ErrorDecision.AGAIN,
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.COORDINATOR_NOT_AVAILABLE,
        E.NOT_COORDINATOR,
        E.INVALID_REPLICATION_FACTOR,
    ),
    SinkStep.IDENTIFY: _OF_COORDINATOR,
    # A group that nobody knows has no marker.
    SinkStep.READ_MARKER: {**_OF_COORDINATOR, **_rows(ErrorDecision.GO_ON, E.GROUP_ID_NOT_FOUND)},
    SinkStep.NEXT_EPOCH: _OF_COORDINATOR,
    SinkStep.END_OFFSETS: _OF_LEADER,
    SinkStep.ADD_PARTITIONS: {
        **_OF_COORDINATOR,
        **_IN_TRANSACTION,
        **_rows(ErrorDecision.AGAIN, E.UNKNOWN_TOPIC_OR_PARTITION, E.OPERATION_NOT_ATTEMPTED),
    },
    SinkStep.PRODUCE: {
        **_OF_LEADER,
        **_IN_TRANSACTION,
        # Kafka says so, too, while it cannot verify that the partition is in the transaction.
        **_rows(
            ErrorDecision.AGAIN,
            E.CORRUPT_MESSAGE,
            E.NOT_ENOUGH_REPLICAS,
            E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ),
        # Somebody else wrote under our name, or the log forgot us.
        **_rows(
            ErrorDecision.BATCH_LOST,
            E.OUT_OF_ORDER_SEQUENCE_NUMBER,
            E.DUPLICATE_SEQUENCE_NUMBER,
            E.UNKNOWN_PRODUCER_ID,
        ),
    },
    SinkStep.TRANSACTION: {
        **_OF_COORDINATOR,
        **_rows(ErrorDecision.BATCH_LOST, E.UNKNOWN_SERVER_ERROR, E.TRANSACTIONAL_ID_NOT_FOUND),
    },
    SinkStep.PRODUCERS: {**_OF_LEADER, **_rows(ErrorDecision.BATCH_LOST, E.UNKNOWN_SERVER_ERROR)},
    SinkStep.ADD_OFFSETS: {**_OF_COORDINATOR, **_IN_TRANSACTION},
    SinkStep.MARK: {
        **_OF_COORDINATOR,
        **_IN_TRANSACTION,
        **_rows(ErrorDecision.AGAIN, E.UNKNOWN_TOPIC_OR_PARTITION),
    },
    # The commit point: whatever is not a clear yes or "later" is looked up in the marker.
    SinkStep.COMMIT: {
        **_rows(ErrorDecision.GO_ON, E.NONE),
        **_rows(ErrorDecision.WAIT, E.CONCURRENT_TRANSACTIONS),
        **_rows(
            ErrorDecision.FIND_AGAIN,
            E.COORDINATOR_LOAD_IN_PROGRESS,
            E.COORDINATOR_NOT_AVAILABLE,
            E.NOT_COORDINATOR,
        ),
        **_OF_COORDINATOR,
    },
    # A transaction that is decided, or not ours any more, needs no abort.
    SinkStep.ABORT: {
        **_OF_COORDINATOR,
        **_rows(
            ErrorDecision.OVER,
            E.INVALID_TXN_STATE,
            E.INVALID_PRODUCER_EPOCH,
            E.PRODUCER_FENCED,
            E.INVALID_PRODUCER_ID_MAPPING,
        ),
    },
}
assert set(OF_STEP) == set(SinkStep)


def decide(step: SinkStep, code: int) -> ErrorDecision:
    """What this code means at this step."""
    known = OF_STEP[step].get(code)
    if known is not None:
        return known
    if step is SinkStep.COMMIT:
        return ErrorDecision.CHECK_MARKER
    return EVERYWHERE.get(code, ErrorDecision.STOP)


def heaviest(step: SinkStep, codes: Iterable[int]) -> int:
    """The code that decides where an answer has several."""
    return max(codes, key=lambda code: decide(step, code), default=E.NONE)


def code_name(code: int) -> str:
    """For people."""
    try:
        return E(code).name
    except ValueError:
        return f"error {code}"
