"""The page for users about differences from Kafka, written from the table of explanations."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill

from tests.golden.explained import EXPLAINED
from tests.kafka.class_path import KAFKA_VERSION

FILE = Path(__file__).parents[2] / "docs" / "differences-from-kafka.md"

COLUMNS = 100

_HEAD = f"""\
# Where Tidelog answers otherwise than Apache Kafka

Tidelog is held against Apache Kafka {KAFKA_VERSION}: the same requests go to both, and the answers
are compared field by field, after ids, times and addresses were given names (`tests/golden`). The
wording of error messages is not compared. Whatever differs beyond this list is a bug.

This page is written by `./dev golden docs` from `tests/golden/explained.py`.
"""

_BEYOND_REQUESTS = """\
## Damage on the disk

No recorded request can show this one. Brokers find offsets by the headers of batches, so one bit
that flips in a stored header can lead Kafka's readers past sound records, or back to the damage for
ever. Tidelog believes a header only as far as its index and the batches around it agree. A Fetch
at a batch whose header cannot be true is refused (CORRUPT_MESSAGE); every sound batch, before it
and behind it, is found. Where only the checksum can tell, the bytes are sent as they are, as in
Kafka; so they are to a reader who comes from before the damage, and at the very end of a log, whose
batches are found without their headers: the client's own check tells him. Base offset and leader
epoch are under no checksum, so such a reader may not notice damage there, as in Kafka; a follower
refuses offsets that do not continue its log, and leader epochs that go back or are yet to come.

Shown by: `tests/unit/core/storage/test_damage.py`, `tests/process/test_bit_flip.py`
"""


def documentation() -> str:
    """The whole page."""
    sections = []
    for entry in EXPLAINED:
        cases = "Cases: " + ", ".join(f"`{pattern}`" for pattern in entry.cases)
        texts = [fill(text, COLUMNS, break_on_hyphens=False) for text in (entry.reason, cases)]
        sections.append("\n\n".join([f"## {entry.title}", *texts]) + "\n")
    return "\n".join([_HEAD, *sections, _BEYOND_REQUESTS])
