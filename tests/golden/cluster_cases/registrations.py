"""BrokerRegistration: who is let in, and who is not."""

from __future__ import annotations

from typing import Any

from tests.golden.cases.registry import cluster_case
from tests.golden.cluster_talk import ClusterTalk, controller

EDGES = (0, 4)
INCARNATION = b"incarnation-of-x"
DIRECTORY = b"directory-of-x-1"
METADATA_VERSION = 29
"""The cluster's level when it is new (4.3-IV0)."""


def register(talk: ClusterTalk, version: int, broker: int, **options: Any) -> Any:
    """Ask the active controller to let a broker in; options change the request's fields."""
    listener = {"name": "PLAINTEXT", "host": "nowhere", "port": 9, "security_protocol": 0}
    feature = {
        "name": "metadata.version",
        "min_supported_version": 7,
        "max_supported_version": METADATA_VERSION,
    }
    at = options.pop("at", None)
    fields: dict[str, Any] = {
        "broker_id": broker,
        "cluster_id": talk.cluster_id(),
        "incarnation_id": INCARNATION,
        "listeners": [listener],
        "features": [feature],
        "rack": None,
    }
    if version >= 2:
        fields["log_dirs"] = [DIRECTORY]
    place = controller(talk.active_controller() if at is None else at)
    return talk.ask("BrokerRegistration", version, on=place, **(fields | options))


@cluster_case("BrokerRegistration", *EDGES)
def of_another_cluster(talk: ClusterTalk, version: int) -> None:
    """A broker that believes to belong elsewhere."""
    register(talk, version, 7, cluster_id="elsewhere-elsewhere-22")


@cluster_case("BrokerRegistration", *EDGES)
def of_one_that_lives(talk: ClusterTalk, version: int) -> None:
    """A second process with the id of a broker that lives."""
    register(talk, version, 1)


@cluster_case("BrokerRegistration", *EDGES)
def of_a_negative_id(talk: ClusterTalk, version: int) -> None:
    """No broker has a negative id."""
    register(talk, version, -1)


@cluster_case("BrokerRegistration", *EDGES)
def without_listeners(talk: ClusterTalk, version: int) -> None:
    """A broker that nobody can reach."""
    register(talk, version, 7, listeners=[])


@cluster_case("BrokerRegistration", *EDGES)
def without_features(talk: ClusterTalk, version: int) -> None:
    """A broker that names no metadata version."""
    register(talk, version, 7, features=[])


@cluster_case("BrokerRegistration", *EDGES)
def with_too_old_features(talk: ClusterTalk, version: int) -> None:
    """A broker that cannot read this cluster's metadata."""
    feature = {"name": "metadata.version", "min_supported_version": 7, "max_supported_version": 8}
    register(talk, version, 7, features=[feature])


@cluster_case("BrokerRegistration", 2, 4)
def without_a_directory(talk: ClusterTalk, version: int) -> None:
    """A broker that has no place for its logs."""
    register(talk, version, 7, log_dirs=[])


@cluster_case("BrokerRegistration", 4)
def with_directories_that_are_taken(talk: ClusterTalk, version: int) -> None:
    """The same directory twice, and reserved ids."""
    register(talk, version, 7, log_dirs=[DIRECTORY, DIRECTORY])
    register(talk, version, 7, log_dirs=[bytes(15) + b"\x01"])


@cluster_case("BrokerRegistration", 1, 4)
def of_an_old_kind_of_broker(talk: ClusterTalk, version: int) -> None:
    """One that still migrates from ZooKeeper."""
    register(talk, version, 7, is_migrating_zk_broker=True)


@cluster_case("BrokerRegistration", *EDGES)
def at_a_standby(talk: ClusterTalk, version: int) -> None:
    """A controller that is not active lets nobody in."""
    register(talk, version, 7, at=talk.standby_controller())
