"""The table of faults, from which commands, the gates' rules and the documentation follow.

Adding a fault is three files: a row here, its verb in `cluster/cluster.py` (whose name and
parameters a test compares with the row), and, for a fault of the network, its effect in
`worlds/runtime/fault_table.py`. `tidelog fault`, what a gate accepts, which engines of the lab have
it, and the table in docs/faults.md come from the row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from tidelog.faults import fields
from tidelog.faults.fields import REQUIRED, Fields
from tidelog.faults.hosts import ANYONE, CLIENTS

SIMULATOR = "simulator"
PROCESSES = "processes"
APACHE_KAFKA = "apache kafka"
EVERYWHERE = (SIMULATOR, PROCESSES, APACHE_KAFKA)
OURS = (SIMULATOR, PROCESSES)
"""Engines with faults inside the transport, and with a trace of our own."""


class Value(Enum):
    """How a parameter is written on a command line."""

    TARGETS = auto()
    """One or more nodes: `2 rack:a leader:orders-0`."""
    TARGET = auto()
    PARTITION = auto()
    """`orders-0`; two parameters in Python, topic and partition."""
    TEXT = auto()
    NUMBER = auto()
    """A whole number from 1 on."""
    CHANCE = auto()
    DURATION_MS = auto()
    """`200ms`, `3s`; milliseconds in Python."""
    SWITCH = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One argument of a fault. With `option` it is a keyword in Python and --option in commands."""

    name: str
    """As the Python verb calls it."""
    value: Value
    metavar: str = ""
    help: str
    option: str | None = None
    default: Any = REQUIRED


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultKind:
    """One kind of fault."""

    name: str
    """On the command line and in rules; the Python verb has `_` for `-`."""
    does: str
    """One sentence."""
    more: str = ""
    """What else the command's help says."""
    examples: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    undone_by: str = "heal"
    """The command that undoes it: `heal`, or a verb about nodes."""
    engines: tuple[str, ...] = EVERYWHERE
    engine_verbs: tuple[str, ...] = ()
    """The words of the lab's engines that begin and end it."""
    rule: Fields | None = None
    """The fields of its rule at a fault gate, beside id and what; None: it has no rule."""
    has_command: bool = True
    has_verb: bool = True
    """Whether `tidelog.Cluster` has it; the others belong to the lab."""

    @property
    def verb(self) -> str:
        return self.name.replace("-", "_")

    @property
    def is_of_process(self) -> bool:
        return self.undone_by != "heal"


_TARGETS = Parameter(
    name="targets", value=Value.TARGETS, metavar="TARGET…", help="The nodes that are meant."
)
_ENDS = (
    Parameter(name="source", value=Value.TARGET, metavar="TARGET", help="One end of the link."),
    Parameter(name="target", value=Value.TARGET, metavar="OTHER", help="The other end."),
)
_BROKER = Parameter(
    name="broker", value=Value.TARGET, metavar="TARGET", help="The nodes that are meant."
)
_ONE_WAY = Parameter(
    name="one_way",
    value=Value.SWITCH,
    option="--one-way",
    help="Only what TARGET sends to OTHER, not what it gets.",
    default=False,
)
_START_AGAIN = "With `--for` the command waits and starts them again then; Ctrl-C does so at once."

_UNTIL: Fields = {"until_ms": (fields.until, None)}
_LINK: Fields = {
    "from": (fields.host, REQUIRED),
    "to": (fields.host, REQUIRED),
    "purpose": (fields.purpose, None),
}

