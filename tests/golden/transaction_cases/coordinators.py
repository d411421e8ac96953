"""FindCoordinator for transactional ids."""

from __future__ import annotations

from tests.golden.cases.registry import transaction_case
from tests.golden.talk import Talk

TRANSACTION = 1


@transaction_case("FindCoordinator", 1, 2, 3)
def of_one_transactional_id(talk: Talk, version: int) -> None:
    """One key, as old clients ask."""
    talk.ask("FindCoordinator", version, key=talk.name("x"), key_type=TRANSACTION)


@transaction_case("FindCoordinator", 4, 5, 6)
def of_two_transactional_ids(talk: Talk, version: int) -> None:
    """Two keys; their order is that of the request."""
    keys = [talk.name("x"), talk.name("y")]
    talk.ask("FindCoordinator", version, coordinator_keys=keys, key_type=TRANSACTION)


@transaction_case("FindCoordinator", 1, 6)
def of_an_empty_transactional_id(talk: Talk, version: int) -> None:
    """An empty key has a coordinator like any other."""
    keys = {"coordinator_keys": [""]} if version >= 4 else {"key": ""}
    talk.ask("FindCoordinator", version, key_type=TRANSACTION, **keys)


@transaction_case("FindCoordinator", 4, 6)
def of_one_transactional_id_twice(talk: Talk, version: int) -> None:
    """The same key twice in one request."""
    keys = [talk.name("x"), talk.name("x")]
    talk.ask("FindCoordinator", version, coordinator_keys=keys, key_type=TRANSACTION)
