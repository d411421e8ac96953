"""Profile `groups`: members of both group protocols, and a cluster whose coordinators come and go.

In the first phase members join, commit and die, committers and an administrator change offsets, and
the steps of the plan strike at brokers, links and members. Then everything is healed and every
member runs: within a bounded time each group's partitions are all owned, nothing waits in a
coordinator, and what was committed last is what a fetch gives. The invariants of the profile
`replication` hold all the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from tidelog.core.model.topic_name import OFFSETS_TOPIC
from tidelog.judge.anomalies import Anomaly
from tidelog.judge.groups.group_checks import judge_groups
from tidelog.judge.groups.group_history import GroupAtRest
from tidelog.worlds.simulator.cluster import host_of
from tidelog.worlds.simulator.disk import SimDisk
from tidelog.worlds.simulator.profiles.cluster_run import LIVENESS_MS, READY_MS, ClusterRun
from tidelog.worlds.simulator.profiles.faults import Struck
from tidelog.worlds.simulator.profiles.groups_clients import (
    CoordinatorClient,
    GroupAdmin,
    OffsetReader,
    SoloCommitter,
)
from tidelog.worlds.simulator.profiles.groups_consumer_members import ConsumerProtocolMember
from tidelog.worlds.simulator.profiles.groups_context import GroupsContext
from tidelog.worlds.simulator.profiles.groups_members import ClassicGroupMember, MemberPhase
from tidelog.worlds.simulator.profiles.groups_plan import SOLO, make_groups_plan
from tidelog.worlds.simulator.profiles.liveness import LivenessCheck
from tidelog.worlds.simulator.steps import ChosenStep, PlanStep

SimulatedMember = ClassicGroupMember | ConsumerProtocolMember
REST_MS = 15_000
"""Within this time every group is at rest: sessions and rebalances take a second each."""
ELECT_AFTER_MS = (200, 500, 900)
"""How long after its return a deposed leader is elected: it must be in sync before."""
FAIL_OVER_AFTER_US = 80_000
"""After this time a deletion is answered, most of the time, and little is committed again."""
WORK_MS = 400
"""How long clients go on to commit after the last fault."""
IDLE_MS = 500
"""How long it must stay so."""


class GroupsRun(ClusterRun):
    """One seed, with all steps of its plan or only some of them."""

    def __init__(
        self,
        seed: int,
        *,
        disk_type: type[SimDisk] = SimDisk,
        only: Sequence[ChosenStep] | None = None,
    ) -> None:
        self.plan = make_groups_plan(seed)
        self.groups = GroupsContext(self.plan, disk_type=disk_type)
        super().__init__(self.groups, only=only)
        self.members: dict[str, SimulatedMember] = {
            plan.name: (
                ConsumerProtocolMember(self.groups, plan)
                if plan.remote_assignor
                else ClassicGroupMember(self.groups, plan)
            )
            for plan in self.plan.members
        }
        self.committers = [SoloCommitter(self.groups, name) for name in self.plan.committers]
        self.readers = [OffsetReader(self.groups, name) for name in (*self.plan.groups, SOLO)]
        self.admin.know_topic(OFFSETS_TOPIC, self.plan.offsets_partitions)
        self.group_admin = GroupAdmin(self.groups)
        self.liveness = LivenessCheck(self.context, [], [])
        self._gone: set[str] = set()
        """Members that never come back."""
        self._verbs: dict[str, Callable[[str, int], None]] = {
            "kill member": self._kill_member,
            "kill member for good": self._kill_for_good,
            "kill member and coordinator": self._kill_with_coordinator,
            "kill group": self._kill_group,
            "leave": self._leave,
            "cut member off": self._cut_member_off,
            "depose and elect again": self._depose,
            "delete group and fail over": self._delete_and_fail_over,
        }

    # Phases.

    def _set_up(self) -> None:
        self._form()
        for member in self.members.values():
            member.start()
        for committer in self.committers:
            committer.start()
        for reader in self.readers:
            reader.start()

    def _liveness_phase(self) -> None:
        """Everybody connects anew: no answer is lost any more, so each must come."""
        context = self.context
        context.is_healed = True
        self.faults.heal_everything()
        for client in self._clients():
            client.disconnect()
        for name, member in self.members.items():
            member.reconnect()
            if name not in self._gone:
                member.start()
        self.world.run_for(WORK_MS)
        context.is_over = True
        self._until(self.liveness.is_reached, LIVENESS_MS)
        self._rest()
        self._fetch_finally()
        for reader in self.readers:
            reader.disconnect()
        context.observation.check_all()

    def _rest(self) -> None:
        """Wait until every group is at rest, or for so long that it should be."""
        deadline_us = self.world.now_us + REST_MS * 1_000
        restless_us = self.world.now_us
        while self.world.now_us < min(deadline_us, restless_us + IDLE_MS * 1_000):
            self.world.run_for(50)
            if next(self._unrest(), None) is not None:
                restless_us = self.world.now_us
        for group in self.plan.groups:
            members = self._living(group)
            self.groups.record_group(
                GroupAtRest(
                    at_us=self.world.now_us,
                    group=group,
                    partitions=tuple(self.groups.subscribed),
                    members=tuple(member.name for member in members),
                    owned=tuple(
                        (member.name, partition) for member in members for partition in member.owned
                    ),
                )
            )

    def _unrest(self) -> Iterator[str]:
        """What is not yet as it must become."""
        for group in self.plan.groups:
            members = self._living(group)
            if not members:
                continue
            owned = [partition for member in members for partition in member.owned]
            if sorted(owned) != sorted(self.groups.subscribed):
                yield f"{group} owns {owned}"
            if any(member.state is not MemberPhase.STABLE for member in members):
                yield f"{group} is not stable"
            if len({member.generation for member in members}) > 1:
                yield f"{group} has several generations"

    def _living(self, group: str) -> list[SimulatedMember]:
        return [
            member
            for name, member in self.members.items()
            if member.group == group and name not in self._gone
        ]

    def _fetch_finally(self) -> None:
        """What every group has committed, as its last coordinator knows it."""
        left = {reader.group: reader for reader in self.readers}

        def note(group: str, is_answered: bool) -> None:
            if is_answered:
                left.pop(group, None)

        def all_fetched() -> bool:
            for reader in list(left.values()):
                if reader.coordinator is None:
                    reader.find_coordinator()
                elif not reader.in_flight:
                    reader.fetch(partial(note, reader.group))
            return not left

        self._until(all_fetched, READY_MS)

    def _judge(self) -> list[Anomaly]:
        return judge_groups(self.groups.group_history)

    # Steps.

    def knows(self, step: PlanStep) -> bool:
        """Whether it is carried out here: what concerns members, or several things at once."""
        return step.verb in self._verbs

    def _strike(self, step: PlanStep) -> None:
        if self.context.is_healed:
            return
        if self.group_admin.knows(step):
            self.group_admin.act(step)
        elif self.knows(step):
            self._verbs[step.verb](step.who[0], step.for_ms)
        else:
            super()._strike(step)
            return
        self.world.trace.emit("faults", Struck(str(step).strip(), None))

    def _kill_member(self, name: str, for_ms: int) -> None:
        self.members[name].kill()
        self._start_after(name, for_ms)

    def _kill_for_good(self, name: str, for_ms: int) -> None:
        self._gone.add(name)
        self.members[name].kill()

    def _kill_with_coordinator(self, name: str, for_ms: int) -> None:
        """The next coordinator must find out that the member is gone."""
        self._kill_for_good(name, for_ms)
        self._kill_coordinator(self.members[name].group, for_ms)

    def _kill_coordinator(self, group: str, for_ms: int) -> None:
        coordinator = self.groups.coordinator_of(group).leader
        if coordinator is not None and not self.context.is_healed:
            step = PlanStep(self.world.now_ms, "kill", (host_of(coordinator),), for_ms)
            self.faults.strike(step)

    def _delete_and_fail_over(self, group: str, for_ms: int) -> None:
        """The next coordinator must find out that the offsets are gone."""
        self.group_admin.act(PlanStep(self.world.now_ms, "delete group", (group,)))
        self.world.after(FAIL_OVER_AFTER_US, lambda: self._kill_coordinator(group, for_ms))

    def _kill_group(self, group: str, for_ms: int) -> None:
        for name, member in self.members.items():
            if member.group == group:
                self._kill_member(name, for_ms)

    def _leave(self, name: str, for_ms: int) -> None:
        self.members[name].leave()
        self._start_after(name, for_ms)

    def _start_after(self, name: str, for_ms: int) -> None:
        def start() -> None:
            if name not in self._gone:
                self.members[name].start()

        self.world.after(for_ms * 1_000, start)

    def _depose(self, partition: str, for_ms: int) -> None:
        """A coordinator is cut off, replaced, and leads again in the same process."""
        now_ms = self.world.now_ms
        self.faults.strike(PlanStep(now_ms, "isolate leader", (partition,), for_ms))
        elect = PlanStep(now_ms, "elect preferred", (OFFSETS_TOPIC,))
        for after_ms in ELECT_AFTER_MS:
            self.world.after((for_ms + after_ms) * 1_000, lambda: self._strike(elect))

    def _cut_member_off(self, name: str, for_ms: int) -> None:
        ways = [
            way
            for node_id in self.context.cluster.node_ids
            for way in ((name, host_of(node_id)), (host_of(node_id), name))
        ]
        for way in ways:
            self.context.network.cut(*way)

        def heal() -> None:
            for way in ways:
                self.context.network.heal(*way)

        self.world.after(for_ms * 1_000, heal)

    def _clients(self) -> list[CoordinatorClient]:
        return [*self.committers, *self.readers, *self.group_admin.clients]
