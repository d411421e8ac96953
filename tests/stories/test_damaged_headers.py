"""A bit of a batch's header decays on the leader: no follower copies it, no reader is misled."""

from __future__ import annotations

from contextlib import suppress

import pytest

from tidelog.core.formats import file_names
from tidelog.core.wire.record_batch import batches
from tidelog.lab.engines.simulator import SimulatorEngine
from tidelog.lab.evidence_queries import Unanswered
from tidelog.lab.lab import Lab
from tidelog.lab.report import Report
from tidelog.lab.stories import x_disks


@pytest.mark.scenario("X-33")
@pytest.mark.parametrize(
    ("field", "byte", "bit"),
    [
        ("base offset", 7, 6),
        ("batch length", 10, 1),
        ("leader epoch", 15, 1),
        ("magic", 16, 0),
        ("checksum", 18, 4),
        ("last offset delta", 26, 3),
        ("producer id", 50, 2),
        ("count of records", 60, 2),
    ],
)
def test_a_flipped_bit_in_a_leaders_batch_header_is_not_copied(
    field: str, byte: int, bit: int
) -> None:
    """A follower on a new disk never holds anything but what the sound replica holds, and is never
    in sync with less; led by the sound one, everybody has everything."""
    engine = SimulatorEngine(seed=1)
    lab = Lab(engine, Report(story="header", engine="simulator"))
    x_disks._old_segments(lab)
    sound = lab.log_bytes(2)
    lab.kill(3)
    lab.engine.wipe(3)
    _flip_header_bit(engine, byte, bit)
    lab.start(3)
    lab.until_isr(1, 2)
    lab.until("3 copies", lambda: bool(lab.log_bytes(3)))
    lab.pass_ms(5_000)

    copied = lab.log_bytes(3)
    assert sound.startswith(copied), f"the damaged {field} was copied"
    assert (lab.desc().isr == (1, 2, 3)) == (copied == sound)
    for offset in range(len(x_disks.NAMES)):
        with suppress(Unanswered):
            given = lab.read(1, offset=offset)
            assert given == x_disks.NAMES[offset : offset + len(given)], "another record is given"
    lab.stop(1)
    lab.engine.wipe(1)
    lab.until_isr(2, 3)
    lab.start(1)
    lab.until_isr(1, 2, 3)
    assert lab.log_bytes(1) == lab.log_bytes(3) == sound


def _flip_header_bit(engine: SimulatorEngine, byte: int, bit: int) -> None:
    """Of the first batch of the second segment of broker 1."""
    logs = {
        path: bytes(file.data)
        for path, file in engine._partition_files(1, "orders", 0)
        if path.endswith(file_names.LOG)
    }
    path = sorted(logs)[1]
    position, _ = next(batches(logs[path]))
    engine.cluster.process(1).store.flip_bit(path, position=position + byte, bit=bit)
