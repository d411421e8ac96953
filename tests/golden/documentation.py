"""The page for users about differences from Kafka, written from the table of explanations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

from tests.golden.explained import EXPLAINED
from tests.golden.explained_keys import MISSING_APIS
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
## A leader that was paused

No recorded request can show this one. A leader that stood still for longer than its session
(SIGSTOP, a suspended machine) was replaced meanwhile, and requests of its clients wait in its
sockets. Kafka's appends them when it goes on, says ok to those with acks=1, hears that another
leads, and truncates: one pause of 14 seconds under librdkafka's load (10,000 records a second,
acks=1, three brokers with default settings) lost 11,600 acknowledged records of Apache Kafka 4.3.1.
Tidelog's refuses every Produce (NOT_LEADER_OR_FOLLOWER, without the name of a leader) until a
heartbeat that it sent since was answered and the metadata was read after that; a controller that
was paused commits a record before it answers anything. Reads are served meanwhile. A leader that is
awake and lost only its controller goes on, as in Kafka.

Shown by: `tidelog lab run X-47`, `tests/process/test_paused_leaders.py`

## Throttles of reassignments

The throttles that `kafka-reassign-partitions --throttle` sets, and removes again with `--verify`,
are accepted, checked as Kafka checks them, and kept: `leader.replication.throttled.replicas` and
`follower.replication.throttled.replicas` of topics, `leader.replication.throttled.rate` and
`follower.replication.throttled.rate` of brokers. They have no effect: Tidelog does not throttle
replication. A new replica copies as fast as its leader and its disk allow.

DescribeLogDirs does not tell how large the volume of a log directory is (-1, "unknown").

Shown by: `tests/compat/test_java_reassignment.py`

## Groups and their coordinators

`__consumer_offsets` gets three replicas, or one for each broker of a smaller cluster, unless
`offsets.topic.replication.factor` is set; Kafka does not make it with fewer than that. With three
or more replicas its `min.insync.replicas` is 2; in Kafka it inherits the broker's, which is 1, so
that a commit may rest on one broker alone, and be forgotten with it.

A broker holds FindCoordinator for at most two seconds while the topic is made or has no leader, and
requests to a coordinator that loads for at most half a second; Kafka refuses both at once
(COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS), and clients sleep before they ask again.

A regular expression of a KIP-848 member may have 4,096 characters and an automaton of 1,000 steps;
beyond that it is refused (INVALID_REGULAR_EXPRESSION), whatever Kafka's library would take.

The profile `tidelog`, with which `tidelog up` starts, sets `group.initial.rebalance.delay.ms` and
`group.consumer.assignment.interval.ms` to 0. Without it they have Kafka's defaults.

Shown by: `tidelog lab run N34`, `tidelog lab run D3-S4`, `tests/process/test_coordinators.py`

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

## Members that cost too much

Whoever can reach a Kafka broker can make its coordinator use memory without end: ids that JoinGroup
gives out, groups that nobody joins, metadata of any size. Tidelog's coordinators have bounds. The
members of a group cost at most 16 MiB, counted as 1 KiB for each and what it says of itself;
2,000 ids of a group may be given out and unused: beyond these the newcomer is refused
(GROUP_MAX_SIZE_REACHED), and members stay. A group has 32 regular expressions at most
(INVALID_REQUEST), each of 4,096 characters. Of one partition of `__consumer_offsets` 10,000 ids may
be unused, and 10,000 groups without a member and an offset: beyond these the oldest is not known
any more, and whoever comes with it asks again. As in Kafka a generation has to fit into one batch.
Not bounded is how many groups have members.

Shown by: `tests/unit/core/groups/test_group_limits.py`

## Groups that change their protocol

A classic group that a KIP-848 member joins before its first generation makes Kafka fail
(UNKNOWN_SERVER_ERROR), and so does one whose members were assigned partitions that a topic does not
have (any more). Tidelog takes both over. When a member's metadata under the protocol that all share
cannot be read, Kafka cannot go back to a classic group, and the last KIP-848 member neither leaves
nor times out; Tidelog lets it go, and the group stays what it is. Sessions of classic members in
such a group last after a failover as long as they asked for, in Kafka as long as the group's
setting.

Settings of single groups (resource type 32) are those of consumer groups; those of share groups and
of Streams are refused, and not described.

Shown by: `tests/unit/core/groups/test_group_migration.py`
"""


def _listed(what: str, names: Sequence[str]) -> str:
    return f"{what}: " + ", ".join(f"`{name}`" for name in names)


def _field(field: str) -> str:
    """An API by its name, too: few know the keys by heart."""
    key = field.removeprefix("api_keys/api_key=")
    return f"{field} ({MISSING_APIS[int(key)]})" if key.isdecimal() else field


def documentation() -> str:
    """The whole page."""
    sections = []
    for entry in EXPLAINED:
        fields = _listed("Fields", [_field(field) for field in entry.fields])
        cases = _listed("Cases", entry.cases)
        texts = [
            fill(text, COLUMNS, break_on_hyphens=False, break_long_words=False)
            for text in (entry.reason, fields, cases)
        ]
        sections.append("\n\n".join([f"## {entry.title}", *texts]) + "\n")
    return "\n".join([_HEAD, *sections, _BEYOND_REQUESTS])
