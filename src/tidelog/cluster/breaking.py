"""Faults: everything that can be done to a cluster's processes and to its network, and undone.

Whom a fault hits is a node's id or a word (`rack:a`, `leader:orders-0`, `controller`...: see
targets.py); between two ends also `clients`, `client:NAME` and `*`. Every fault is noted in the
cluster's fault book, so that other programs see it and may undo it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tidelog.cluster import processes, rules
from tidelog.cluster.durations import in_words
from tidelog.cluster.errors import ClusterError, ClusterUsageError
from tidelog.cluster.fault_book import FaultBook, FaultNote, OpenBook
from tidelog.cluster.gates import Gates
from tidelog.cluster.looking import Looking
from tidelog.cluster.rules import Rule, told_hosts
from tidelog.cluster.targets import CLIENTS, Target, resolve_all, resolve_host

if TYPE_CHECKING:
    from tidelog.cluster.status import ClusterStatus

START_WITHIN_S = 60.0
STATUS_WITHIN_S = 3.0


class Fault:
    """A fault that can be undone."""

    def __init__(self, cluster: Breaking, note: FaultNote) -> None:
        self._cluster = cluster
        self.note = note
        self.id = note.id
        self.what = note.what
        self.text = note.text
        self.nodes = note.nodes
        self.until_ms = note.until_ms

    def undo(self) -> None:
        """Nothing happens if that has been done already, or it was over by itself."""
        self._cluster.undo(self.id)

    def __repr__(self) -> str:
        return f"Fault({self.id}: {self.text})"


class Breaking(Looking):
    """The fault verbs."""

    def __init__(self) -> None:
        super().__init__()
        self._timers: list[threading.Timer] = []

    # Processes.

    def kill(self, *targets: Target, for_s: float | None = None) -> Fault:
        """kill -9: no good-byes, and the page cache survives. `for_s`: then they start again."""
        nodes = self._living(targets, for_s)
        self.launcher.kill(nodes)
        return self._note_down("kill", f"killed {self._names(nodes)}", nodes, for_s)

    def stop(self, *targets: Target, for_s: float | None = None) -> Fault:
        """SIGTERM: what they lead is handed over first. `for_s`: then they start again."""
        nodes = self._living(targets, for_s)
        self.launcher.stop(nodes)
        return self._note_down("stop", f"stopped {self._names(nodes)}", nodes, for_s)

    def restart(self, *targets: Target, wait: bool = True) -> tuple[int, ...]:
        """Start those that are down; stop those that run, and start them again.

        Comes back when they listen, which says nothing about the cluster: see `wait_unfenced`.
        """
        nodes = self.resolve(*targets)
        self.launcher.stop(nodes)
        with self._lock, self.book.open() as book:
            self.launcher.start(nodes)
            book.take_nodes_off(nodes, "kill", "stop", "pause")
        if wait:
            self.launcher.wait_until_listening(nodes, timeout_s=START_WITHIN_S)
        return nodes

    def pause(self, *targets: Target, for_s: float | None = None) -> Fault:
        """SIGSTOP: they hold their connections and say nothing. `for_s`: then they go on."""
        nodes = self._living(targets, for_s)
        with self._lock, self.book.open() as book:
            for process in (found := self.must_run(nodes)):
                process.signal(processes.PAUSE)
            self.wait_until(
                lambda: all(each.is_paused or not each.is_alive for each in found), "the pause"
            )
            book.take_nodes_off(nodes, "pause")
            note = _note(book, "pause", f"paused {self._names(nodes)}", nodes=nodes)
        return self._undo_later(note, for_s)

    def resume(self, *targets: Target) -> tuple[int, ...]:
        """SIGCONT."""
        nodes = self.resolve(*targets)
        self.must_run(nodes)
        with self._lock, self.book.open() as book:
            book.take_nodes_off(nodes, "pause")
            self._resume_those_that_live(nodes, book)
        return nodes

    # The network.

    def isolate(self, *targets: Target, clients: bool = False, for_s: float | None = None) -> Fault:
        """Cut these nodes off from all other nodes, and from clients if asked for."""
        nodes = self.resolve(*targets)
        found = rules.isolation(nodes, self.node_ids, clients=clients)
        others = " and clients" if clients else ""
        text = f"isolated {self._names(nodes)} from all other nodes{others}"
        return self._disturb("isolate", text, rules.along("cut", found), for_s)

    def cut(
        self, source: Target, target: Target, *, one_way: bool = False, for_s: float | None = None
    ) -> Fault:
        """Nothing that one sends reaches the other, nor back unless it is one way."""
        return self._between("cut", source, target, one_way=one_way, for_s=for_s)

    def delay(
        self,
        source: Target,
        target: Target,
        *,
        ms: int,
        jitter_ms: int = 0,
        one_way: bool = False,
        for_s: float | None = None,
    ) -> Fault:
        """Everything arrives later by `ms`, and up to `jitter_ms` more; in order."""
        if ms < 0 or jitter_ms < 0 or ms + jitter_ms == 0:
            raise ClusterUsageError(f"delay: from 1 ms on, not {ms} ms (jitter {jitter_ms} ms)")
        fields: dict[str, object] = {"delay_ms": ms, "jitter_ms": jitter_ms}
        by = in_words(ms) + (f" to {in_words(ms + jitter_ms)}" if jitter_ms else "")
        return self._between("delay", source, target, f" by {by}", fields, one_way, for_s)

    def drop(
        self,
        source: Target,
        target: Target,
        *,
        chance: float,
        one_way: bool = False,
        for_s: float | None = None,
    ) -> Fault:
        """Packets get lost with this chance: as TCP sends again, what follows waits 200 ms."""
        if not 0 < chance <= 1:
            raise ClusterUsageError(f"drop: a chance above 0 and up to 1, not {chance}")
        fields: dict[str, object] = {"chance": chance}
        return self._between("drop", source, target, f" {chance:.0%}", fields, one_way, for_s)

    def hold(
        self, source: Target, target: Target, purpose: str, *, for_s: float | None = None
    ) -> Fault:
        """Withhold what source sends to target on links of one purpose, one way: `replica`
        (follower and leader), `quorum` (voters) or `controller` (broker and controller)."""
        fields: dict[str, object] = {"purpose": purpose}
        words = f" ({purpose} links)"
        return self._between("hold", source, target, words, fields, one_way=True, for_s=for_s)

    def hold_replica(
        self, broker: Target, topic: str, partition: int = 0, *, for_s: float | None = None
    ) -> Fault:
        """Leaders give this follower nothing of that partition; nothing else is disturbed."""
        nodes = self.resolve(broker)
        self.partition(topic, partition)
        wanted: list[Rule] = [
            {"what": "hold-replica", "replica": each, "topic": topic, "partition": partition}
            for each in nodes
        ]
        text = f"held back {topic}-{partition} from {self._names(nodes)}"
        return self._disturb("hold-replica", text, wanted, for_s)

    def error(
        self,
        broker: Target,
        api: str,
        error: str,
        *,
        nth: int = 1,
        times: int = 1,
        source: Target = CLIENTS,
        for_s: float | None = None,
    ) -> Fault:
        """The n-th request of this kind from now on, and `times` in all, is answered with an error
        and not handled. It counts requests of clients; of others with `source`."""
        nodes = self.resolve(broker)
        wanted: list[Rule] = [
            {"what": "error", "api": api, "error": error, "nth": nth, "times": times}
            | {"from": host, "to": each}
            for host in resolve_host(source, self)
            for each in nodes
        ]
        which = f"request {nth}" if times == 1 else f"requests {nth} to {nth + times - 1}"
        text = f"{self._names(nodes)}: {which} for {api} from {source} will be answered {error}"
        return self._disturb("error", text, wanted, for_s)

    # All of them.

    def status(self, *, timeout_s: float = STATUS_WITHIN_S) -> ClusterStatus:
        """All of it in one value; nobody who does not answer is waited for longer than that."""
        from tidelog.cluster.surveying import survey

        return survey(self, timeout_s=timeout_s)

    def faults(self) -> list[Fault]:
        """Those of now, whoever made them."""
        return [Fault(self, each) for each in self.book.notes()]

    def heal(self, fault: Fault | str | None = None) -> list[Fault]:
        """Undo one fault, or all: links are whole, paused nodes go on, dead ones are started."""
        if fault is not None:
            fault_id = fault if isinstance(fault, str) else fault.id
            return [self.undo(fault_id, must_be=isinstance(fault, str))] if fault else []
        return [self.undo(each.id) for each in self.faults()]

    def undo(self, fault_id: str, *, must_be: bool = False) -> Fault:
        """One of them, by its id."""
        with self._lock, self.book.open() as book:
            note = book.find(fault_id)
            if note is None:
                if must_be:
                    raise ClusterUsageError(f"there is no fault {fault_id}; see `fault list`")
                return Fault(self, FaultNote(id=fault_id, what="", text="nothing"))
            book.remove(lambda each: each.id == fault_id)
            if note.rules:
                self.gates.replace(book.rules)
            elif note.what == "pause":
                self._resume_those_that_live(note.nodes, book)
            else:
                down = [each for each in note.nodes if not self.is_running(each)]
                self.launcher.start(down)
        if note.what in ("kill", "stop"):
            self.launcher.wait_until_listening(note.nodes, timeout_s=START_WITHIN_S)
        return Fault(self, note)

    def resolve(self, *targets: Target) -> tuple[int, ...]:
        """The nodes that are meant."""
        return resolve_all(targets, self)

    # Inside.

    @property
    def book(self) -> FaultBook:
        return FaultBook(self.launcher.directory)

    @property
    def gates(self) -> Gates:
        return Gates(self.launcher)

    def _between(
        self,
        what: str,
        source: Target,
        target: Target,
        words: str = "",
        fields: dict[str, object] | None = None,
        one_way: bool = False,
        for_s: float | None = None,
    ) -> Fault:
        sources, targets = resolve_host(source, self), resolve_host(target, self)
        found = rules.ways(sources, targets, one_way=one_way)
        if not found:
            raise ClusterUsageError(f"{what}: {source} and {target} are the same")
        arrow = "->" if one_way else "<->"
        text = f"{what} {told_hosts(sources)} {arrow} {told_hosts(targets)}{words}"
        return self._disturb(what, text, rules.along(what, found, **(fields or {})), for_s)

    def _disturb(self, what: str, text: str, wanted: Sequence[Rule], for_s: float | None) -> Fault:
        self.gates.check()
        until_ms = None
        if for_s is not None:
            _check_duration(for_s)
            until_ms = time.time_ns() // 1_000_000 + round(for_s * 1_000)
        with self._lock, self.book.open() as book:
            before = book.rules
            note = _note(book, what, text, wanted=wanted, until_ms=until_ms)
            try:
                self.gates.replace(book.rules)
            except ClusterError:
                self.gates.replace(before)
                raise
        return Fault(self, note)

    def _living(self, targets: tuple[Target, ...], for_s: float | None) -> tuple[int, ...]:
        """The nodes that are meant, all of which run."""
        if for_s is not None:
            _check_duration(for_s)
        nodes = self.resolve(*targets)
        self.must_run(nodes)
        return nodes

    def _note_down(
        self, what: str, text: str, nodes: tuple[int, ...], for_s: float | None
    ) -> Fault:
        with self.book.open() as book:
            book.take_nodes_off(nodes, "kill", "stop", "pause")
            note = _note(book, what, text, nodes=nodes)
        return self._undo_later(note, for_s)

    def _undo_later(self, note: FaultNote, for_s: float | None) -> Fault:
        fault = Fault(self, note)
        if for_s is not None:
            timer = threading.Timer(for_s, fault.undo)
            timer.daemon = True
            self._timers.append(timer)
            timer.start()
        return fault

    def _resume_those_that_live(self, nodes: Iterable[int], book: OpenBook) -> None:
        for each in nodes:
            process = self.launcher.process(each)
            if process is not None:
                process.signal(processes.RESUME)
                if self.launcher.plan.has_faults:
                    self.gates.tell(each, book.rules)

    def _names(self, nodes: Sequence[int]) -> str:
        if len(nodes) == 1:
            return self.name_of(nodes[0])
        words = {self.launcher.plan.by_id[each].word for each in nodes}
        return f"{words.pop() if len(words) == 1 else 'node'}s {told_hosts(nodes)}"


def _note(
    book: OpenBook,
    what: str,
    text: str,
    *,
    nodes: tuple[int, ...] = (),
    wanted: Sequence[Rule] = (),
    until_ms: int | None = None,
) -> FaultNote:
    fault_id = book.new_id()
    note = FaultNote(
        id=fault_id,
        what=what,
        text=text,
        nodes=nodes,
        rules=tuple(rules.numbered(fault_id, wanted, until_ms)),
        until_ms=until_ms,
    )
    book.notes.append(note)
    return note


def _check_duration(for_s: float) -> None:
    if for_s <= 0:
        raise ClusterUsageError(f"for: longer than nothing, not {for_s:g} s")
