"""Identity: a fresh directory is claimed once, a foreign one is refused."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from random import Random

import pytest

from tidelog.core.node.metadata.node_identity import CannotStart, NodeIdentity, claim_directories
from tidelog.core.storage import meta_properties
from tidelog.worlds.simulator.disk import SimDisk
from tidelog.worlds.simulator.durable_store import DurableStore
from tidelog.worlds.simulator.world import SimWorld


def a_disk(*directories: str) -> SimDisk:
    world = SimWorld(seed=1)
    disk = SimDisk(
        world=world,
        store=DurableStore(world.random_for("platter")),
        name="node",
        random=world.random_for("sync"),
        on_synced=lambda file, size_bytes: None,
        on_sync_failed=lambda file, reason: None,
    )
    for directory in directories:
        disk.make_directory(directory)
    disk.sync_directory_now("")
    return disk


def claimed(
    disk: SimDisk, *paths: str, seed: int = 1, node_id: int = 1, cluster_id: str | None = None
) -> NodeIdentity:
    return claim_directories(
        disk, paths, node_id=node_id, cluster_id=cluster_id, random=Random(seed)
    )


def test_a_fresh_node_makes_up_its_cluster_and_keeps_it() -> None:
    disk = a_disk("a", "b")

    first = claimed(disk, "a", "b", seed=1)
    disk.store.lose_power()
    second = claimed(disk, "a", "b", seed=2)

    assert first == second
    assert len(set(first.directory_ids)) == 2
    assert len(urlsafe_b64decode(first.cluster_id + "==")) == 16


def test_the_file_is_the_one_that_kafka_writes() -> None:
    disk = a_disk("a")

    identity = claimed(disk, "a", cluster_id="abc")

    assert identity.cluster_id == "abc"
    entries = meta_properties.read(disk, "a")
    assert entries is not None
    assert {**entries, "directory.id": ""} == {
        "version": "1",
        "node.id": "1",
        "cluster.id": "abc",
        "directory.id": "",
    }
    assert urlsafe_b64decode(entries["directory.id"] + "==") == identity.directory_ids[0]


def test_a_directory_that_is_added_later_joins_the_cluster_of_the_others() -> None:
    disk = a_disk("a", "b")
    first = claimed(disk, "a")

    both = claimed(disk, "b", "a", seed=2)

    assert both.cluster_id == first.cluster_id
    assert both.directory_ids[1] == first.directory_ids[0]


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ({"version": "1", "node.id": "2", "cluster.id": "abc"}, "belongs to node 2"),
        ({"version": "1", "node.id": "1", "cluster.id": "xyz"}, "belongs to cluster xyz"),
        ({"version": "1", "node.id": "1"}, "no cluster.id"),
        ({"version": "0", "broker.id": "1", "cluster.id": "abc"}, "version 0"),
        (
            {"version": "1", "node.id": "1", "cluster.id": "abc", "directory.id": "x"},
            "is not an id",
        ),
    ],
)
def test_a_foreign_directory_is_refused(entries: dict[str, str], reason: str) -> None:
    disk = a_disk("a")
    meta_properties.write(disk, "a", entries)

    with pytest.raises(CannotStart, match=reason):
        claimed(disk, "a", cluster_id="abc")


def test_two_directories_of_two_clusters_are_refused() -> None:
    disk = a_disk("a", "b")
    claimed(disk, "a", cluster_id="abc")
    claimed(disk, "b", cluster_id="xyz")

    with pytest.raises(CannotStart, match="belongs to cluster xyz, this is abc"):
        claimed(disk, "a", "b")


def test_a_directory_from_before_directories_had_ids_gets_one() -> None:
    disk = a_disk("a")
    meta_properties.write(disk, "a", {"version": "1", "node.id": "1", "cluster.id": "abc"})

    first = claimed(disk, "a", seed=1)

    assert claimed(disk, "a", seed=2) == first


def test_several_voters_must_be_told_the_id_that_they_share() -> None:
    disk = a_disk("a")

    with pytest.raises(CannotStart, match=r"no cluster\.id that they share"):
        claim_directories(disk, ["a"], node_id=1, cluster_id=None, is_alone=False, random=Random(1))

    given = claim_directories(
        disk, ["a"], node_id=1, cluster_id="abc", is_alone=False, random=Random(1)
    )
    assert given.cluster_id == "abc"
    found = claim_directories(
        disk, ["a"], node_id=1, cluster_id=None, is_alone=False, random=Random(1)
    )
    assert found == given, "the directory says it"
