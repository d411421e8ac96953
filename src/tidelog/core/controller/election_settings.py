"""The two settings on which elections hang, as they count for a topic in the whole cluster.

The minimum in-sync set is the cluster's affair (KIP-966): a broker's own value counts nowhere. The
file of the deciding node is the last resort.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidelog.core.controller.configs import MIN_INSYNC_REPLICAS
from tidelog.core.metadata.features import ELIGIBLE_LEADER_REPLICAS_VERSION
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.model.config import BadSetting, Value
from tidelog.core.model.topic_config import TOPIC_SETTINGS

UNCLEAN_ELECTION = "unclean.leader.election.enable"


class ElectionSettings:
    """Reads an image and the texts of a node's file; good for one decision."""

    def __init__(self, image: ClusterImage, file: Mapping[str, str]) -> None:
        self._image = image
        self._layers = (image.cluster_config(), file)
        self._inherited: dict[str, Value] = {}

    @property
    def keeps_eligible(self) -> bool:
        return self._image.features.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0

    def min_insync_replicas(self, topic: str) -> int:
        """Never more than there are replicas: else a small topic could never leave its ELR."""
        replicas = self._image.topics[topic].partitions[0].replicas
        return min(self.configured_min_insync_replicas(topic), len(replicas))

    def configured_min_insync_replicas(self, topic: str) -> int:
        value = self._value(topic, MIN_INSYNC_REPLICAS)
        assert isinstance(value, int)
        return value

    def allows_unclean(self, topic: str) -> bool:
        return self._value(topic, UNCLEAN_ELECTION) is True

    def _value(self, topic: str, name: str) -> Value:
        own = self._image.topic_config(topic).get(name)
        if own is not None:
            try:
                return TOPIC_SETTINGS[name].parse(own)
            except BadSetting:
                pass
        if name not in self._inherited:
            self._inherited[name] = self._inherit(name)
        return self._inherited[name]

    def _inherit(self, name: str) -> Value:
        for layer in self._layers:
            text = layer.get(name)
            if text is not None:
                try:
                    return TOPIC_SETTINGS[name].parse(text)
                except BadSetting:
                    continue
        return TOPIC_SETTINGS[name].default
