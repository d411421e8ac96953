"""What the kernel says: CPU time and memory of a process, CPU time of the whole machine."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
MIB = 2**20
_PARENT = 1
_USER_TICKS, _SYSTEM_TICKS = 11, 12
_WITH_ENDED_CHILDREN = slice(11, 15)
"""Positions behind the program's name, which may itself hold spaces and parentheses."""


def cpu_s(pid: int) -> float:
    """User and system time of all threads so far; the kernel counts in hundredths of a second."""
    fields = _stat(Path(f"/proc/{pid}/stat"))
    return (int(fields[_USER_TICKS]) + int(fields[_SYSTEM_TICKS])) / TICKS_PER_S


def family(pid: int) -> list[int]:
    """The process and everything that it has started."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            children.setdefault(int(_stat(path)[_PARENT]), []).append(int(path.parent.name))
    found, waiting = [], [pid]
    while waiting:
        each = waiting.pop()
        found.append(each)
        waiting += children.get(each, [])
    return found


def family_cpu_s() -> float:
    """Of this process and everything that it has started, also of what has ended since."""
    ticks = 0
    for pid in family(os.getpid()):
        with suppress(OSError):
            ticks += sum(map(int, _stat(Path(f"/proc/{pid}/stat"))[_WITH_ENDED_CHILDREN]))
    return ticks / TICKS_PER_S


def resident_mib(pid: int) -> float:
    """Resident memory now."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / MIB
    raise ProcessLookupError(f"no memory of process {pid} to be seen")


def proportional_mib(pid: int) -> float:
    """What it has alone, and its share of what several processes have together (PSS)."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024 / MIB
    raise ProcessLookupError(f"no memory of process {pid} to be seen")


def machine_cpu_s() -> float:
    """What all programs and the kernel used on all cores so far; waiting is not counted."""
    user, nice, system, _, _, interrupts, soft_interrupts = map(
        int, Path("/proc/stat").read_text().split(maxsplit=8)[1:8]
    )
    return (user + nice + system + interrupts + soft_interrupts) / TICKS_PER_S


def _stat(path: Path) -> list[str]:
    """What stands behind the program's name."""
    return path.read_text().rpartition(")")[2].split()
