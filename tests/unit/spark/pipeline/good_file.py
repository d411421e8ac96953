"""A pipeline's file with nothing wrong in it, into which tests put mistakes."""

from __future__ import annotations

from tidelog.spark.pipeline.file.plan_check import CheckedPlan, check_text

GOOD = '''\
checkpoint = "state"
trigger = "5s"
[sources.orders]
topic = "orders"
schema = """
order_id STRING NOT NULL,
amount INT,
ordered_at TIMESTAMP
"""
[steps.valid]
sql = """
SELECT *
FROM orders
WHERE amount > 0
"""
watermark = { column = "ordered_at", delay = "10 minutes" }
deduplicate = ["order_id"]
[sinks.valid]
table = "out/valid"
[dead_letters]
table = "out/dead"
'''


def checked(text: str) -> CheckedPlan:
    return check_text(text, file="p.toml", base="/base", name="p")
