"""Checks of sinks: each writes one view to a table or a topic, and no two write to the same."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Literal

from tidelog.core.model.topic_name import refuse_topic_name
from tidelog.spark.pipeline.file.check_sources import check_bootstrap
from tidelog.spark.pipeline.file.diagnostics import did_you_mean, one_of
from tidelog.spark.pipeline.file.keys import OPTIONS_OF_TOPIC
from tidelog.spark.pipeline.file.name_rules import (
    SINK,
    SINK_ID,
    WITHOUT_RENAME,
    absolute_path,
    overlap,
)
from tidelog.spark.pipeline.file.plan import (
    BATCH_COLUMN,
    DEAD_LETTERS,
    SinkSpec,
    SourceSpec,
    TableTarget,
    TopicTarget,
)
from tidelog.spark.pipeline.file.sections import Section
from tidelog.spark.pipeline.file.views import View, Views

_KAFKA = "kafka."
_ONLY_TABLE = ("partition_by",)
_ONLY_TOPIC = ("id", "bootstrap", "key", "format")


def check_sink(section: Section, views: Views, base: str) -> tuple[SinkSpec | None, View | None]:
    """None for what is not valid."""
    if SINK.fullmatch(section.name) is None or section.name == DEAD_LETTERS:
        section.error("", f"{section.name!r} is not a valid sink name; expected letters and digits")
    target = check_target(section, base)
    view = _view(section, views)
    if target is None or view is None:
        return None, view
    mode: Literal["append", "update"] = "append"
    if section.text("mode") == "update":
        mode = "update"
    return SinkSpec(name=section.name, view=view.name, target=target, mode=mode), view


def check_target(section: Section, base: str) -> TableTarget | TopicTarget | None:
    """A table or a topic, of a sink or for dead letters."""
    has_table, has_topic = "table" in section.given, "topic" in section.given
    if not has_table and not has_topic:
        section.error("table", 'is missing; expected table = "DIRECTORY", or a topic')
        return None
    if has_table and has_topic:
        section.error("topic", "is given together with table; expected only one of them")
        return None
    if has_table:
        return _table(section, base)
    return _topic(section)


def _table(section: Section, base: str) -> TableTarget | None:
    for key in _ONLY_TOPIC:
        if key in section.given:
            section.error(key, "is only for topics, and this is a table")
    path = section.text("table")
    partition_by = section.texts("partition_by")
    if BATCH_COLUMN in [each.lower() for each in partition_by]:
        section.error(
            "partition_by", f"{BATCH_COLUMN!r} is already how tables are divided; leave it out"
        )
    if path is None:
        return None
    scheme = path.partition(":/")[0]
    if scheme in WITHOUT_RENAME:
        section.error(
            "table",
            f"{scheme} cannot rename directories, which is how a batch is published; expected a"
            " directory of this machine, or one like hdfs://...",
        )
    return TableTarget(
        path=absolute_path(path, base),
        partition_by=partition_by,
        options=section.values.get("options", {}),
    )


def _topic(section: Section) -> TopicTarget | None:
    for key in _ONLY_TABLE:
        if key in section.given:
            section.error(key, "is only for tables, and this is a topic")
    check_bootstrap(section)
    topic, sink_id = section.text("topic"), section.text("id")
    error = None if topic is None else refuse_topic_name(topic)
    if error is not None:
        section.error("topic", error)
    if "id" not in section.given:
        section.error(
            "id",
            "is missing; exactly-once writing needs an id that never changes and that no other"
            ' sink uses, like id = "orders-revenue"',
        )
    elif sink_id is not None and SINK_ID.fullmatch(sink_id) is None:
        section.error(
            "id", f"{sink_id!r} is not a valid id; expected letters, digits, '.', '_', '-'"
        )
    is_json = section.text("format") != "raw"
    if not is_json and "key" in section.given:
        section.error("key", "is only for format json; raw rows have their own column 'key'")
    if topic is None or sink_id is None:
        return None
    return TopicTarget(
        topic=topic,
        sink_id=sink_id,
        bootstrap=section.text("bootstrap"),
        key=section.text("key"),
        is_json=is_json,
        options=_topic_options(section),
    )


def _topic_options(section: Section) -> dict[str, object]:
    """For `exactly_once`, with Kafka's own settings apart."""
    options: dict[str, object] = {}
    settings: dict[str, str] = {}
    for name, value in section.values.get("options", {}).items():
        if name.startswith(_KAFKA):
            settings[name.removeprefix(_KAFKA)] = value
        elif name not in OPTIONS_OF_TOPIC:
            near = did_you_mean(name, OPTIONS_OF_TOPIC)
            hint = near or f"; expected {one_of(OPTIONS_OF_TOPIC)}, or kafka.NAME"
            section.error(f"options.{name}", f"is not an option of a topic{hint}")
        elif OPTIONS_OF_TOPIC[name] is int and not value.isdecimal():
            section.error(f"options.{name}", f"expected a whole number, not {value!r}")
        else:
            options[name] = OPTIONS_OF_TOPIC[name](value)
    return {**options, "settings": settings} if settings else options


def _view(section: Section, views: Views) -> View | None:
    """`from`, or the view that has the sink's own name."""
    if "from" not in section.given:
        own = views.get(section.name)
        if own is None:
            section.error("from", f"is missing; expected a view: {_expected_views(views)}")
        return own
    name = section.text("from")
    view = None if name is None else views.get(name)
    if name is not None and view is None:
        near = did_you_mean(name, views.names()) or f"; expected {_expected_views(views)}"
        section.error("from", f"{name!r} is not a source or a step{near}")
    return view


def _expected_views(views: Views) -> str:
    return one_of(views.names()) if views.names() else "a source or a step"


def check_targets(
    targets: list[tuple[Section, TableTarget | TopicTarget]],
    sources: Iterable[SourceSpec],
    *,
    checkpoint: str | None,
) -> None:
    """No two sinks with one id or directory, none in the checkpoint, none that feeds its source."""
    for (earlier, first), (later, second) in combinations(targets, 2):
        match first, second:
            case TopicTarget(sink_id=one), TopicTarget(sink_id=other) if one == other:
                later.error("id", f"{other!r} is already the id of {_header(earlier)}")
            case TableTarget(path=one), TableTarget(path=other) if overlap(one, other):
                later.error("table", f"is in the same directory as {_header(earlier)}")
    for section, target in targets:
        if isinstance(target, TableTarget):
            if checkpoint is not None and overlap(target.path, checkpoint):
                section.error("table", "shares a directory with the checkpoint")
        else:
            _check_circle(section, target, sources)


def _check_circle(section: Section, target: TopicTarget, sources: Iterable[SourceSpec]) -> None:
    for source in sources:
        if target.topic in source.topics and target.bootstrap == source.bootstrap:
            section.error(
                "topic",
                f"[sources.{source.name}] reads {target.topic!r}: the pipeline would read its own"
                " output",
            )


def _header(section: Section) -> str:
    return "[" + ".".join(section.path) + "]"
