"""Sinks: each takes one view to a table or a topic, and no two of them meet in one place."""

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
    """None for what is not right."""
    if SINK.fullmatch(section.name) is None or section.name == DEAD_LETTERS:
        section.complain("", f"{section.name!r} is no name of a sink; expected letters and digits")
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
        section.complain("table", 'is missing; expected table = "DIRECTORY", or a topic')
        return None
    if has_table and has_topic:
        section.complain("topic", "stands beside table; expected only one of them")
        return None
    if has_table:
        return _table(section, base)
    return _topic(section)


def _table(section: Section, base: str) -> TableTarget | None:
    for key in _ONLY_TOPIC:
        if key in section.given:
            section.complain(key, "is for topics, and this is a table")
    path = section.text("table")
    partition_by = section.texts("partition_by")
    if BATCH_COLUMN in [each.lower() for each in partition_by]:
        section.complain(
            "partition_by", f"{BATCH_COLUMN!r} is already how tables are divided; leave it out"
        )
    if path is None:
        return None
    scheme = path.partition(":/")[0]
    if scheme in WITHOUT_RENAME:
        section.complain(
            "table",
            f"{scheme} has no rename of directories, by which a batch is published; expected a"
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
            section.complain(key, "is for tables, and this is a topic")
    check_bootstrap(section)
    topic, sink_id = section.text("topic"), section.text("id")
    trouble = None if topic is None else refuse_topic_name(topic)
    if trouble is not None:
        section.complain("topic", trouble)
    if "id" not in section.given:
        section.complain(
            "id",
            "is missing; a topic is written exactly once under a name that stays the same for"
            ' ever and that nobody else uses, like id = "orders-revenue"',
        )
    elif sink_id is not None and SINK_ID.fullmatch(sink_id) is None:
        section.complain("id", f"{sink_id!r} is no id; expected letters, digits, '.', '_', '-'")
    is_json = section.text("format") != "raw"
    if not is_json and "key" in section.given:
        section.complain("key", "is for format json; raw rows bring a column 'key' of their own")
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
            told = near or f"; expected {one_of(OPTIONS_OF_TOPIC)}, or kafka.NAME"
            section.complain(f"options.{name}", f"is no option of a topic{told}")
        elif OPTIONS_OF_TOPIC[name] is int and not value.isdecimal():
            section.complain(f"options.{name}", f"expected a whole number, not {value!r}")
        else:
            options[name] = OPTIONS_OF_TOPIC[name](value)
    return {**options, "settings": settings} if settings else options


def _view(section: Section, views: Views) -> View | None:
    """`from`, or the view that has the sink's own name."""
    if "from" not in section.given:
        own = views.get(section.name)
        if own is None:
            section.complain("from", f"is missing; expected a view: {_any_of(views)}")
        return own
    name = section.text("from")
    view = None if name is None else views.get(name)
    if name is not None and view is None:
        near = did_you_mean(name, views.names()) or f"; expected {_any_of(views)}"
        section.complain("from", f"{name!r} is no source and no step{near}")
    return view


def _any_of(views: Views) -> str:
    return one_of(views.names()) if views.names() else "a source or a step"


def check_targets(
    places: list[tuple[Section, TableTarget | TopicTarget]],
    sources: Iterable[SourceSpec],
    *,
    checkpoint: str | None,
) -> None:
    """No two sinks under one id or in one directory, none in the checkpoint, none in a circle."""
    for (earlier, first), (later, second) in combinations(places, 2):
        match first, second:
            case TopicTarget(sink_id=one), TopicTarget(sink_id=other) if one == other:
                later.complain("id", f"{other!r} is already the id of {_named(earlier)}")
            case TableTarget(path=one), TableTarget(path=other) if overlap(one, other):
                later.complain("table", f"lies in the same directory as {_named(earlier)}")
    for section, target in places:
        if isinstance(target, TableTarget):
            if checkpoint is not None and overlap(target.path, checkpoint):
                section.complain("table", "shares a directory with the checkpoint")
        else:
            _check_circle(section, target, sources)


def _check_circle(section: Section, target: TopicTarget, sources: Iterable[SourceSpec]) -> None:
    for source in sources:
        if target.topic in source.topics and target.bootstrap == source.bootstrap:
            section.complain(
                "topic", f"[sources.{source.name}] reads {target.topic!r}: it would feed itself"
            )


def _named(section: Section) -> str:
    return "[" + ".".join(section.path) + "]"
