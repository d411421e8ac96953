"""The demo's pipeline as the file that a user would write: examples/orders.toml, a little shorter.

Orders are validated and deduplicated, and become revenue per minute and country. Revenue is a topic
in mode `update`: a group is written again whenever it has changed, and its latest record counts. So
the sums can be compared to the cent as soon as the last order has been processed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from tidelog.client.sink.options import GROUP_PREFIX

VALID, REVENUE, DEAD = "valid_orders", "revenue", "dead_letters"
SINKS = (VALID, REVENUE, DEAD)
CHECKPOINT = "checkpoint"
"""Relative to the file, as the tables are, which have the names of their sinks."""
BATCHES_KEPT = 100_000
"""Spark forgets the plans of older batches; the account needs all of them."""
TRIGGER = "1 second"
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

_FILE = """\
# Orders become revenue per minute and country, exactly once.

name = "orders"
bootstrap = {bootstrap}
checkpoint = {checkpoint}
trigger = {trigger}

[sources.orders]
topic = {orders}
schema = \"\"\"
    order_id   STRING NOT NULL,
    country    STRING NOT NULL,
    amount     DECIMAL(12, 2) NOT NULL,
    ordered_at TIMESTAMP NOT NULL
\"\"\"

# An order that was sent twice counts once. Each row names the record it was made of.
[steps.valid_orders]
sql = \"\"\"
    SELECT order_id, upper(country) AS country, amount, ordered_at,
           _partition AS source_partition, _offset AS source_offset
    FROM orders
    WHERE amount > 0 AND length(country) = 2
\"\"\"
watermark = {{ column = "ordered_at", delay = "1 hour" }}
deduplicate = ["order_id"]

[steps.revenue]
sql = \"\"\"
    SELECT window.start AS minute, country, count(*) AS orders, sum(amount) AS revenue
    FROM valid_orders
    GROUP BY window(ordered_at, '1 minute'), country
\"\"\"

[sinks.valid_orders]
{valid}

[sinks.revenue]
mode = "update"
{revenue}

# Records that are not orders go here. Nothing is dropped silently.
[dead_letters]
{dead}

# A short run: a Java that starts quickly is better than one that becomes fast.
[spark]
driver.extraJavaOptions = {java}
sql.streaming.minBatchesToRetain = {batches_kept}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """Where the pipeline writes: topics of these names, and tables beside its file."""

    orders: str
    """The topic that it reads."""
    topics: Mapping[str, str]
    """By sink; a sink without one is a Parquet table."""

    @property
    def revenue_id(self) -> str:
        """The transactional id of the revenue topic."""
        return GROUP_PREFIX + self.topics[REVENUE]


def pipeline_text(targets: Targets, *, bootstrap: str) -> str:
    """The file."""
    return _FILE.format(
        bootstrap=_quoted(bootstrap),
        checkpoint=_quoted(CHECKPOINT),
        trigger=_quoted(TRIGGER),
        orders=_quoted(targets.orders),
        valid=_target(targets, VALID, key="order_id"),
        revenue=_target(targets, REVENUE, key="country"),
        dead=_target(targets, DEAD),
        java=_quoted(QUICK_JAVA),
        batches_kept=BATCHES_KEPT,
    )


def _target(targets: Targets, sink: str, *, key: str | None = None) -> str:
    topic = targets.topics.get(sink)
    if topic is None:
        return f"table = {_quoted(sink)}"
    lines = [f"topic = {_quoted(topic)}", f"id = {_quoted(topic)}"]
    if key is not None:
        lines.append(f"key = {_quoted(key)}")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """JSON strings are also TOML strings."""
    return json.dumps(text)
