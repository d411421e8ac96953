"""What a new cluster agrees on before anything else: its features, and one minimum in-sync set."""

from __future__ import annotations

from tidelog.core.controller.configs import MIN_INSYNC_REPLICAS
from tidelog.core.metadata.features import BOOTSTRAP
from tidelog.core.metadata.image import CLUSTER_DEFAULTS, ClusterImage
from tidelog.core.metadata.records import ConfigRecord, FeatureLevelRecord, MetadataRecord


def decide_bootstrap(image: ClusterImage, *, min_insync_replicas: int) -> list[MetadataRecord]:
    """Nothing once it has."""
    records: list[MetadataRecord] = []
    if not image.features:
        records += [
            FeatureLevelRecord(name=name, feature_level=level) for name, level in BOOTSTRAP.items()
        ]
    if MIN_INSYNC_REPLICAS not in image.cluster_config():
        records.append(
            ConfigRecord(
                resource_type=CLUSTER_DEFAULTS.type,
                resource_name=CLUSTER_DEFAULTS.name,
                name=MIN_INSYNC_REPLICAS,
                value=str(min_insync_replicas),
            )
        )
    return records
