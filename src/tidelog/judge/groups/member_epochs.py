"""Member epochs of KIP-848 groups: what a member was answered stays true for every coordinator."""

from __future__ import annotations

from tidelog.judge.anomalies import EPOCH_DENIED, Anomaly
from tidelog.judge.groups.group_history import Deletions, GroupHistory, MemberHeartbeat

JOIN_EPOCH = 0


def epoch_denied(history: GroupHistory) -> list[Anomaly]:
    """What was answered to a member, and what a later answer says of it."""
    return [*_went_back(history), *_fenced_for_nothing(history)]


def _fenced_for_nothing(history: GroupHistory) -> list[Anomaly]:
    """A member was fenced in the epoch that it was last answered.

    Only its own heartbeats move it to another epoch. One whose answer was lost may have done that,
    but a member is taken in the epoch before as well; two such heartbeats may fence it.
    """
    earlier: dict[tuple[str, str], list[MemberHeartbeat]] = {}
    found = []
    beats = [it for it in history if isinstance(it, MemberHeartbeat)]
    for beat in sorted(beats, key=lambda it: it.invoked_us):
        before = earlier.setdefault((beat.group, beat.member), [])
        if beat.error == "FENCED_MEMBER_EPOCH" and not beat.from_deposed:
            answered = _last_answered(before)
            if answered is not None and answered.member_epoch == beat.sent_epoch:
                found.append(
                    EPOCH_DENIED.found(
                        at_us=beat.at_us,
                        partition="-",
                        group=beat.group,
                        member=beat.member,
                        epoch_before=answered.member_epoch,
                    )
                )
        before.append(beat)
    return found


def _last_answered(beats: list[MemberHeartbeat]) -> MemberHeartbeat | None:
    """With at most one after it that may have had an effect."""
    lost = 0
    for beat in reversed(beats):
        if beat.error == "COORDINATOR_LOAD_IN_PROGRESS":
            continue
        if beat.member_epoch is not None:
            return None if beat.from_deposed else beat
        lost += 1
        if lost > 1:
            return None
    return None


def _went_back(history: GroupHistory) -> list[Anomaly]:
    """Epochs that went back: of a member, or of a group as those who join it are answered.

    An epoch is answered when it is in the log for good, and whoever joins comes to the newest one.
    """
    deletions = Deletions(history)
    given: dict[str, list[MemberHeartbeat]] = {}
    found = []
    for beat in history:
        if (
            not isinstance(beat, MemberHeartbeat)
            or beat.member_epoch is None
            or beat.member_epoch <= JOIN_EPOCH
        ):
            continue
        before = given.setdefault(beat.group, [])
        if not beat.from_deposed:
            for earlier in before:
                is_compared = beat.sent_epoch == JOIN_EPOCH or earlier.member == beat.member
                if (
                    is_compared
                    and earlier.at_us < beat.invoked_us
                    and earlier.member_epoch is not None
                    and earlier.member_epoch > beat.member_epoch
                    and not deletions.between(beat.group, earlier.invoked_us, beat.at_us)
                ):
                    found.append(
                        EPOCH_DENIED.found(
                            at_us=beat.at_us,
                            partition="-",
                            group=beat.group,
                            member=beat.member,
                            epoch=beat.member_epoch,
                            member_before=earlier.member,
                            epoch_before=earlier.member_epoch,
                        )
                    )
                    break
        before.append(beat)
    return found
