"""FindCoordinator and transactional InitProducerId where there are coordinators.

The broker has its internal topics, with one partition and one replica each, so every group and
every transactional id is coordinated by it.
"""

from __future__ import annotations

from tests.golden.cases.registry import coordinated_case
from tests.golden.talk import Talk

GROUP, TRANSACTION = 0, 1
TIMEOUT_MS = 60_000
LONGEST_MS = 900_000
"""`transaction.max.timeout.ms`, as Kafka has it by itself."""


@coordinated_case("FindCoordinator", 0, 3)
def of_a_group(talk: Talk, version: int) -> None:
    """The coordinator of one group."""
    talk.ask("FindCoordinator", version, key="someone")


@coordinated_case("FindCoordinator", 4, 6)
def of_two_groups(talk: Talk, version: int) -> None:
    """The coordinators of two groups."""
    talk.ask("FindCoordinator", version, coordinator_keys=["a", "b"], key_type=GROUP)


@coordinated_case("FindCoordinator", 1, 6)
def of_a_transactional_id(talk: Talk, version: int) -> None:
    """The coordinator of one transactional id."""
    keys = {"coordinator_keys": ["a"]} if version >= 4 else {"key": "a"}
    talk.ask("FindCoordinator", version, key_type=TRANSACTION, **keys)


@coordinated_case("FindCoordinator", 0, 6)
def of_an_empty_name(talk: Talk, version: int) -> None:
    """A group may be called nothing at all."""
    keys = {"coordinator_keys": [""]} if version >= 4 else {"key": ""}
    talk.ask("FindCoordinator", version, **keys)


@coordinated_case("InitProducerId", 0, 5)
def of_a_transactional_producer(talk: Talk, version: int) -> None:
    """The same id comes back with the next epoch: whoever had it before is fenced."""
    name = talk.name("transaction")
    for _ in range(2):
        talk.ask(
            "InitProducerId", version, transactional_id=name, transaction_timeout_ms=TIMEOUT_MS
        )


@coordinated_case("InitProducerId", 0, 5)
def with_a_timeout_that_is_too_long(talk: Talk, version: int) -> None:
    """A transaction may not last longer than the broker allows."""
    talk.ask(
        "InitProducerId",
        version,
        transactional_id=talk.name("transaction"),
        transaction_timeout_ms=LONGEST_MS + 1,
    )


@coordinated_case("InitProducerId", 0, 5)
def with_a_timeout_of_zero(talk: Talk, version: int) -> None:
    """A transaction that may not last at all."""
    name = talk.name("transaction")
    talk.ask("InitProducerId", version, transactional_id=name, transaction_timeout_ms=0)


@coordinated_case("InitProducerId", 3, 5)
def with_an_id_that_nobody_has(talk: Talk, version: int) -> None:
    """A producer that names an id and epoch of which the coordinator knows nothing."""
    talk.ask(
        "InitProducerId",
        version,
        transactional_id=talk.name("transaction"),
        transaction_timeout_ms=TIMEOUT_MS,
        producer_id=talk.new_producer_id(),
        producer_epoch=3,
    )
