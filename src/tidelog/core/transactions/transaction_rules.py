"""What a transaction coordinator refuses: pure functions over one transactional id.

They are case only when no markers are on their way; until then every caller waits.
"""

from __future__ import annotations

from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ProducerIdAndEpoch
from tidelog.core.model.limits import EPOCH_PER_TRANSACTION, PRODUCER_EPOCH_MAX
from tidelog.core.transactions.transaction_metadata import NO_EPOCH, TransactionMetadata
from tidelog.core.transactions.transaction_state import TransactionStatus

_S = TransactionStatus
_NONE = ErrorCode.NONE


def refuse_identity(
    metadata: TransactionMetadata | None, producer: ProducerIdAndEpoch
) -> ErrorCode:
    """Whether the caller is the producer that has the transactional id."""
    if metadata is None or metadata.producer_id != producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if metadata.producer_epoch != producer.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    return _NONE


def refuse_expected(metadata: TransactionMetadata, expected: ProducerIdAndEpoch) -> ErrorCode:
    """A producer that begins again must be the last one, or retry after its epochs ran out.

    While a transaction is open only its own producer may: its epoch shows that it is no retry.
    Kafka aborts the transaction before it refuses, so a fenced producer ends that of its successor.
    """
    is_own = expected == (metadata.producer_id, metadata.producer_epoch)
    if metadata.status is _S.ONGOING and not is_own:
        return ErrorCode.PRODUCER_FENCED
    is_retry_after_rotation = (
        expected.producer_id == metadata.previous_producer_id
        and expected.producer_epoch >= PRODUCER_EPOCH_MAX - 1
    )
    if metadata.producer_epoch == NO_EPOCH or expected.producer_id == metadata.producer_id:
        return _NONE
    return _NONE if is_retry_after_rotation else ErrorCode.PRODUCER_FENCED


def next_epochs(
    metadata: TransactionMetadata, expected: ProducerIdAndEpoch | None
) -> tuple[int, int] | ErrorCode:
    """Producer epoch and the one before it, for a producer that begins.

    A retry of a call that succeeded gets the same epoch again. Without an expected epoch there is
    no retry to recognise: the epoch before is forgotten, so that its owner stays fenced.
    """
    bumped = metadata.producer_epoch + 1
    if expected is None:
        return bumped, NO_EPOCH
    if metadata.producer_epoch in (NO_EPOCH, expected.producer_epoch):
        return bumped, metadata.producer_epoch
    if expected.producer_epoch == metadata.last_producer_epoch:
        return metadata.producer_epoch, metadata.last_producer_epoch
    return ErrorCode.PRODUCER_FENCED


class EndVerdict:
    """What an EndTxn comes to: an error, an earlier answer again, or a decision."""

    __slots__ = ("decides", "error", "is_empty")

    def __init__(self, error: ErrorCode = _NONE, *, decides: bool = False, is_empty: bool = False):
        self.error = error
        self.decides = decides
        self.is_empty = is_empty
        """An abort of a transaction that has no partition."""


_DECIDES = EndVerdict(decides=True)
_DECIDES_EMPTY = EndVerdict(decides=True, is_empty=True)
_REPEATS = EndVerdict()
_WRONG_STATE = EndVerdict(ErrorCode.INVALID_TXN_STATE)

_CLASSIC: dict[tuple[TransactionStatus, bool], EndVerdict] = {
    (_S.EMPTY, True): _WRONG_STATE,
    (_S.EMPTY, False): _WRONG_STATE,
    (_S.ONGOING, True): _DECIDES,
    (_S.ONGOING, False): _DECIDES,
    # Same producer epoch, so a repeated EndTxn cannot be told from one of the next transaction:
    # Kafka's known hole, closed by an epoch per transaction.
    (_S.COMPLETE_COMMIT, True): _REPEATS,
    (_S.COMPLETE_COMMIT, False): _WRONG_STATE,
    (_S.COMPLETE_ABORT, True): _WRONG_STATE,
    (_S.COMPLETE_ABORT, False): _REPEATS,
}
"""By state and commit."""

_RETRIED: dict[tuple[TransactionStatus, bool], EndVerdict] = {
    (_S.COMPLETE_COMMIT, True): _REPEATS,
    (_S.COMPLETE_COMMIT, False): _WRONG_STATE,
    (_S.COMPLETE_ABORT, True): _WRONG_STATE,
    (_S.COMPLETE_ABORT, False): _REPEATS,
}
"""With an epoch per transaction, for the epoch before: the answer was lost."""

_CURRENT: dict[tuple[TransactionStatus, bool], EndVerdict] = {
    (_S.EMPTY, True): _WRONG_STATE,
    (_S.EMPTY, False): _DECIDES_EMPTY,
    (_S.ONGOING, True): _DECIDES,
    (_S.ONGOING, False): _DECIDES,
    (_S.COMPLETE_COMMIT, True): _WRONG_STATE,
    (_S.COMPLETE_COMMIT, False): _DECIDES_EMPTY,
    (_S.COMPLETE_ABORT, True): _WRONG_STATE,
    (_S.COMPLETE_ABORT, False): _DECIDES_EMPTY,
}
"""With an epoch per transaction, for the present epoch."""


def judge_end(
    metadata: TransactionMetadata | None,
    producer: ProducerIdAndEpoch,
    *,
    is_commit: bool,
    client_version: int,
) -> EndVerdict:
    """Whether an EndTxn decides about the transaction."""
    if metadata is None:
        return EndVerdict(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    case = (metadata.status, is_commit)
    if client_version < EPOCH_PER_TRANSACTION:
        error = refuse_identity(metadata, producer)
        return _CLASSIC[case] if error is _NONE else EndVerdict(error)
    has_other_id = metadata.producer_id != producer.producer_id
    is_retry_after_rotation = (
        metadata.previous_producer_id == producer.producer_id
        and producer.producer_epoch == PRODUCER_EPOCH_MAX - 1
        and metadata.producer_epoch == 0
    )
    if has_other_id and not is_retry_after_rotation:
        return EndVerdict(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if is_retry_after_rotation or metadata.producer_epoch == producer.producer_epoch + 1:
        return _RETRIED.get(case, EndVerdict(ErrorCode.PRODUCER_FENCED))
    if metadata.producer_epoch != producer.producer_epoch:
        return EndVerdict(ErrorCode.PRODUCER_FENCED)
    return _CURRENT[case]
