"""UpdateFeatures (api key 57), versions 0 to 2.

Raises or lowers the agreed level of features. All updates of a request stand or fall together, so
there is one error for all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.controller.decision import Refusal
from tidelog.core.controller.feature_levels import Direction, FeatureUpdate, decide_features
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.controller.committed_answers import answer_when_committed
from tidelog.core.wire.messages.api_57_update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 57
VERSIONS = range(3)
FORWARDED = True

_DIRECTIONS = frozenset(int(direction) for direction in Direction)
_FINAL_VERSION_WITH_RESULTS = 1


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(UpdateFeaturesRequest)
    not_controller = UpdateFeaturesResponse(error_code=ErrorCode.NOT_CONTROLLER, error_message=None)
    if not node.metadata.is_active:
        request.answer(not_controller)
        return
    decided = decide_features(
        node.metadata.decided_image,
        [_update(update) for update in call.feature_updates],
        min_insync_replicas=node.settings.integer("min.insync.replicas"),
    )
    if isinstance(decided, Refusal):
        error, message = decided
        answer = UpdateFeaturesResponse(error_code=error, error_message=message)
    else:
        if not call.validate_only:
            node.active_controller.propose(decided, (), now_ms)
        answer = _done(call, request.version)
    answer_when_committed(node.metadata, request, answer, otherwise=not_controller, now_ms=now_ms)


def _update(update: FeatureUpdateKey) -> FeatureUpdate:
    is_known = update.upgrade_type in _DIRECTIONS
    return FeatureUpdate(
        name=update.feature,
        level=update.max_version_level,
        direction=Direction(update.upgrade_type) if is_known else None,
    )


def _done(call: UpdateFeaturesRequest, version: int) -> UpdateFeaturesResponse:
    results = [
        UpdatableFeatureResult(feature=update.feature, error_message=None)
        for update in call.feature_updates
        if version <= _FINAL_VERSION_WITH_RESULTS
    ]
    return UpdateFeaturesResponse(error_message=None, results=results)
