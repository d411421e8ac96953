"""ApiVersions (api key 18), versions 0 to 5.

What this broker serves, and the features that the cluster has agreed on. Asked in a version that
does not exist it answers in version 0, with an error and its own versions, so that any client can
begin a conversation. From version 3 on the client says what software it is, from version 5 on
which node of which cluster it means to reach: one that was led elsewhere, by an old address for
example, learns so before it asks anything, and begins again with its bootstrap servers (KIP-1242).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tidelog.core.metadata import features
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.codec import encode
from tidelog.core.wire.messages.api_18_api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from tidelog.core.wire.sentinels import NO_NODE

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 18
VERSIONS = range(6)
ANSWERS_ANY_VERSION = True

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_FIRST_VERSION_WITH_SOFTWARE = 3
_FIRST_VERSION_WITH_LEVEL_0 = 4
"""Older clients cannot read a feature whose lowest level is 0."""


def handle(node: Node, request: Request, now_ms: int) -> None:
    if request.version not in VERSIONS:
        request.answer_bytes(encode(_unsupported(), 0))
        return
    call = request.decode(ApiVersionsRequest)
    error = _refusal(node, call, request.version)
    if error:
        request.answer(ApiVersionsResponse(error_code=error))
        return
    if request.version >= _FIRST_VERSION_WITH_SOFTWARE and request.connection is not None:
        software = (call.client_software_name, call.client_software_version)
        request.connection.client_software = software
    request.answer(
        ApiVersionsResponse(
            api_keys=_served(),
            supported_features=_supported(request.version),
            finalized_features=[
                FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
                for name, level in features.finalized(node.image.features).items()
            ],
            finalized_features_epoch=node.metadata.committed_end_offset - 1,
        )
    )


def _refusal(node: Node, call: ApiVersionsRequest, version: int) -> ErrorCode:
    """Cluster and node are named together or not at all; below version 5 they are not."""
    if (call.cluster_id is None) != (call.node_id == NO_NODE):
        return ErrorCode.INVALID_REQUEST
    software = (call.client_software_name, call.client_software_version)
    if version >= _FIRST_VERSION_WITH_SOFTWARE and not all(map(_SOFTWARE.fullmatch, software)):
        return ErrorCode.INVALID_REQUEST
    here = (node.metadata.cluster_id, node.settings.node_id)
    if call.cluster_id is not None and (call.cluster_id, call.node_id) != here:
        return ErrorCode.REBOOTSTRAP_REQUIRED
    return ErrorCode.NONE


def _unsupported() -> ApiVersionsResponse:
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=[ApiVersion(api_key=API_KEY, min_version=VERSIONS[0], max_version=VERSIONS[-1])],
    )


def _served() -> list[ApiVersion]:
    from tidelog.core.node.api import HANDLERS  # the list of all these files, this one included

    return [
        ApiVersion(
            api_key=key,
            min_version=HANDLERS[key].advertised[0],
            max_version=HANDLERS[key].advertised[-1],
        )
        for key in sorted(HANDLERS)
        if HANDLERS[key].advertised
    ]


def _supported(version: int) -> list[SupportedFeatureKey]:
    return [
        SupportedFeatureKey(name=name, min_version=low, max_version=high)
        for name, (low, high) in sorted(features.SUPPORTED.items())
        if low > 0 or version >= _FIRST_VERSION_WITH_LEVEL_0
    ]
