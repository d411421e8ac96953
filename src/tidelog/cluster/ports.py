"""Ports for brokers, given to no other launcher as long as this process lives.

A port that the system chooses is chosen again as soon as nobody listens there, even as the near end
of somebody's connection; a broker that is killed and comes back must find its port free. So these
lie below those that the system chooses from, and every launcher locks the blocks that it takes
them from. A detached cluster outlives its launcher's locks, so blocks are tried in any order: the
next launcher hardly ever begins with the same one.
"""

from __future__ import annotations

import fcntl
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

from tidelog.cluster.errors import ClusterError
from tidelog.cluster.layout import HOST

PORTS = range(10_000, 32_000)
BLOCK_PORTS = 100


def free_ports(count: int) -> list[int]:
    """This many ports without a listener; each is given only once."""
    with _lock:
        found = []
        for port in _own:
            if is_free(port):
                found.append(port)
            if len(found) == count:
                return found
    raise ClusterError(f"no port from {PORTS.start} to {PORTS.stop - 1} is free")


def is_free(port: int) -> bool:
    """Returns whether a broker could listen there now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def _locked_blocks() -> Iterator[int]:
    """Ports, block by block. A lock ends with the process, however that ends."""
    import tempfile  # here, because known ports do without them, and they cost milliseconds
    from random import SystemRandom

    directory = Path(tempfile.gettempdir(), f"tidelog-ports-{os.getuid()}")
    directory.mkdir(exist_ok=True)
    starts = list(PORTS[::BLOCK_PORTS])
    SystemRandom().shuffle(starts)
    for start in starts:
        lock = os.open(directory / str(start), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        yield from range(start, start + BLOCK_PORTS)


_lock = threading.Lock()
_own = _locked_blocks()