FAULTS: tuple[FaultKind, ...] = (
    FaultKind(
        name="kill",
        does="Kill nodes with SIGKILL, as `kill -9` does. What is in the page cache survives.",
        more=_START_AGAIN,
        examples=("tidelog fault kill leader:orders-0 --for 3s",),
        parameters=(_TARGETS,),
        undone_by="restart",
        engine_verbs=("kill", "start"),
    ),
    FaultKind(
        name="stop",
        does="Stop nodes with SIGTERM: they hand over what they lead, and end.",
        more=_START_AGAIN,
        examples=("tidelog fault stop rack:a",),
        parameters=(_TARGETS,),
        undone_by="restart",
        engine_verbs=("stop",),
    ),
    FaultKind(
        name="pause",
        does="Pause nodes with SIGSTOP: they keep their connections and say nothing.",
        more="With `--for` the command waits and lets them go on then; Ctrl-C does so at once.",
        examples=("tidelog fault pause controller --for 10s",),
        parameters=(_TARGETS,),
        undone_by="resume",
        engine_verbs=("pause", "resume"),
    ),
    FaultKind(
        name="isolate",
        does="Cut nodes off from all other nodes. Those that are named still reach each other.",
        examples=("tidelog fault isolate rack:a --clients --for 10s",),
        parameters=(
            _TARGETS,
            Parameter(
                name="clients",
                value=Value.SWITCH,
                option="--clients",
                help="From clients, too.",
                default=False,
            ),
        ),
        engines=OURS,
    ),
    FaultKind(
        name="cut",
        does="Let nothing pass between two ends: silence, never a refusal; what waits flows later.",
        examples=(
            "tidelog fault cut 1 2",
            "tidelog fault cut rack:a rack:b --for 5s",
            "tidelog fault cut 1 clients --one-way",
        ),
        parameters=(*_ENDS, _ONE_WAY),
        engines=OURS,
        engine_verbs=("cut", "heal"),
        rule={**_LINK, **_UNTIL},
    ),
    FaultKind(
        name="delay",
        does="Let everything between two ends arrive later, in order; each way by as much.",
        examples=("tidelog fault delay 1 2 --by 200ms --jitter 50ms",),
        parameters=(
            *_ENDS,
            Parameter(
                name="ms",
                value=Value.DURATION_MS,
                option="--by",
                metavar="200ms",
                help="How much later.",
            ),
            Parameter(
                name="jitter_ms",
                value=Value.DURATION_MS,
                option="--jitter",
                metavar="50ms",
                help="At most this much more, by chance.",
                default=0,
            ),
            _ONE_WAY,
        ),
        engines=OURS,
        engine_verbs=("delay",),
        rule={
            **_LINK,
            "delay_ms": (fields.whole_number(0), REQUIRED),
            "jitter_ms": (fields.whole_number(0), 0),
            **_UNTIL,
        },
    ),
    FaultKind(
        name="drop",
        does="Lose packets between two ends. TCP sends again, so the stream stalls for 200 ms each "
        "time.",
        examples=("tidelog fault drop leader:orders-0 clients --chance 0.05",),
        parameters=(
            *_ENDS,
            Parameter(
                name="chance",
                value=Value.CHANCE,
                option="--chance",
                metavar="0.1",
                help="Above 0, up to 1, for each frame.",
            ),
            _ONE_WAY,
        ),
        engines=(PROCESSES,),
        rule={**_LINK, "chance": (fields.chance, REQUIRED), **_UNTIL},
    ),
    FaultKind(
        name="hold",
        does="Withhold what one end sends to the other on links of one purpose, one way: "
        "`replica`, `quorum` or `controller`.",
        parameters=(
            *_ENDS,
            Parameter(name="purpose", value=Value.TEXT, help="The purpose of the links."),
        ),
        engines=OURS,
        engine_verbs=("hold", "release"),
        rule={**_LINK, "purpose": (fields.one_purpose, REQUIRED), **_UNTIL},
        has_command=False,
    ),
    FaultKind(
        name="hold-replica",
        does="Give a follower nothing of one partition, and disturb nothing else.",
        more="It leaves the in-sync set after `replica.lag.time.max.ms`.",
        examples=("tidelog fault hold-replica follower:orders-0 orders-0",),
        parameters=(
            _BROKER,
            Parameter(
                name="partition", value=Value.PARTITION, metavar="TOPIC-0", help="The partition."
            ),
        ),
        engines=(PROCESSES,),
        rule={
            "replica": (fields.whole_number(0), REQUIRED),
            "topic": (fields.text, REQUIRED),
            "partition": (fields.whole_number(0), REQUIRED),
            **_UNTIL,
        },
    ),
    FaultKind(
        name="error",
        does="Answer the n-th request of a kind with an error, without handling it.",
        examples=("tidelog fault error leader:orders-0 Produce NOT_LEADER_OR_FOLLOWER --nth 3",),
        parameters=(
            _BROKER,
            Parameter(
                name="api", value=Value.TEXT, metavar="API", help="Produce, Fetch, Metadata…"
            ),
            Parameter(
                name="error", value=Value.TEXT, metavar="ERROR", help="Kafka's name of an error."
            ),
            Parameter(
                name="nth",
                value=Value.NUMBER,
                option="--nth",
                metavar="N",
                help="The first request to be hit.",
                default=1,
            ),
            Parameter(
                name="times",
                value=Value.NUMBER,
                option="--times",
                metavar="N",
                help="How many in a row.",
                default=1,
            ),
            Parameter(
                name="source",
                value=Value.TARGET,
                option="--from",
                metavar="TARGET",
                help="Whose requests are counted.",
                default=CLIENTS,
            ),
        ),
        engines=(PROCESSES,),
        rule={
            "from": (fields.host, ANYONE),
            "to": (fields.host, ANYONE),
            "api": (fields.api, REQUIRED),
            "error": (fields.error, REQUIRED),
            "nth": (fields.whole_number(1), 1),
            "times": (fields.whole_number(1), 1),
            **_UNTIL,
        },
    ),
)
"""In the order of `tidelog fault --help`."""

