"""Log directories of brokers that never were: replicas whose every byte a test decides."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tidelog.core.wire.records import NewRecord, build

START_MS = 1_767_225_600_000
TOPIC = "orders"


def batch(base_offset: int, *values: str, leader_epoch: int = 0, **more: int | bool) -> bytes:
    """Records `values` with the key `k`, each sent a millisecond after the one before it."""
    records = [
        NewRecord(value.encode(), key=b"k", timestamp_ms=START_MS + base_offset + number)
        for number, value in enumerate(values)
    ]
    given = {"base_offset": base_offset, "leader_epoch": leader_epoch, **more}
    return bytes(build(records, **given))  # type: ignore[arg-type]


class Disks:
    """A data directory as `tidelog up` leaves it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        (root / "cluster.json").write_text(json.dumps({"version": 1}))

    def write(
        self,
        node: int,
        *segments: Sequence[bytes],
        partition: int = 0,
        high_watermark: int | None = None,
        leader_epoch: int = 0,
        log_start: int = 0,
    ) -> Path:
        """Each segment is its batches; the first offset of the first one names the file."""
        data = self.root / f"node-{node}" / "data"
        directory = data / f"{TOPIC}-{partition}"
        directory.mkdir(parents=True)
        for batches in segments:
            base_offset = int.from_bytes(batches[0][:8], "big")
            (directory / f"{base_offset:020d}.log").write_bytes(b"".join(batches))
        (directory / "leader-epoch-checkpoint").write_text(f"0\n1\n{leader_epoch} 0\n")
        self._checkpoint(data / "log-start-offset-checkpoint", partition, log_start)
        if high_watermark is not None:
            self._checkpoint(data / "replication-offset-checkpoint", partition, high_watermark)
        return directory

    def _checkpoint(self, path: Path, partition: int, offset: int) -> None:
        """One line more than there was."""
        lines = path.read_text().splitlines()[2:] if path.exists() else []
        lines.append(f"{TOPIC} {partition} {offset}")
        path.write_text("".join(f"{line}\n" for line in ("0", str(len(lines)), *lines)))
