"""The rules by which this node decides about topics: its defaults and what it knows of settings."""

from __future__ import annotations

from random import Random

from tidelog.core.controller.topics import CreationRules
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.model.config_resolution import BrokerLayers, SettingRules
from tidelog.core.node.settings import NodeSettings


def creation_rules(
    settings: NodeSettings, decided_image: ClusterImage, random: Random
) -> CreationRules:
    return CreationRules(
        default_partitions_count=settings.integer("num.partitions"),
        default_replication_factor=settings.integer("default.replication.factor"),
        configs=SettingRules(broker_layers(settings, decided_image)),
        random=random,
    )


def broker_layers(settings: NodeSettings, image: ClusterImage) -> BrokerLayers:
    """What this broker was given: for itself, for all brokers, and at its start."""
    return BrokerLayers(
        broker=image.broker_config(settings.node_id),
        cluster=image.cluster_config(),
        file=settings.texts,
    )