LAB_FAULTS: tuple[FaultKind, ...] = tuple(
    FaultKind(
        name=name,
        does=does,
        engines=engines,
        engine_verbs=verbs,
        has_command=False,
        has_verb=False,
    )
    for name, does, engines, verbs in (
        (
            "lose-power",
            "Pull the plug: of unsynced data nothing is kept, everything, or what chance says.",
            (SIMULATOR,),
            ("lose_power",),
        ),
        ("wipe", "Put an empty disk into a node that does not run.", EVERYWHERE, ("wipe",)),
        (
            "fill-disk",
            "Leave this many free bytes on a node's disk.",
            (SIMULATOR,),
            ("fill_disk", "free_disk"),
        ),
        (
            "delete-file",
            "Remove a partition's files of one kind while the node does not run.",
            EVERYWHERE,
            ("delete_file",),
        ),
        (
            "flip-bit",
            "Flip a bit in the batch that holds an offset.",
            EVERYWHERE,
            ("flip_bit",),
        ),
        (
            "tear",
            "Cut the last bytes off the last batch of a node that does not run.",
            EVERYWHERE,
            ("tear",),
        ),
        ("move-clock", "Let a node's wall clock jump.", (SIMULATOR,), ("move_clock",)),
        (
            "refuse-connections",
            "Refuse new connections to a node whose process lives.",
            (SIMULATOR,),
            ("refuse_connections", "accept_connections"),
        ),
        (
            "reset-connections",
            "Reset every connection of a node, for both of its sides.",
            (SIMULATOR,),
            ("reset_connections",),
        ),
    )
)
"""Faults that only stories of the lab can inject."""

RULE_FIELDS: Mapping[str, Fields] = {
    kind.name: kind.rule for kind in FAULTS if kind.rule is not None
}
ENGINES_OF_VERB: Mapping[str, tuple[str, ...]] = {
    verb: kind.engines for kind in (*FAULTS, *LAB_FAULTS) for verb in kind.engine_verbs
}
PROCESS_FAULTS = tuple(kind.name for kind in FAULTS if kind.is_of_process)
