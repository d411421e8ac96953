"""What lies in a cluster's data directory, and where.

DATA/cluster.json          the nodes: ids, roles, racks, ports, profile, settings
DATA/secret                what the nodes prove to each other to know; nobody else may read it
DATA/faults.json           the active faults
DATA/launcher              the process that holds the lifeline: its pid and start time
DATA/lifeline              a pipe that the launcher holds open; brokers end when it closes
DATA/node-N/broker.toml    the node's own settings, written anew at each start
DATA/node-N/data/          its log directory
DATA/node-N/broker.log     its log, one start after the other
DATA/node-N/pid            its process
DATA/node-N/gate.sock      where its fault gate listens
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tidelog.cluster.errors import ClusterError
from tidelog.cluster.layout import ClusterPlan, NodePlan

FORMAT_VERSION = 1
SECRET_BYTES = 32
_SOCKET_PATH_BYTES_MAX = 100
_LOG_LINES_READ_BYTES = 64 * 1024


class ClusterDirectory:
    """One cluster's directory."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.plan_path = self.root / "cluster.json"
        self.secret_path = self.root / "secret"
        self.faults_path = self.root / "faults.json"
        self.launcher_path = self.root / "launcher"
        self.lifeline_path = self.root / "lifeline"
        self.sockets: Path | None = None
        """Where the gates' sockets are, if the paths in here are too long for them."""

    def node(self, node_id: int) -> Path:
        return self.root / f"node-{node_id}"

    def log(self, node_id: int) -> Path:
        return self.node(node_id) / "broker.log"

    def pid(self, node_id: int) -> Path:
        return self.node(node_id) / "pid"

    def data(self, node_id: int) -> Path:
        return self.node(node_id) / "data"

    def ready(self, node_id: int) -> Path:
        return self.node(node_id) / "ready"

    def config(self, node_id: int) -> Path:
        return self.node(node_id) / "broker.toml"

    def gate(self, node_id: int) -> Path:
        if self.sockets is not None:
            return self.sockets / f"{node_id}.sock"
        return self.node(node_id) / "gate.sock"

    # The plan.

    @property
    def has_plan(self) -> bool:
        return self.plan_path.exists()

    def read_plan(self) -> ClusterPlan:
        """The plan of the first start."""
        try:
            document = json.loads(self.plan_path.read_text(encoding="utf-8"))
            version = document["version"]
        except FileNotFoundError:
            raise ClusterError(f"there is no cluster in {self.root}") from None
        except OSError as error:
            raise ClusterError(f"cannot read {self.plan_path}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise ClusterError(f"{self.plan_path} is damaged: {error}") from error
        if version != FORMAT_VERSION:
            raise ClusterError(
                f"{self.plan_path} is of format {version!r}; this release knows {FORMAT_VERSION}"
            )
        try:
            plan = plan_from_json(document)
            sockets = document.get("sockets")
            self.sockets = Path(sockets) if sockets else None
        except (ValueError, KeyError, TypeError) as error:
            raise ClusterError(f"{self.plan_path} is damaged: {error!r}") from error
        return plan

    def write_plan(self, plan: ClusterPlan) -> None:
        self._choose_sockets_directory(plan)
        document = plan_as_json(plan)
        document["sockets"] = None if self.sockets is None else str(self.sockets)
        write_whole(self.plan_path, json.dumps(document, indent=2) + "\n")

    def _choose_sockets_directory(self, plan: ClusterPlan) -> None:
        """The system allows about a hundred bytes for the path of a socket."""
        longest = max(len(os.fsencode(self.node(node.id) / "gate.sock")) for node in plan.nodes)
        if longest <= _SOCKET_PATH_BYTES_MAX:
            self.sockets = None
        elif self.sockets is None or not self.sockets.is_dir():
            import tempfile  # here, because it is rarely needed and costs milliseconds

            self.sockets = Path(tempfile.mkdtemp(prefix="tidelog-"))

    # Making it.

    def make(self) -> None:
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            if not os.access(self.root, os.W_OK | os.X_OK):
                raise ClusterError(f"cannot use {self.root}: it may not be written to")
        except OSError as error:
            raise ClusterError(f"cannot use {self.root}: {error.strerror}") from error

    def make_secret(self) -> None:
        """For a cluster that has none; 256 random bits, as readable text."""
        if not self.secret_path.exists():
            from secrets import token_hex  # here, because it costs a millisecond

            write_whole(self.secret_path, token_hex(SECRET_BYTES) + "\n", mode=0o600)

    def read_secret(self) -> str:
        return self.secret_path.read_text(encoding="utf-8").strip()

    def last_log_lines(self, node_id: int, count: int) -> list[str]:
        """The end of the node's log."""
        try:
            with self.log(node_id).open("rb") as file:
                file.seek(0, os.SEEK_END)
                file.seek(max(0, file.tell() - _LOG_LINES_READ_BYTES))
                text = file.read().decode(errors="replace")
        except OSError:
            return []
        return text.splitlines()[-count:]


def take_lock(path: Path) -> int | None:
    """A lock that ends with this process, or when its descriptor is closed; None: it is taken."""
    lock = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait for the lock; only for what takes moments."""
    lock = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def write_whole(path: Path, text: str, *, mode: int = 0o666) -> None:
    """Complete as soon as it is there; the mode is that of a new file, less the umask."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, mode)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    temporary.replace(path)


def plan_as_json(plan: ClusterPlan) -> dict[str, Any]:
    return {
        "version": FORMAT_VERSION,
        "cluster_id": plan.cluster_id,
        "profile": plan.profile,
        "settings": dict(plan.settings),
        "has_faults": plan.has_faults,
        "nodes": [
            {
                "id": node.id,
                "roles": list(node.roles),
                "rack": node.rack,
                "port": node.port,
                "settings": dict(node.settings),
            }
            for node in plan.nodes
        ],
    }


def plan_from_json(document: Any) -> ClusterPlan:
    """KeyError, TypeError or ValueError if it is not a plan."""
    nodes = tuple(
        NodePlan(
            id=int(node["id"]),
            roles=tuple(map(str, node["roles"])),
            rack=node["rack"],
            port=int(node["port"]),
            settings=dict(node["settings"]),
        )
        for node in document["nodes"]
    )
    if not nodes:
        raise ValueError("no nodes")
    return ClusterPlan(
        cluster_id=str(document["cluster_id"]),
        profile=str(document["profile"]),
        settings=dict(document["settings"]),
        has_faults=bool(document["has_faults"]),
        nodes=nodes,
    )
