"""Which batches a table has, recorded in the table itself: a row of the ledger is stored beside the
data of its batch and appears with it in one rename.

    TABLE/batch_id=17/part-0….parquet     the rows of batch 17
    TABLE/batch_id=17/_tidelog.json       its row of the ledger; readers skip names with `_`
    TABLE/_staging/…                      what is being written, or was when a run died
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tidelog.core.model.exceptions import TidelogError

FORMAT_VERSION = 1
STAGING = "_staging"
LEDGER_FILE = "_tidelog.json"
_DIRECTORY = re.compile(r"batch_id=(\d+)")


class BatchDecision(Enum):
    """What to do with a batch that Spark offers."""

    PUBLISH = "publish"
    ALREADY_PUBLISHED = "already published"


class TableRefused(TidelogError):
    """A batch that does not fit the table: neither the next one nor a retry. One line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOffer:
    """A batch as Spark offers it: its query, its number, and a hash of what it is read from."""

    query_id: str
    batch_id: int
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """What was published."""

    offer: BatchOffer
    run_id: str
    rows: int
    files: int

    def as_text(self) -> str:
        """The file's content."""
        fields = {
            "tidelog_table": FORMAT_VERSION,
            "query_id": self.offer.query_id,
            "batch_id": self.offer.batch_id,
            "source_offsets_sha256": self.offer.fingerprint,
            "run_id": self.run_id,
            "rows": self.rows,
            "files": self.files,
        }
        return json.dumps(fields) + "\n"


def row_of(text: str, where: str) -> LedgerRow:
    """TableRefused if the file is not a row of the ledger."""
    try:
        fields: dict[str, Any] = json.loads(text)
        version = fields["tidelog_table"]
        if version != FORMAT_VERSION:
            raise TableRefused(f"{where} has format {version}; this Tidelog knows {FORMAT_VERSION}")
        offer = BatchOffer(
            query_id=fields["query_id"],
            batch_id=fields["batch_id"],
            fingerprint=fields["source_offsets_sha256"],
        )
        return LedgerRow(
            offer=offer, run_id=fields["run_id"], rows=fields["rows"], files=fields["files"]
        )
    except (ValueError, KeyError, TypeError) as error:
        raise TableRefused(f"{where} is not the ledger of a table: {error!r}") from None


def directory_of(batch_id: int) -> str:
    """The name under which a batch is published."""
    return f"batch_id={batch_id}"


def batch_of(directory: str) -> int | None:
    """The batch of a directory's name; None for anything else."""
    found = _DIRECTORY.fullmatch(directory)
    return None if found is None else int(found[1])


def decide(
    offer: BatchOffer, *, published: LedgerRow | None, latest_batch_id: int | None, table: str
) -> BatchDecision:
    """`published` is the table's row for the same number, if there is one.

    A deleted or a foreign checkpoint begins again at batch 0, one that was rolled back offers old
    numbers with new rows: neither may be mistaken for a retry of the same batch.
    """
    if published is not None:
        if published.offer == offer:
            return BatchDecision.ALREADY_PUBLISHED
        theirs, ours = published.offer, offer
        what = "another query" if theirs.query_id != ours.query_id else "other source offsets"
        raise TableRefused(
            f"{table} has batch {ours.batch_id} of {what}: the checkpoint is not the one that this"
            " table was written with; give the pipeline its own table, or its old checkpoint"
        )
    expected = 0 if latest_batch_id is None else latest_batch_id + 1
    if offer.batch_id != expected:
        has = "no batch" if latest_batch_id is None else f"batches up to {latest_batch_id}"
        raise TableRefused(
            f"{table} has {has}, but the checkpoint offers batch {offer.batch_id}: rows would be"
            " missing or doubled; restore what was removed, or remove both and start over"
        )
    return BatchDecision.PUBLISH
