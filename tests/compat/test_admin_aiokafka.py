"""aiokafka's admin client: topics, partitions, configs and records."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.admin.records_to_delete import RecordsToDelete

from tests.compat.clients import LIBRARIES, Message
from tests.process.fixtures import NewTopic as MakeTopic
from tidelog.core.model.errors import ErrorCode


def test_a_topics_life(bootstrap: str) -> None:
    """Created, refused, grown, listed, described, deleted."""
    name = "aiokafka-life"

    async def live() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            made = await admin.create_topics([NewTopic(name, 2, 1)])
            assert made.topic_errors[0][:2] == (name, 0)
            again = await admin.create_topics([NewTopic(name, 2, 1)])
            assert again.topic_errors[0][1] == ErrorCode.TOPIC_ALREADY_EXISTS
            grown = await admin.create_partitions({name: NewPartitions(5)})
            assert grown.topic_errors[0][1] == 0
            assert name in await admin.list_topics()
            (topic,) = await admin.describe_topics([name])
            assert topic["topic"] == name
            gone = await admin.delete_topics([name])
            assert gone.topic_error_codes[0] == (name, 0)
        finally:
            await admin.close()

    asyncio.run(live())


def test_configs_are_described(bootstrap: str, new_topic: MakeTopic) -> None:
    name = new_topic(retention_ms="1000")

    async def ask() -> dict[str, str]:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            (answer,) = await admin.describe_configs(
                [ConfigResource(ConfigResourceType.TOPIC, name)]
            )
        finally:
            await admin.close()
        (resource,) = answer.resources
        return {entry[0]: entry[1] for entry in resource[4]}

    configs = asyncio.run(ask())
    assert configs["retention.ms"] == "1000"
    assert configs["cleanup.policy"] == "delete"


def test_records_are_deleted(bootstrap: str, new_topic: MakeTopic) -> None:
    name = new_topic()
    LIBRARIES[0].produce(bootstrap, name, "none", [Message(b"%d" % n) for n in range(10)])
    partition = TopicPartition(name, 0)

    async def delete() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            deleted = await admin.delete_records({partition: RecordsToDelete(before_offset=4)})
        finally:
            await admin.close()
        assert deleted == {partition: 4}
        async with AIOKafkaConsumer(bootstrap_servers=bootstrap) as consumer:
            assert await consumer.beginning_offsets([partition]) == {partition: 4}

    asyncio.run(delete())


@pytest.mark.parametrize("before_offset", [-1])
def test_all_records_are_deleted(bootstrap: str, new_topic: MakeTopic, before_offset: int) -> None:
    """-1 stands for the high watermark."""
    name = new_topic()
    LIBRARIES[0].produce(bootstrap, name, "none", [Message(b"%d" % n) for n in range(10)])
    partition = TopicPartition(name, 0)

    async def delete() -> dict[TopicPartition, int]:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            result: dict[TopicPartition, int] = await admin.delete_records(
                {partition: RecordsToDelete(before_offset=before_offset)}
            )
            return result
        finally:
            await admin.close()

    assert asyncio.run(delete()) == {partition: 10}
