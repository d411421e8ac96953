"""Ports for the servers of tests, which nobody else is given as long as this process lives.

A port that the system chooses is chosen again as soon as nobody listens there: by another test, or
as the near end of any connection, even of one to that very port, which then talks to itself. A
server that is killed and comes back must find its port free. So these lie below those that the
system chooses from, and every process of tests locks the blocks that it takes them from.
"""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
from collections import deque
from collections.abc import Iterator
from pathlib import Path

HOST = "127.0.0.1"
PORTS = range(10_000, 32_000)
BLOCK_PORTS = 100


def free_port() -> int:
    """A port that nobody listens on, and that is given once only."""
    return next(port for port in _own if _is_free(port))


def _is_free(port: int) -> bool:
    """A process that has nothing to do with tests may listen there."""
    try:
        socket.create_server((HOST, port)).close()
    except OSError:
        return False
    return True


def _locked_blocks() -> Iterator[int]:
    """Ports, block by block. A lock ends with the process, however that ends.

    The next process begins elsewhere, so that nobody comes back to a port at once.
    """
    directory = Path(tempfile.gettempdir(), f"tidelog-ports-{os.getuid()}")
    directory.mkdir(exist_ok=True)
    starts = deque(PORTS[::BLOCK_PORTS])
    starts.rotate(os.getpid())
    for start in starts:
        lock = os.open(directory / str(start), os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        yield from range(start, start + BLOCK_PORTS)
    raise AssertionError(f"no ports are left in {PORTS}")


_own = _locked_blocks()
