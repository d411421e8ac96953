"""Carries faults out on processes and on fault gates, registers them, and undoes them.

Every fault is in the cluster's fault registry, so that other programs see it and may undo it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence

from tidelog.cluster import processes
from tidelog.cluster.errors import ClusterError, ClusterUsageError
from tidelog.cluster.fault_registry import ActiveFault, FaultRegistry, RegistryEdit
from tidelog.cluster.gates import FaultGates
from tidelog.cluster.members import Members, wait_until
from tidelog.cluster.rules import RuleFields, directions, listed, numbered, rules_for
from tidelog.cluster.targets import Target, TargetContext, resolve_all, resolve_host

START_TIMEOUT_S = 60.0
ENDED = ("kill", "stop")
"""Faults after which a process is gone."""


class Fault:
    """A fault that can be undone."""

    def __init__(self, active: ActiveFault, undo: Callable[[str], object]) -> None:
        self.active = active
        self.id = active.id
        self.what = active.what
        self.text = active.text
        self.nodes = active.nodes
        self.until_ms = active.until_ms
        self._undo = undo

    def undo(self) -> None:
        """Nothing happens if that has been done already, or it was over by itself."""
        self._undo(self.id)

    def __repr__(self) -> str:
        return f"Fault({self.id}: {self.text})"


class FaultInjector:
    """The faults of one cluster. Targets are resolved by `context`, at the moment of the fault."""

    def __init__(self, members: Members, context: TargetContext) -> None:
        self._members = members
        self._context = context
        self._timers: list[threading.Timer] = []

    @property
    def registry(self) -> FaultRegistry:
        return FaultRegistry(self._members.launcher.directory)

    @property
    def gates(self) -> FaultGates:
        return FaultGates(self._members.launcher)

    def resolve(self, *targets: Target) -> tuple[int, ...]:
        """The nodes that these targets mean now."""
        return resolve_all(targets, self._context)

    def cancel_timers(self) -> None:
        for timer in self._timers:
            timer.cancel()

    # Processes.

    def end_processes(
        self,
        what: str,
        targets: Sequence[Target],
        end: Callable[[tuple[int, ...]], object],
        *,
        for_s: float | None,
    ) -> Fault:
        """Kill or stop running nodes, and start them again after `for_s`."""
        nodes = self._running(targets, for_s)
        end(nodes)
        word = {"kill": "killed", "stop": "stopped"}[what]
        with self.registry.edit() as edit:
            edit.release_nodes(nodes, "kill", "stop", "pause")
            active = _add(edit, what, f"{word} {self._members.names(nodes)}", nodes=nodes)
        return self._undo_later(active, for_s)

    def pause(self, targets: Sequence[Target], *, for_s: float | None) -> Fault:
        nodes = self._running(targets, for_s)
        with self._members.lock, self.registry.edit() as edit:
            for process in (found := self._members.running_processes(nodes)):
                process.signal(processes.PAUSE)
            wait_until(
                lambda: all(each.is_paused or not each.is_alive for each in found), "the pause"
            )
            edit.release_nodes(nodes, "pause")
            active = _add(edit, "pause", f"paused {self._members.names(nodes)}", nodes=nodes)
        return self._undo_later(active, for_s)

    def resume(self, targets: Sequence[Target]) -> tuple[int, ...]:
        nodes = self.resolve(*targets)
        self._members.running_processes(nodes)
        with self._members.lock, self.registry.edit() as edit:
            edit.release_nodes(nodes, "pause")
            self._resume_living(nodes, edit)
        return nodes

    def restart(self, targets: Sequence[Target], *, wait: bool) -> tuple[int, ...]:
        nodes = self.resolve(*targets)
        launcher = self._members.launcher
        launcher.stop(nodes)
        with self._members.lock, self.registry.edit() as edit:
            launcher.start(nodes)
            edit.release_nodes(nodes, "kill", "stop", "pause")
        if wait:
            launcher.wait_until_listening(nodes, timeout_s=START_TIMEOUT_S)
        return nodes

    # The network.

    def between(
        self,
        what: str,
        source: Target,
        target: Target,
        *,
        words: str = "",
        one_way: bool,
        for_s: float | None,
        **fields: object,
    ) -> Fault:
        """One kind of rule in each direction between two ends."""
        sources = resolve_host(source, self._context)
        targets = resolve_host(target, self._context)
        found = directions(sources, targets, one_way=one_way)
        if not found:
            raise ClusterUsageError(f"{what}: {source} and {target} are the same")
        arrow = "->" if one_way else "<->"
        text = f"{what} {listed(sources)} {arrow} {listed(targets)}{words}"
        return self.inject(what, text, rules_for(what, found, **fields), for_s=for_s)

    def inject(
        self, what: str, text: str, rules: Sequence[RuleFields], *, for_s: float | None = None
    ) -> Fault:
        """Give these rules to every gate as one fault; all of them, or none if one is refused."""
        self.gates.check()
        until_ms = None
        if for_s is not None:
            _check_duration(for_s)
            until_ms = time.time_ns() // 1_000_000 + round(for_s * 1_000)
        with self._members.lock, self.registry.edit() as edit:
            before = edit.rules
            active = _add(edit, what, text, rules=rules, until_ms=until_ms)
            try:
                self.gates.replace(edit.rules)
            except ClusterError:
                self.gates.replace(before)
                raise
        return Fault(active, self.undo)

    # All of them.

    def active(self) -> list[Fault]:
        """Those of this moment, whoever made them."""
        return [Fault(each, self.undo) for each in self.registry.active()]

    def undo(self, fault_id: str, *, must_exist: bool = False) -> Fault:
        """Undo one fault: links are whole, paused nodes go on, dead ones are started."""
        launcher = self._members.launcher
        with self._members.lock, self.registry.edit() as edit:
            active = edit.find(fault_id)
            if active is None:
                if must_exist:
                    raise ClusterUsageError(f"there is no fault {fault_id}; see `fault list`")
                return Fault(ActiveFault(id=fault_id, what="", text="nothing"), self.undo)
            edit.remove(lambda each: each.id == fault_id)
            if active.rules:
                self.gates.replace(edit.rules)
            elif active.what == "pause":
                self._resume_living(active.nodes, edit)
            else:
                launcher.start(each for each in active.nodes if launcher.process(each) is None)
        if active.what in ENDED:
            launcher.wait_until_listening(active.nodes, timeout_s=START_TIMEOUT_S)
        return Fault(active, self.undo)

    # Inside.

    def _running(self, targets: Sequence[Target], for_s: float | None) -> tuple[int, ...]:
        """The nodes that are meant, all of which run."""
        if for_s is not None:
            _check_duration(for_s)
        nodes = self.resolve(*targets)
        self._members.running_processes(nodes)
        return nodes

    def _undo_later(self, active: ActiveFault, for_s: float | None) -> Fault:
        fault = Fault(active, self.undo)
        if for_s is not None:
            timer = threading.Timer(for_s, fault.undo)
            timer.daemon = True
            self._timers.append(timer)
            timer.start()
        return fault

    def _resume_living(self, nodes: Iterable[int], edit: RegistryEdit) -> None:
        launcher = self._members.launcher
        for each in nodes:
            process = launcher.process(each)
            if process is not None:
                process.signal(processes.RESUME)
                if launcher.plan.has_faults:
                    self.gates.update(each, edit.rules)


def _add(
    edit: RegistryEdit,
    what: str,
    text: str,
    *,
    nodes: tuple[int, ...] = (),
    rules: Sequence[RuleFields] = (),
    until_ms: int | None = None,
) -> ActiveFault:
    fault_id = edit.new_id()
    active = ActiveFault(
        id=fault_id,
        what=what,
        text=text,
        nodes=nodes,
        rules=tuple(numbered(fault_id, rules, until_ms)),
        until_ms=until_ms,
    )
    edit.faults.append(active)
    return active


def _check_duration(for_s: float) -> None:
    if for_s <= 0:
        raise ClusterUsageError(f"for: a duration is longer than nothing, not {for_s:g} s")
