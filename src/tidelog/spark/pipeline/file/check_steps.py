"""Checks of steps: each is one query over earlier views."""

from __future__ import annotations

from tidelog.spark.pipeline.file.check_sources import (
    NEEDS_WATERMARK,
    check_view_name,
    check_watermark,
)
from tidelog.spark.pipeline.file.diagnostics import did_you_mean, one_of
from tidelog.spark.pipeline.file.plan import StepSpec
from tidelog.spark.pipeline.file.sections import Section
from tidelog.spark.pipeline.file.sql_shape import QueryShape, query_shape
from tidelog.spark.pipeline.file.sql_tokens import BadSql
from tidelog.spark.pipeline.file.views import View, Views, read_path, relation_names


def check_step(section: Section) -> tuple[StepSpec, QueryShape | None]:
    """The step alone, without what it reads."""
    check_view_name(section)
    shape = None
    if "sql" not in section.given and "function" not in section.given:
        section.error("sql", 'is missing; expected sql = "SELECT ... FROM ..."')
    elif "sql" in section.given and "function" in section.given:
        section.error("function", "is given together with sql; expected only one of them")
    sql = section.text("sql")
    if sql is not None:
        try:
            shape = query_shape(sql)
        except BadSql as bad:
            section.error("sql", str(bad), line=section.line_in_text("sql", bad.line))
    step = StepSpec(
        name=section.name,
        sql=sql,
        function=section.values.get("function"),
        watermark=check_watermark(section, None),
        deduplicate=section.texts("deduplicate"),
    )
    return step, shape


def connect_views(views: Views) -> None:
    """Find what each step reads; names that are unknown, come later or form a circle are errors."""
    for view in views:
        if "function" in view.section.given:
            view.reads = [each for each in views if each.number < view.number]
            continue
        if view.shape is None:
            continue
        circle = _circle(view, views)
        for read in view.shape.reads:
            if len(read.parts) > 1:
                continue
            error = _read_error(view, read.parts[0], views, circle)
            if error is not None:
                line = view.section.line_in_text("sql", read.line)
                view.section.error("sql", error, line=line)
        found = [views.get(name) for name in relation_names(view)]
        view.reads = [each for each in found if each is not None and each.number < view.number]


def _circle(view: View, views: Views) -> list[str] | None:
    """The names on a path from the view back to itself, if there is one."""
    for name in relation_names(view):
        following = views.get(name)
        path = None if following is None else read_path(following, view, views)
        if path is not None:
            return [view.name, *path]
    return None


def _read_error(view: View, name: str, views: Views, circle: list[str] | None) -> str | None:
    read = views.get(name)
    if read is None:
        known = [each.name for each in views if each is not view]
        hint = did_you_mean(name, known) or (f"; expected {one_of(known)}" if known else "")
        return f"reads {name!r}, which is not a source or a step{hint}"
    if read is view:
        return "reads itself; expected a source or a step before it"
    if read.number > view.number:
        if circle is not None and read.name in circle:
            return f"reads in a circle: {' -> '.join(circle)}"
        return f"reads {read.name!r}, which comes later; put [steps.{read.name}] before it"
    return None


def check_streaming(view: View, views: Views) -> None:
    """Check what Spark cannot do with streams, as far as it is visible in the SQL."""
    section = view.section
    has_watermark = any(each.has_watermark for each in view.lineage())
    if view.deduplicates and not view.is_source and not has_watermark:
        section.error("deduplicate", NEEDS_WATERMARK)
    if view.shape is None:
        return
    for block in view.shape.streams(lambda name: views.get(name) is not None):
        if block.ordered_at is not None:
            section.error(
                "sql",
                "ORDER BY is not possible on a stream, which has no end; remove it",
                line=section.line_in_text("sql", block.ordered_at),
            )
        if block.windowed_at is not None:
            section.error(
                "sql",
                "OVER (...) is not possible on a stream; group by window(time, '1 minute') instead",
                line=section.line_in_text("sql", block.windowed_at),
            )


def check_grouping(view: View, views: Views) -> None:
    """For a sink that appends: a group is written once, when the watermark has passed it."""
    for each in view.lineage():
        if each.shape is None or any(before.has_watermark for before in each.before()):
            continue
        for block in each.shape.streams(lambda name: views.get(name) is not None):
            if block.grouped_at is not None:
                each.section.error(
                    "sql",
                    "GROUP BY (or DISTINCT) needs a watermark on a view before it, since a sink"
                    ' that appends must know when a group is complete; or mode = "update" there',
                    line=each.section.line_in_text("sql", block.grouped_at),
                )
