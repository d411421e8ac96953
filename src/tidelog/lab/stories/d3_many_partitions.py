"""Document 3, the controller's work: all partitions of a dead broker move in one decision."""

from __future__ import annotations

from tidelog.core.formats import file_names
from tidelog.core.wire.record_batch import batches
from tidelog.lab.lab import Lab
from tidelog.lab.stories.cast import CONTROLLER
from tidelog.lab.story import story

PARTITIONS = 300
METADATA = "__cluster_metadata"


@story("D3-T7", "D5-B2")
def three_hundred_partitions_move_at_once(lab: Lab) -> None:
    """Broker 1 leads 300 partitions and dies: few batches of the metadata log move all of them."""
    lab.cluster()
    lab.create("orders", (1, 2, 3))
    many = lab.create("payments", *[(1, 2, 3)] * (PARTITIONS - 1))
    lab.kill(1)
    before = _metadata_batches(lab)
    lab.until_led(2)
    (fenced,) = lab.happenings(CONTROLLER, "BrokerFenced")
    elected = lab.happenings(CONTROLLER, "LeaderElected")
    lab.step("D3-T7", "D5-B2", "the session is over: every partition of broker 1 gets a leader")
    lab.same("elections", len(elected), PARTITIONS)
    lab.same("their leaders", {each.fields["leader"] for each in elected}, {2})
    lab.same("leaders as 3 knows them", set(lab.leaders(many, via=3)), {2})
    lab.between("batches of metadata", _metadata_batches(lab) - before, 1, 5)
    spread_ms = (elected[-1].at_us - fenced.at_us) / 1_000
    lab.lasted("milliseconds from the first to the last", abs(spread_ms), 0, 100)


def _metadata_batches(lab: Lab) -> int:
    files = lab.engine.log_files(CONTROLLER, METADATA, 0)
    segments = [files[name] for name in sorted(files) if name.endswith(file_names.LOG)]
    return sum(1 for segment in segments for _ in batches(segment))
