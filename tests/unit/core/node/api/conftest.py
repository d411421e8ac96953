"""A metadata quorum for the tests of the APIs that nodes use among themselves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.core.node.quorums import QuorumCluster


@pytest.fixture(name="quorum")
def a_quorum() -> Iterator[QuorumCluster]:
    """Three nodes; node 1 leads quorum epoch 1."""
    quorum = QuorumCluster(settings={"metadata.log.max.record.bytes.between.snapshots": "1500"})
    quorum.come_to_rest()
    yield quorum
    for node in quorum.cluster.running.values():
        node.check()
