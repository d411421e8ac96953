"""What members of KIP-848 groups must do by when: live, give back, and, if classic, join and sync.

None of it is in the log; a successor begins it anew.
"""

from __future__ import annotations

from collections.abc import Callable

from tidelog.core.groups.consumer_member import ConsumerMember, MemberState
from tidelog.core.groups.group_deadlines import DeadlineKey, DeadlineKind, GroupDeadlines
from tidelog.core.groups.group_settings import ConsumerGroupSettings


class ConsumerDeadlines:
    """A member of the new kind has time to give back, a classic one to join and then to sync."""

    def __init__(self, settings: Callable[[str], ConsumerGroupSettings]) -> None:
        self._settings = settings
        self._deadlines = GroupDeadlines()

    def next_deadline_ms(self) -> int | None:
        return self._deadlines.next_deadline_ms()

    def pop_due(self, now_ms: int) -> DeadlineKey | None:
        return self._deadlines.pop_due(now_ms)

    def renew_session(self, group_id: str, member: ConsumerMember, now_ms: int) -> None:
        """A classic member has said how long its session is."""
        timeout_ms = (
            self._settings(group_id).session_timeout_ms
            if member.classic is None
            else member.classic.session_timeout_ms
        )
        key = DeadlineKey(DeadlineKind.SESSION, group_id, member.member_id)
        self._deadlines.schedule(key, now_ms + timeout_ms)

    def await_revocation(self, group_id: str, member: ConsumerMember, now_ms: int) -> None:
        """The time begins when the member is asked to give back these partitions."""
        key = DeadlineKey(DeadlineKind.REVOCATION, group_id, member.member_id)
        is_unrevoked = member.state is MemberState.UNREVOKED_PARTITIONS
        if member.classic is not None or not is_unrevoked:
            self._deadlines.cancel(key)
        elif key not in self._deadlines:
            self._deadlines.schedule(key, now_ms + member.rebalance_timeout_ms)

    def restart_revocation(self, group_id: str, member: ConsumerMember, now_ms: int) -> None:
        """The member is asked for other partitions than before."""
        self._deadlines.cancel(DeadlineKey(DeadlineKind.REVOCATION, group_id, member.member_id))
        self.await_revocation(group_id, member, now_ms)

    def await_join(self, group_id: str, member: ConsumerMember, now_ms: int) -> None:
        """A classic member was told to join again, now or before."""
        key = DeadlineKey(DeadlineKind.JOIN, group_id, member.member_id)
        if key not in self._deadlines:
            self._deadlines.schedule(key, now_ms + member.rebalance_timeout_ms)

    def await_sync(self, group_id: str, member: ConsumerMember, now_ms: int) -> None:
        """A classic member has joined, and has to fetch its assignment."""
        self._deadlines.cancel(DeadlineKey(DeadlineKind.JOIN, group_id, member.member_id))
        key = DeadlineKey(DeadlineKind.SYNC, group_id, member.member_id)
        self._deadlines.schedule(key, now_ms + member.rebalance_timeout_ms)

    def note_synced(self, group_id: str, member_id: str) -> None:
        self._deadlines.cancel(DeadlineKey(DeadlineKind.SYNC, group_id, member_id))

    def note_new_protocol(self, group_id: str, member_id: str) -> None:
        """The member is not classic: nobody waits for its join and sync."""
        for kind in (DeadlineKind.JOIN, DeadlineKind.SYNC):
            self._deadlines.cancel(DeadlineKey(kind, group_id, member_id))

    def cancel(self, group_id: str, member_id: str) -> None:
        """The member is gone."""
        for kind in DeadlineKind:
            self._deadlines.cancel(DeadlineKey(kind, group_id, member_id))

    def check(self) -> None:
        self._deadlines.check()

    def check_member(self, group_id: str, member: ConsumerMember) -> None:
        """Nobody can keep a partition from others for ever."""
        member_id = member.member_id
        key = DeadlineKey(DeadlineKind.SESSION, group_id, member_id)
        assert key in self._deadlines, f"nobody watches {member_id}"
        is_unrevoked = member.state is MemberState.UNREVOKED_PARTITIONS
        if is_unrevoked and member.revoking and member.classic is None:
            awaited = DeadlineKey(DeadlineKind.REVOCATION, group_id, member_id)
            assert awaited in self._deadlines, f"{member_id} may take for ever"
