"""The rules by which this node decides about topics: its defaults and what it knows of settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.controller.topics import CreationRules
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.model.config_resolution import BrokerLayers, SettingRules

if TYPE_CHECKING:
    from tidelog.core.node.node import Node


def creation_rules(node: Node) -> CreationRules:
    return CreationRules(
        default_partitions_count=node.settings.integer("num.partitions"),
        default_replication_factor=node.settings.integer("default.replication.factor"),
        configs=SettingRules(broker_layers(node, node.metadata.decided_image)),
        random=node.random,
    )


def broker_layers(node: Node, image: ClusterImage) -> BrokerLayers:
    """What this broker was given: for itself, for all brokers, and at its start."""
    return BrokerLayers(
        broker=image.broker_config(node.settings.node_id),
        cluster=image.cluster_config(),
        file=node.settings.texts,
    )
