"""Requests about one partition: by name in old versions, by id in new ones, -1 only on the wire."""

from __future__ import annotations

from tidelog.client.partition_requests import (
    fetch_answer,
    fetch_request,
    list_offsets_answer,
    list_offsets_request,
    produce_answer,
    produce_request,
)
from tidelog.core.wire.codec import decode, encode
from tidelog.core.wire.messages.api_00_produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from tidelog.core.wire.messages.api_01_fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from tidelog.core.wire.messages.api_02_list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

TOPIC_ID = bytes(range(16))


def test_a_topic_goes_by_its_name_or_by_its_id() -> None:
    request = produce_request("orders", 1, b"batch", topic_id=TOPIC_ID, acks=1)
    old = decode(ProduceRequest, memoryview(encode(request, 9)), 9, 0)
    new = decode(ProduceRequest, memoryview(encode(request, 13)), 13, 0)
    assert (old.topic_data[0].name, new.topic_data[0].topic_id) == ("orders", TOPIC_ID)
    assert bytes(old.topic_data[0].partition_data[0].records or b"") == b"batch"
    assert (old.acks, old.topic_data[0].partition_data[0].index) == (1, 1)


def test_a_leader_epoch_that_is_not_given_is_minus_one_on_the_wire() -> None:
    for leader_epoch, sent in ((None, -1), (4, 4)):
        fetch = fetch_request("orders", 0, 5, leader_epoch=leader_epoch)
        assert fetch.topics[0].partitions[0].current_leader_epoch == sent
        listing = list_offsets_request("orders", 0, leader_epoch=leader_epoch)
        assert listing.topics[0].partitions[0].current_leader_epoch == sent


def test_a_fetch_has_kafkas_limit_unless_another_is_given() -> None:
    assert fetch_request("orders", 0, 5).max_bytes == FetchRequest().max_bytes
    assert fetch_request("orders", 0, 5, bytes_max=9).max_bytes == 9


def test_several_partitions_of_a_topic_can_be_listed() -> None:
    request = list_offsets_request("orders", 0, 1, 2)
    assert [each.partition_index for each in request.topics[0].partitions] == [0, 1, 2]


def test_an_answer_is_the_part_about_the_partition() -> None:
    produced = PartitionProduceResponse(base_offset=3)
    topic = TopicProduceResponse(partition_responses=[produced])
    assert produce_answer(ProduceResponse(responses=[topic])) is produced
    data = PartitionData(partition_index=1)
    fetched = FetchResponse(responses=[FetchableTopicResponse(partitions=[data])])
    assert fetch_answer(fetched) is data
    listed = ListOffsetsPartitionResponse(offset=4)
    response = ListOffsetsResponse(topics=[ListOffsetsTopicResponse(partitions=[listed])])
    assert list_offsets_answer(response) is listed
