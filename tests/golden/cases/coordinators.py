"""FindCoordinator where nobody coordinates.

A single Kafka with default settings cannot make its internal topics, which want three replicas, so
it has no coordinator either.
"""

from __future__ import annotations

from tests.golden.cases.registry import case
from tests.golden.talk import Talk

GROUP, TRANSACTION, SHARE, UNKNOWN_KIND = 0, 1, 2, 9


@case("FindCoordinator", 0, 3)
def of_a_group(talk: Talk, version: int) -> None:
    """The coordinator of one group."""
    talk.ask("FindCoordinator", version, key="someone")


@case("FindCoordinator", 4, 6)
def of_two_groups(talk: Talk, version: int) -> None:
    """The coordinators of two groups."""
    talk.ask("FindCoordinator", version, coordinator_keys=["a", "b"], key_type=GROUP)


@case("FindCoordinator", 1, 6)
def of_a_transactional_id(talk: Talk, version: int) -> None:
    """The coordinator of one transactional id."""
    keys = {"coordinator_keys": ["a"]} if version >= 4 else {"key": "a"}
    talk.ask("FindCoordinator", version, key_type=TRANSACTION, **keys)


@case("FindCoordinator", 1, 3)
def of_an_unknown_kind(talk: Talk, version: int) -> None:
    """A kind of key that nobody has heard of."""
    talk.ask("FindCoordinator", version, key="someone", key_type=UNKNOWN_KIND)


@case("FindCoordinator", 4, 6)
def of_keys_of_an_unknown_kind(talk: Talk, version: int) -> None:
    """A kind of key that nobody has heard of, for two keys."""
    talk.ask("FindCoordinator", version, coordinator_keys=["a", "b"], key_type=UNKNOWN_KIND)


@case("FindCoordinator", 4, 6)
def of_no_key_at_all(talk: Talk, version: int) -> None:
    """An empty list of keys."""
    talk.ask("FindCoordinator", version, coordinator_keys=[], key_type=GROUP)


@case("FindCoordinator", 4, 5)
def of_a_share_group_before_there_were_any(talk: Talk, version: int) -> None:
    """Share groups came with version 6."""
    talk.ask("FindCoordinator", version, coordinator_keys=["group:id:0"], key_type=SHARE)
