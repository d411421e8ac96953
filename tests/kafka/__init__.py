"""Apache Kafka as a harness: resolve its jars, start real brokers, run its command line tools.

`KafkaBroker` is one combined KRaft node, `KafkaCluster` several; `run_tool` runs one of Kafka's
Java tools. `java_available()` says whether any of this can work on this machine, and
`unavailable_reason()` why not.
"""

from tests.kafka.broker import KafkaBroker, KafkaCluster, KafkaNode
from tests.kafka.class_path import (
    KAFKA_VERSION,
    KafkaUnavailable,
    java_available,
    unavailable_reason,
)
from tests.kafka.tool_machine import run_tool
from tests.kafka.tools import Tool, ToolResult

__all__ = [
    "KAFKA_VERSION",
    "KafkaBroker",
    "KafkaCluster",
    "KafkaNode",
    "KafkaUnavailable",
    "Tool",
    "ToolResult",
    "java_available",
    "run_tool",
    "unavailable_reason",
]
