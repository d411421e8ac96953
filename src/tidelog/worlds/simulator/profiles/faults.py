"""What happens to a cluster: each verb of a step, and the operator who starts what is down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidelog.worlds.simulator.cluster import host_of
from tidelog.worlds.simulator.network import Conditions
from tidelog.worlds.simulator.profiles.context import USUAL, RunContext
from tidelog.worlds.simulator.profiles.damage import Damages
from tidelog.worlds.simulator.steps import PlanStep

BAD = Conditions(chop_chance=0.5, stall_chance=0.02, break_chance=0.005, resend_us=50_000)
SLOW_US = (5_000, 80_000)
WATCH_MS = 25
LAG_MS = 150
AMID_DELETION_MS = 1_500
"""How long a power loss waits for the deletion of a segment."""


@dataclass(frozen=True, slots=True)
class Struck:
    """A step of the plan was carried out, on this host if it had to be found first."""

    step: str
    host: str | None


class ClusterFaults:
    """Each method injects one kind of fault."""

    def __init__(self, context: RunContext) -> None:
        self.context = context
        self.cluster = context.cluster
        self.network = context.network
        self.random = context.world.random_for("faults")
        self.damages = Damages(context, self.random)
        self._start_us: dict[int, int] = {}
        """When the operator may start a node that is down."""
        self._verbs: dict[str, Callable[[PlanStep], str | None]] = {
            "kill": self._on_host(self._kill),
            "stop": self._on_host(self._stop),
            "pause": self._on_host(self._pause),
            "lose power": self._on_host(self._lose_power),
            "lose power and a checkpoint": self._on_host(self._lose_power_and_checkpoint),
            "lose power amid deletion": self._on_host(self._lose_power_amid_deletion),
            "lose power amid deletion and a checkpoint": self._on_host(
                self._lose_power_and_checkpoint_amid_deletion
            ),
            "isolate": self._on_host(self._isolate),
            "fill disk": self._on_host(self._fill_disk),
            "fail disk": self._on_host(self._fail_disk),
            "fail sync": self._on_host(self._fail_sync),
            "flip bit": self._flip_bit,
            "flip header bit": self._flip_header_bit,
            "jump clock": self._on_host(self._jump_clock),
            "wipe": self._on_host(self._wipe),
            "kill leader": self._on_leader(self._kill),
            "stop leader": self._on_leader(self._stop),
            "pause leader": self._on_leader(self._pause),
            "lose power of leader": self._on_leader(self._lose_power),
            "isolate leader": self._on_leader(self._isolate),
            "kill controller": self._on_controller(self._kill),
            "kill all": self._on_all(self._kill),
            "lose all power": self._on_all(self._lose_power),
            "cut": self._cut,
            "cut one way": self._cut,
            "slow down": self._slow_down,
            "hold": self._hold,
            "worsen network": self._worsen_network,
            "crash while joining": self._crash_while_joining,
        }

    def knows(self, step: PlanStep) -> bool:
        return step.verb in self._verbs

    def strike(self, step: PlanStep) -> None:
        """Carry out a step, and write down whom it hit."""
        host = self._verbs[step.verb](step)
        self.context.world.trace.emit("faults", Struck(str(step).strip(), host))

    def watch(self) -> None:
        """The operator: whatever is down is started again, after repairing its disk."""
        now_us = self.context.world.now_us
        for node_id, process in self.cluster.processes.items():
            if process.is_up:
                continue
            if self.context.is_healed:
                process.store.heal()
                self._start(node_id)
            elif node_id not in self._start_us:
                self._start_us[node_id] = now_us + self.random.randint(50_000, 600_000)
            elif now_us >= self._start_us[node_id]:
                self._start(node_id)
        self.context.world.after(WATCH_MS * 1_000, self.watch)

    def heal_everything(self) -> None:
        """From now on all is well, and everybody runs."""
        self.network.conditions = USUAL
        self.network.heal_all()
        if not self.context.plan.serves_damage:
            self.damages.repair_all()
        for node_id, process in self.cluster.processes.items():
            process.store.heal()
            process.wake()
            if not process.is_up:
                self._start(node_id)

    # Processes.

    def _kill(self, node_id: int, for_ms: int) -> None:
        self._down_until(node_id, for_ms)
        self.cluster.kill(node_id)

    def _stop(self, node_id: int, for_ms: int) -> None:
        if self.cluster.process(node_id).is_up:
            self._down_until(node_id, for_ms)
            self.cluster.begin_stop(node_id)

    def _lose_power(self, node_id: int, for_ms: int) -> None:
        """Also when the process is down already: what it left unsynced goes now."""
        self._down_until(node_id, for_ms)
        if not self.cluster.process(node_id).is_up:
            self.context.observation.lose_unsynced(node_id, "power lost while down")
        self.cluster.lose_power(node_id)

    def _lose_power_and_checkpoint(self, node_id: int, for_ms: int) -> None:
        """A checkpoint only saves work: without one, and whatever names come back, no record may
        go. No excuse is written down for it."""
        self._lose_power(node_id, for_ms)
        store = self.cluster.process(node_id).store
        paths = [path for path, _ in store.files() if path.endswith("-offset-checkpoint")]
        if not paths:
            return
        path = self.random.choice(paths)
        if self.random.random() < 0.5:
            store.lose_name(path)
        else:
            store.lose_content(path, bytes_left=self.random.randint(1, 40))

    def _lose_power_amid_deletion(self, node_id: int, for_ms: int) -> None:
        self._amid_deletion(node_id, lambda: self._lose_power(node_id, for_ms))

    def _lose_power_and_checkpoint_amid_deletion(self, node_id: int, for_ms: int) -> None:
        self._amid_deletion(node_id, lambda: self._lose_power_and_checkpoint(node_id, for_ms))

    def _amid_deletion(
        self, node_id: int, act: Callable[[], None], patience_ms: int = AMID_DELETION_MS
    ) -> None:
        """While names of deleted segments are gone, but not durably so: any of them come back."""
        changes = self.cluster.process(node_id).store.unsynced_changes()
        is_amid = any(change.new is not None and ".log." in change.new for change in changes)
        if is_amid or not patience_ms:
            act()
        else:
            self._after(1, lambda: self._amid_deletion(node_id, act, patience_ms - 1))

    def _pause(self, node_id: int, for_ms: int) -> None:
        self.cluster.pause(node_id)
        self._after(for_ms, lambda: self.cluster.wake(node_id))

    def _wipe(self, node_id: int, for_ms: int) -> None:
        self._kill(node_id, for_ms)
        self.context.observation.lose_everything(node_id)
        self.cluster.wipe(node_id)

    def _start(self, node_id: int) -> None:
        self._start_us.pop(node_id, None)
        process = self.cluster.process(node_id)
        if process.halt_reason is not None:
            process.store.heal()
        process.start()

    def _down_until(self, node_id: int, for_ms: int) -> None:
        until_us = self.context.world.now_us + for_ms * 1_000
        self._start_us[node_id] = max(self._start_us.get(node_id, 0), until_us)

    # Disks and clocks.

    def _fill_disk(self, node_id: int, for_ms: int) -> None:
        store = self.cluster.process(node_id).store
        store.fill_up(bytes_left=self.random.choice((0, 300, 3_000)))
        self._after(for_ms, store.heal)

    def _fail_disk(self, node_id: int, for_ms: int) -> None:
        self.cluster.process(node_id).store.fail_operation(after=self.random.randint(0, 60))

    def _fail_sync(self, node_id: int, for_ms: int) -> None:
        self.cluster.process(node_id).store.fail_next_sync()

    def _flip_bit(self, step: PlanStep) -> str | None:
        """Often while a follower lags a little: then it asks for what has decayed."""
        known = self.context.checker.model.partitions.get(step.who[0])
        if known is None or known.leader is None or self.random.random() < 0.3:
            return self._flip(step)
        followers = [each for each in known.replicas if each != known.leader]
        if not followers:
            return self._flip(step)
        way = (host_of(known.leader), host_of(self.random.choice(followers)), "replica")
        self.network.hold(*way)

        def flip() -> None:
            self._flip(step)
            self.network.release(*way)

        self._after(LAG_MS, flip)
        return host_of(known.leader)

    def _flip_header_bit(self, step: PlanStep) -> str | None:
        return self._flip(step, in_header=True)

    def _flip(self, step: PlanStep, *, in_header: bool = False) -> str | None:
        partition = step.who[0]
        node_id = self.damages.flip(partition, in_header=in_header)
        if node_id is None:
            return None
        self._after(step.for_ms, lambda: self.damages.repair(partition, node_id))
        return host_of(node_id)

    def _jump_clock(self, node_id: int, for_ms: int) -> None:
        self.cluster.process(node_id).clock_offset_ms += self.random.choice((-3_000, 4_000))

    # The network.

    def _isolate(self, node_id: int, for_ms: int) -> None:
        """From the other nodes; clients still reach it."""
        self.cluster.isolate(node_id)
        host = host_of(node_id)
        others = [host_of(other) for other in self.cluster.node_ids if other != node_id]
        ways = [(host, other) for other in others] + [(other, host) for other in others]
        self._after(for_ms, lambda: self._heal(ways))

    def _cut(self, step: PlanStep) -> str | None:
        source, target = step.who
        ways = [(source, target)]
        if step.verb == "cut":
            ways.append((target, source))
        for way in ways:
            self.network.cut(*way)
        self._after(step.for_ms, lambda: self._heal(ways))
        return None

    def _heal(self, ways: list[tuple[str, str]]) -> None:
        for source, target in ways:
            self.network.heal(source, target)

    def _slow_down(self, step: PlanStep) -> str | None:
        source, target = step.who
        low_us, high_us = SLOW_US
        self.network.slow_down(source, target, delay_us_min=low_us, delay_us_max=high_us)
        self._after(
            step.for_ms,
            lambda: self.network.slow_down(
                source,
                target,
                delay_us_min=USUAL.delay_us_min,
                delay_us_max=USUAL.delay_us_max,
            ),
        )
        return None

    def _hold(self, step: PlanStep) -> str | None:
        source, target, purpose = step.who
        self.network.hold(source, target, purpose)
        self._after(step.for_ms, lambda: self.network.release(source, target, purpose))
        return None

    def _worsen_network(self, step: PlanStep) -> str | None:
        self.network.conditions = BAD
        self._after(step.for_ms, self._better_network)
        return None

    def _better_network(self) -> None:
        self.network.conditions = USUAL

    def _crash_while_joining(self, step: PlanStep) -> str | None:
        """A follower restarts; when its leader has asked to let it in again, it loses its power.

        The leader's request is held back until the follower runs for the third time, so that the
        controller gets the epoch of a process that is gone (KIP-903).
        """
        known = self.context.checker.model.partitions.get(step.who[0])
        controller = self.context.active_controller()
        if known is None or known.leader is None or controller in (None, known.leader):
            return None
        followers = sorted(known.isr - {known.leader, controller})
        if not followers:
            return None
        follower, leader = followers[0], known.leader
        way = (host_of(leader), host_of(controller or 0), "controller")
        self._kill(follower, 20)
        self._after(40, lambda: self.network.hold(*way))
        self._after(250, lambda: self._lose_power(follower, 10))
        self._after(250 + step.for_ms, lambda: self.network.release(*way))
        return host_of(follower)

    # Whom it hits.

    def _on_host(self, act: Callable[[int, int], None]) -> Callable[[PlanStep], str | None]:
        def strike(step: PlanStep) -> str | None:
            act(self.context.node_of(step.who[0]), step.for_ms)
            return None

        return strike

    def _on_leader(self, act: Callable[[int, int], None]) -> Callable[[PlanStep], str | None]:
        def strike(step: PlanStep) -> str | None:
            node_id = self.context.leader_of(step.who[0])
            if node_id is None:
                return None
            act(node_id, step.for_ms)
            return host_of(node_id)

        return strike

    def _on_controller(self, act: Callable[[int, int], None]) -> Callable[[PlanStep], str | None]:
        def strike(step: PlanStep) -> str | None:
            node_id = self.context.active_controller()
            if node_id is None:
                return None
            act(node_id, step.for_ms)
            return host_of(node_id)

        return strike

    def _on_all(self, act: Callable[[int, int], None]) -> Callable[[PlanStep], str | None]:
        def strike(step: PlanStep) -> str | None:
            for node_id in self.cluster.node_ids:
                act(node_id, step.for_ms)
            return None

        return strike

    def _after(self, delay_ms: int, act: Callable[[], None]) -> None:
        """Undo something, unless everything was healed in the meantime."""

        def undo() -> None:
            if not self.context.is_healed:
                act()

        self.context.world.after(delay_ms * 1_000, undo)
