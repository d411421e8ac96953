"""The brokers under a test of the sink: Apache Kafka and Tidelog, with the same expectations.

A test that takes the fixture `brokers` runs on Apache Kafka in every run and on Tidelog in every
second run with `--all`, or with `--whole-campaigns`. Marked with `ON_BOTH` it runs on both in every
run.
"""

from __future__ import annotations

import pytest

import tidelog
from tests.kafka import KafkaCluster

Brokers = KafkaCluster | tidelog.Cluster
FIXTURES = {"kafka": "kafka3", "tidelog": "tidelog3"}
KAFKA = pytest.param("kafka", marks=pytest.mark.java)
TIDELOG = pytest.param("tidelog")
TIDELOG_LONG = pytest.param("tidelog", marks=[pytest.mark.long, pytest.mark.rotating(2, of="file")])
ON_BOTH = pytest.mark.parametrize("brokers", [KAFKA, TIDELOG], indirect=True)
