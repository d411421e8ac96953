"""A request as a frame, read back; and a response by the request that it answers."""

from __future__ import annotations

from tidelog.core.wire.codec import encode
from tidelog.core.wire.exchange import SIZE, decode_request, decode_response, request_frame
from tidelog.core.wire.headers import read_request_header, response_header
from tidelog.core.wire.messages.api_03_metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

REQUEST = MetadataRequest(topics=[MetadataRequestTopic(name="orders")])


def test_a_request_frame_has_size_header_and_body() -> None:
    for version in (1, 12):
        data = request_frame(REQUEST, version, correlation_id=7, client_id="me")
        frame = data[SIZE.size :]
        assert SIZE.unpack_from(data) == (len(frame),)
        header = read_request_header(memoryview(frame))
        assert (header.api_key, header.api_version) == (3, version)
        assert (header.correlation_id, header.client_id) == (7, "me")
        request = decode_request(frame)
        assert isinstance(request, MetadataRequest)
        assert [each.name for each in request.topics or ()] == ["orders"]


def test_a_response_is_decoded_by_api_and_version() -> None:
    for version in (1, 12):
        head = response_header(3, version, correlation_id=9)
        body = encode(MetadataResponse(controller_id=2), version)
        correlation_id, response = decode_response(bytes(head) + bytes(body), 3, version)
        assert correlation_id == 9
        assert isinstance(response, MetadataResponse) and response.controller_id == 2
