"""What a new cluster agrees on, and the blocks of producer ids."""

from __future__ import annotations

from tests.unit.core.metadata.given import apply, broker, image
from tidelog.core.controller.bootstrap import decide_bootstrap
from tidelog.core.controller.producer_ids import decide_block
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.metadata.records import FeatureLevelRecord


def test_a_new_cluster_agrees_on_features_and_on_its_minimum_in_sync_set() -> None:
    cluster = ClusterImage()

    records = decide_bootstrap(cluster, min_insync_replicas=1)
    apply(cluster, records)

    first = records[0]
    assert isinstance(first, FeatureLevelRecord)
    assert first.name == "metadata.version"
    assert cluster.features == {
        "metadata.version": 30,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "transaction.version": 2,
    }
    assert cluster.cluster_config() == {"min.insync.replicas": "1"}
    assert decide_bootstrap(cluster, min_insync_replicas=2) == []


def test_producer_id_blocks_never_overlap() -> None:
    cluster = image(broker(1), broker(2))
    given: list[int] = []

    for broker_id in (1, 2, 1):
        record, block = decide_block(cluster, broker_id=broker_id)
        assert record.broker_epoch == cluster.brokers[broker_id].broker_epoch
        apply(cluster, [record])
        given += block

    assert given == list(range(3_000))
