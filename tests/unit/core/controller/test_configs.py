"""Incremental changes of settings: what they come to, and what is refused."""

from __future__ import annotations

import pytest

from tests.unit.core.controller.given import FewSettings
from tests.unit.core.metadata.given import apply, broker, image, state, topic
from tidelog.core.controller.configs import Alteration, ConfigStep, Operation, decide_alter
from tidelog.core.metadata.cluster import ConfigResource, ResourceType
from tidelog.core.metadata.image import CLUSTER_DEFAULTS, ClusterImage
from tidelog.core.metadata.records import ConfigRecord, FeatureLevelRecord
from tidelog.core.model.errors import ErrorCode

TOPIC = ConfigResource(ResourceType.TOPIC, "t")
BROKER = ConfigResource(ResourceType.BROKER, "1")

SET, DELETE, APPEND, SUBTRACT = Operation


def cluster(**settings: str) -> ClusterImage:
    built = image(broker(1), *topic("t", 1, state(1)))
    for name, value in settings.items():
        built.apply(
            ConfigRecord(
                resource_type=2, resource_name="t", name=name.replace("_", "."), value=value
            )
        )
    return built


def alter(
    built: ClusterImage, resource: ConfigResource, *steps: ConfigStep
) -> tuple[ErrorCode | None, int]:
    """Decide and apply; the error, and how many records were written."""
    request = Alteration(resource=resource, steps=steps)
    decision = decide_alter(built, [request], FewSettings())
    apply(built, decision.records)
    (outcome,) = decision.outcomes
    return (None if outcome.refusal is None else outcome.refusal.error), len(decision.records)


@pytest.mark.parametrize(
    ("before", "step", "after"),
    [
        ({}, ConfigStep("retention.ms", SET, "5"), {"retention.ms": "5"}),
        ({"retention_ms": "5"}, ConfigStep("retention.ms", SET, "6"), {"retention.ms": "6"}),
        ({"retention_ms": "5"}, ConfigStep("retention.ms", DELETE, None), {}),
        ({}, ConfigStep("retention.ms", DELETE, None), {}),
        # A list without a value of its own begins at its default
        ({}, ConfigStep("cleanup.policy", APPEND, "compact"), {"cleanup.policy": "delete,compact"}),
        ({}, ConfigStep("cleanup.policy", APPEND, "delete"), {"cleanup.policy": "delete"}),
        ({}, ConfigStep("cleanup.policy", SUBTRACT, "delete"), {"cleanup.policy": ""}),
        (
            {"cleanup_policy": "a,b"},
            ConfigStep("cleanup.policy", SUBTRACT, "a,c"),
            {"cleanup.policy": "b"},
        ),
        (
            {"cleanup_policy": "a"},
            ConfigStep("cleanup.policy", APPEND, "a,b"),
            {"cleanup.policy": "a,b"},
        ),
    ],
)
def test_a_step_changes_a_setting(
    before: dict[str, str], step: ConfigStep, after: dict[str, str]
) -> None:
    built = cluster(**before)

    error, _ = alter(built, TOPIC, step)

    assert error is None
    assert built.topic_config("t") == after


@pytest.mark.parametrize(
    ("resource", "step", "error"),
    [
        (TOPIC, ConfigStep("unknown", SET, "1"), ErrorCode.INVALID_CONFIG),
        (TOPIC, ConfigStep("retention.ms", SET, "x"), ErrorCode.INVALID_CONFIG),
        (TOPIC, ConfigStep("retention.ms", APPEND, "1"), ErrorCode.INVALID_CONFIG),
        (TOPIC, ConfigStep("cleanup.policy", SET, "x" * 32_768), ErrorCode.INVALID_CONFIG),
        (
            ConfigResource(ResourceType.TOPIC, "no"),
            ConfigStep("retention.ms", SET, "1"),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ),
        (
            ConfigResource(ResourceType.TOPIC, "n o"),
            ConfigStep("retention.ms", SET, "1"),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
        ),
        (
            ConfigResource(ResourceType.TOPIC, ""),
            ConfigStep("retention.ms", SET, "1"),
            ErrorCode.INVALID_REQUEST,
        ),
        (
            ConfigResource(ResourceType.BROKER, "x"),
            ConfigStep("retention.ms", SET, "1"),
            ErrorCode.INVALID_REQUEST,
        ),
        (
            ConfigResource(ResourceType.BROKER, "7"),
            ConfigStep("retention.ms", SET, "1"),
            ErrorCode.BROKER_ID_NOT_REGISTERED,
        ),
        (ConfigResource(99, "x"), ConfigStep("retention.ms", SET, "1"), ErrorCode.INVALID_REQUEST),
        (BROKER, ConfigStep("min.insync.replicas", SET, "2"), ErrorCode.INVALID_CONFIG),
        (
            CLUSTER_DEFAULTS,
            ConfigStep("min.insync.replicas", DELETE, None),
            ErrorCode.INVALID_CONFIG,
        ),
    ],
)
def test_what_is_refused_writes_nothing(
    resource: ConfigResource, step: ConfigStep, error: ErrorCode
) -> None:
    assert alter(cluster(), resource, step) == (error, 0)


def test_one_bad_step_refuses_all_steps_of_its_resource_and_no_other() -> None:
    built = cluster()
    requests = [
        Alteration(
            resource=TOPIC,
            steps=(ConfigStep("retention.ms", SET, "1"), ConfigStep("unknown", SET, "1")),
        ),
        Alteration(resource=BROKER, steps=(ConfigStep("x", SET, "1"),)),
    ]

    decision = decide_alter(built, requests, FewSettings())
    apply(built, decision.records)

    assert [outcome.refusal is None for outcome in decision.outcomes] == [False, True]
    assert built.topic_config("t") == {}
    assert built.broker_config(1) == {"x": "1"}


def test_a_topic_hears_only_of_real_changes_but_a_broker_of_all() -> None:
    built = cluster(retention_ms="5")
    built.apply(ConfigRecord(resource_type=4, resource_name="1", name="x", value="5"))

    assert alter(built, TOPIC, ConfigStep("retention.ms", SET, "5")) == (None, 0)
    assert alter(built, BROKER, ConfigStep("x", SET, "5")) == (None, 1)


def test_the_clusters_minimum_in_sync_set_can_be_changed_but_not_removed() -> None:
    built = cluster()

    assert alter(built, CLUSTER_DEFAULTS, ConfigStep("min.insync.replicas", SET, "2")) == (None, 1)
    assert built.cluster_config() == {"min.insync.replicas": "2"}

    # Without eligible leader replicas it is a setting like any other.
    built.apply(FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=0))
    assert alter(built, BROKER, ConfigStep("min.insync.replicas", SET, "1")) == (None, 1)
    assert alter(built, CLUSTER_DEFAULTS, ConfigStep("min.insync.replicas", DELETE, None)) == (
        None,
        1,
    )
