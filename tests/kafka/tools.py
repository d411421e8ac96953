"""Runs Kafka's Java command line tools and gives back what they printed."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from tests.kafka.class_path import LOG_SETTINGS, class_path, java_program
from tests.process.waiting import PATIENCE_S

QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""For a Java that has little to do: no threads beside its own for compiling well and collecting."""


class Tool(Enum):
    """Kafka's tools by their main class, so that a test need not know the packages."""

    TOPICS = "org.apache.kafka.tools.TopicCommand"
    CONFIGS = "kafka.admin.ConfigCommand"
    CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
    CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
    GET_OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
    DELETE_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
    DUMP_LOG = "org.apache.kafka.tools.DumpLogSegments"
    STORAGE = "kafka.tools.StorageTool"
    BROKER_API_VERSIONS = "org.apache.kafka.tools.BrokerApiVersionsCommand"
    FEATURES = "org.apache.kafka.tools.FeatureCommand"
    LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
    PRODUCER_PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
    CONSUMER_PERFORMANCE = "org.apache.kafka.tools.ConsumerPerformance"
    TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
    CLUSTER = "org.apache.kafka.tools.ClusterTool"
    METADATA_QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
    REASSIGN_PARTITIONS = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
    LEADER_ELECTION = "org.apache.kafka.tools.LeaderElectionCommand"
    CONSUMER_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    GROUPS = "org.apache.kafka.tools.GroupsCommand"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool printed and how it ended."""

    exit_code: int
    output: str
    errors: str


def run_alone(tool: Tool, arguments: Sequence[str]) -> ToolResult:
    """Run one of Kafka's tools to its end, in a Java of its own; tests have `run_tool`."""
    run = subprocess.run(
        java_command(tool.value, arguments, options=["-Xmx256m", *QUICK_START]),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
    )
    return ToolResult(exit_code=run.returncode, output=run.stdout, errors=run.stderr)


def java_command(
    main_class: str,
    arguments: Sequence[str],
    *,
    options: Sequence[str],
    log_level: str = "WARN",
    jars: str | None = None,
) -> list[str]:
    """The command line that runs a main class of Kafka's class path, or of other jars."""
    return [
        java_program(),
        *options,
        f"-Dlog4j2.configurationFile={LOG_SETTINGS}",
        f"-Dkafka.log.level={log_level}",
        "-cp",
        jars or class_path(),
        main_class,
        *arguments,
    ]
