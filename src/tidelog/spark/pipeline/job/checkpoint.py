"""The checkpoint's directory: a directory for each sink, a lock, and the plan of the last run."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict

from tidelog.core.model.exceptions import TidelogError
from tidelog.spark.pipeline.file.plan import PipelinePlan
from tidelog.spark.pipeline.table.ledger import BatchOffer
from tidelog.spark.pipeline.table.stores import Store

PLAN_FILE = "plan.json"
LOCK_FILE = "lock"
_OFFSETS_METADATA_LINE = 1
"""Of an offsets file: the time of the batch and settings, which are not what was read."""


class CheckpointUnusable(TidelogError):
    """The checkpoint is locked by another run, or damaged; one line."""


def query_checkpoint(checkpoint: str, sink: str) -> str:
    """Where Spark keeps the state of a sink's query."""
    return f"{checkpoint}/sinks/{sink}"


def offer_of(store: Store, checkpoint: str, batch_id: int) -> BatchOffer:
    """What Spark recorded of a batch before it began: it is the same when the batch is retried."""
    metadata = store.read(f"{checkpoint}/metadata")
    offsets = store.read(offsets_path(checkpoint, batch_id))
    if metadata is None or offsets is None:
        raise CheckpointUnusable(
            f"{checkpoint} has no offsets of batch {batch_id}: it was removed while in use"
        )
    lines = offsets.splitlines()
    sources = "\n".join(lines[:_OFFSETS_METADATA_LINE] + lines[_OFFSETS_METADATA_LINE + 1 :])
    return BatchOffer(
        query_id=json.loads(metadata)["id"],
        batch_id=batch_id,
        fingerprint=hashlib.sha256(sources.encode()).hexdigest(),
    )


def offsets_path(checkpoint: str, batch_id: int) -> str:
    return f"{checkpoint}/offsets/{batch_id}"


@contextmanager
def lock_checkpoint(checkpoint: str) -> Iterator[None]:
    """Refuse a second run at the same time; only a local directory can be locked.

    The lock ends with the process, however it ends.
    """
    if not checkpoint.startswith("/"):
        yield
        return
    os.makedirs(checkpoint, exist_ok=True)
    with open(f"{checkpoint}/{LOCK_FILE}", "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise CheckpointUnusable(
                f"{checkpoint} is in use by another run of this pipeline (process {holder})"
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def changes_since(store: Store, checkpoint: str, plan: PipelinePlan) -> list[str]:
    """The keys whose values changed since the checkpoint was last used."""
    now = plan_values(plan)
    saved = store.read(f"{checkpoint}/{PLAN_FILE}")
    before = now if saved is None else json.loads(saved)
    return sorted(key for key in {*before, *now} if before.get(key) != now.get(key))


def save_plan(store: Store, checkpoint: str, plan: PipelinePlan) -> None:
    """For the next run to compare with."""
    store.make(checkpoint)
    store.write(f"{checkpoint}/{PLAN_FILE}", json.dumps(plan_values(plan), indent=1) + "\n")


def plan_values(plan: PipelinePlan) -> dict[str, str]:
    """The values that determine rows, by key; not where it runs."""
    parts: dict[str, object] = {
        **{f"sources.{each.name}": asdict(each) for each in plan.sources},
        **{f"sinks.{each.name}": asdict(each) for each in plan.sinks},
    }
    for step in plan.steps:
        function = None if step.function is None else "a function"
        parts[f"steps.{step.name}"] = {**asdict(step), "function": function}
    if plan.dead_letters is not None:
        parts["dead_letters"] = asdict(plan.dead_letters)
    return {
        f"{name}.{key}": json.dumps(value, default=str, sort_keys=True)
        for name, part in parts.items()
        for key, value in _items(part)
        if value not in (None, (), {}) and key not in ("bootstrap", "options")
    }


def _items(part: object) -> Iterator[tuple[str, object]]:
    assert isinstance(part, Mapping)
    yield from part.items()
