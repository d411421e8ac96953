"""What a starting broker takes from its machine: descriptors, locked directories, bound sockets."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import socket
from collections.abc import Iterable

from tidelog.core.model.exceptions import TidelogError
from tidelog.core.model.listeners import Listener
from tidelog.core.node.settings import NodeSettings

_DESCRIPTORS_ENOUGH = 2**20
LOCK_NAME = ".lock"


class MachineUnfit(TidelogError):
    """One clear sentence for the person who started the broker."""


def raise_descriptor_limit() -> int:
    """As many open files as the system lets us have; that number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wished = _DESCRIPTORS_ENOUGH if hard == resource.RLIM_INFINITY else hard
    if soft == resource.RLIM_INFINITY or soft >= wished:
        return wished
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wished, hard))
    except (OSError, ValueError):
        return soft
    return wished


def lock_directories(directories: Iterable[str]) -> list[int]:
    """Make the log directories and lock them for this process; the locks' descriptors.

    The kind of lock is the one that Kafka takes, so that the two exclude each other as well.
    """
    locks = []
    for directory in directories:
        try:
            os.makedirs(directory, exist_ok=True)
            path = os.path.join(directory, LOCK_NAME)
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES) and os.path.isdir(directory):
                raise MachineUnfit(
                    f"another broker uses the log directory {directory} (its {LOCK_NAME} is taken)"
                ) from error
            reason = error.strerror or str(error)
            raise MachineUnfit(f"cannot use the log directory {directory}: {reason}") from error
        locks.append(lock)
    return locks


def bind(listener: Listener, *, send_buffer_bytes: int | None = None) -> socket.socket:
    """A socket at the listener's address that does not listen yet.

    Connections inherit its send buffer. A short one is not only Kafka's way: with megabytes in
    flight a client on the same machine needed about a quarter more CPU time for the same fetches.
    """
    is_ipv6 = ":" in listener.host
    any_address = not listener.host
    family = socket.AF_INET6 if is_ipv6 or (any_address and _has_ipv6()) else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if send_buffer_bytes is not None:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
    if any_address and family == socket.AF_INET6:
        bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    try:
        bound.bind((listener.host, listener.port))
    except OSError as error:
        bound.close()
        raise _cannot_listen(listener, error) from error
    return bound


def listen(listener: Listener, bound: socket.socket, *, backlog: int) -> None:
    """Let callers wait at the door. Of two that are bound to a port, the first to listen has it."""
    try:
        bound.listen(backlog)
    except OSError as error:
        raise _cannot_listen(listener, error) from error


def _cannot_listen(listener: Listener, error: OSError) -> MachineUnfit:
    if error.errno == errno.EADDRINUSE:
        return MachineUnfit(f"port {listener.port} is in use: cannot listen on {listener}")
    return MachineUnfit(f"cannot listen on {listener}: {error.strerror or error}")


def advertised_listeners(
    settings: NodeSettings, sockets: list[socket.socket]
) -> tuple[Listener, ...]:
    """What clients are told: real ports instead of 0, this machine's name instead of no host."""
    ports = {
        listener.name: sock.getsockname()[1]
        for listener, sock in zip(settings.listeners, sockets, strict=True)
    }
    return tuple(
        Listener(
            listener.name,
            listener.host or _own_name(),
            listener.port or ports.get(listener.name, 0),
        )
        for listener in settings.advertised
    )


def per_ip_overrides(text: str) -> dict[str, int]:
    """`address:count,...` by address; names are looked up. ValueError if it is not like that."""
    overrides = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        host, _, count = item.rpartition(":")
        if not host or not count.strip().isdecimal():
            raise ValueError(f"{item!r} is not like 10.0.0.1:100")
        try:
            found = socket.getaddrinfo(host.strip(" []"), None)
        except OSError:
            raise ValueError(f"there is no address {host!r}") from None
        for address in found:
            overrides[str(address[4][0])] = int(count)
    return overrides


def _own_name() -> str:
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return "localhost"
    return name


def _has_ipv6() -> bool:
    if not socket.has_ipv6:
        return False
    try:
        socket.socket(socket.AF_INET6, socket.SOCK_STREAM).close()
    except OSError:
        return False
    return True
