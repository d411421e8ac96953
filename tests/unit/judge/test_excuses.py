"""What an election excuses, and until when."""

from __future__ import annotations

import pytest

from tidelog.judge.excuses import ElectionHeld, ElectionSource, Excuses

PARTITION = "orders-0"


def elected(election: ElectionSource) -> Excuses:
    """Broker 1 led until 90; broker 2 was elected at 50 and holds nothing from offset 10 on."""
    return Excuses(
        [
            ElectionHeld(
                at_us=50,
                partition=PARTITION,
                leader=2,
                leader_epoch=1,
                election=election,
                kept_end_offset=10,
                believed_until_us=90,
            )
        ]
    )


@pytest.mark.parametrize(("since_us", "may_go"), [(40, True), (80, True), (91, False)])
def test_an_unclean_election_takes_also_what_its_predecessor_commits_unaware(
    since_us: int, may_go: bool
) -> None:
    """Alone in sync, it needs nobody else to commit until it hears that it leads no more."""
    excuses = elected(ElectionSource.UNCLEAN)

    assert excuses.committed_may_go(PARTITION, 12, since_us=since_us) is may_go
    assert not excuses.committed_may_go(PARTITION, 9, since_us=since_us), "that was kept"


@pytest.mark.parametrize("since_us", [40, 80])
def test_a_clean_election_takes_nothing_that_was_committed(since_us: int) -> None:
    excuses = elected(ElectionSource.CLEAN)

    assert not excuses.committed_may_go(PARTITION, 12, since_us=since_us)
    assert excuses.uncommitted_may_go(PARTITION, 12, since_us=since_us)
