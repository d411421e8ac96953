"""Publishes one batch of a table: written to a staging directory, synced, and renamed.

The rename is the only commit. A run that dies

1. before it leaves files below `_staging` that no reader reads and that the next run removes;
2. after it and before Spark has committed the batch gets the batch again, and skips it by its row
   of the ledger, which appeared with the same rename.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidelog.spark.pipeline.table.ledger import (
    LEDGER_FILE,
    STAGING,
    BatchDecision,
    BatchOffer,
    LedgerRow,
    TableRefused,
    batch_of,
    decide,
    directory_of,
    row_of,
)
from tidelog.spark.pipeline.table.stores import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class TableBatch:
    """A batch in the table, published now or before."""

    row: LedgerRow
    is_new: bool


class Table:
    """One table as one run writes it."""

    def __init__(
        self,
        path: str,
        *,
        store: Store,
        run_id: str,
        count: Callable[[Sequence[str]], int],
    ) -> None:
        """`count` returns the number of rows of files that have been written."""
        self._path = path
        self._store = store
        self._run_id = run_id
        self._count = count
        self._latest: int | None = None
        self._is_known = False

    def open(self) -> None:
        """Remove what earlier runs began and did not finish."""
        self._store.make(self._path)
        self._store.remove(f"{self._path}/{STAGING}")

    @property
    def latest_batch_id(self) -> int | None:
        """The latest batch that was published; read once, since no other run writes."""
        if not self._is_known:
            found = [batch_of(name) for name in self._store.names(self._path)]
            self._latest = max((each for each in found if each is not None), default=None)
            self._is_known = True
        return self._latest

    def publish(
        self, offer: BatchOffer, *, write: Callable[[str], None], before_commit: Callable[[], None]
    ) -> TableBatch:
        """`write` makes a directory with the batch's files; `before_commit` runs just before the
        rename, and may raise."""
        directory = f"{self._path}/{directory_of(offer.batch_id)}"
        text = self._store.read(f"{directory}/{LEDGER_FILE}")
        row = None if text is None else row_of(text, f"{directory}/{LEDGER_FILE}")
        latest = self.latest_batch_id
        if decide(offer, published=row, latest_batch_id=latest, table=self._path) is (
            BatchDecision.ALREADY_PUBLISHED
        ):
            assert row is not None
            return TableBatch(row=row, is_new=False)
        return self._publish(offer, directory, write, before_commit, is_first=latest is None)

    def _publish(
        self,
        offer: BatchOffer,
        directory: str,
        write: Callable[[str], None],
        before_commit: Callable[[], None],
        *,
        is_first: bool,
    ) -> TableBatch:
        staged = f"{self._path}/{STAGING}/{self._run_id}-{offer.batch_id}"
        self._store.remove(staged)
        write(staged)
        files = self._store.files(staged)
        rows = self._count(files)
        if rows == 0 and not is_first:
            # Nothing to read: only the row of the ledger stays. The first batch keeps its empty
            # file, so that the table has columns from the beginning.
            for path in files:
                self._store.remove(path)
            files = []
        row = LedgerRow(offer=offer, run_id=self._run_id, rows=rows, files=len(files))
        self._store.make(staged)
        self._store.write(f"{staged}/{LEDGER_FILE}", row.as_text())
        self._store.sync(staged)
        before_commit()
        try:
            self._store.publish(staged, directory)
        except FileExistsError:
            raise TableRefused(
                f"{directory} was published meanwhile: another run writes to this table; stop one"
                " of them"
            ) from None
        self._latest = offer.batch_id
        return TableBatch(row=row, is_new=True)
