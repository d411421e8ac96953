"""Steps: each is one query over views before it; what can be seen without Spark is checked."""

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
from tidelog.spark.pipeline.file.views import View, Views, wanted_names, way_back


def check_step(section: Section) -> tuple[StepSpec, QueryShape | None]:
    """The step alone, without what it reads."""
    check_view_name(section)
    shape = None
    if "sql" not in section.given and "function" not in section.given:
        section.complain("sql", 'is missing; expected sql = "SELECT ... FROM ..."')
    elif "sql" in section.given and "function" in section.given:
        section.complain("function", "stands beside sql; expected only one of them")
    sql = section.text("sql")
    if sql is not None:
        try:
            shape = query_shape(sql)
        except BadSql as bad:
            section.complain("sql", str(bad), line=section.line_in_text("sql", bad.line))
    step = StepSpec(
        name=section.name,
        sql=sql,
        function=section.values.get("function"),
        watermark=check_watermark(section, None),
        deduplicate=section.texts("deduplicate"),
    )
    return step, shape


def connect_views(views: Views) -> None:
    """Find what each step reads; complain of names that are not there, not yet, or in a circle."""
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
            trouble = _trouble(view, read.parts[0], views, circle)
            if trouble is not None:
                line = view.section.line_in_text("sql", read.line)
                view.section.complain("sql", trouble, line=line)
        found = [views.get(name) for name in wanted_names(view)]
        view.reads = [each for each in found if each is not None and each.number < view.number]


def _circle(view: View, views: Views) -> list[str] | None:
    """The names on a way from the view back to itself."""
    for name in wanted_names(view):
        following = views.get(name)
        way = None if following is None else way_back(following, view, views)
        if way is not None:
            return [view.name, *way]
    return None


def _trouble(view: View, name: str, views: Views, circle: list[str] | None) -> str | None:
    wanted = views.get(name)
    if wanted is None:
        known = [each.name for each in views if each is not view]
        near = did_you_mean(name, known)
        told = near or (f"; there are {one_of(known)}" if known else "")
        return f"reads {name!r}, which is no source and no step{told}"
    if wanted is view:
        return "reads itself; expected a source or a step before it"
    if wanted.number > view.number:
        if circle is not None and wanted.name in circle:
            return f"reads in a circle: {' -> '.join(circle)}"
        return f"reads {wanted.name!r}, which comes later; put [steps.{wanted.name}] before it"
    return None


def check_streaming(view: View, views: Views) -> None:
    """What Spark does not do with streams, as far as it can be seen."""
    section = view.section
    has_watermark = any(each.has_watermark for each in view.lineage())
    if view.deduplicates and not view.is_source and not has_watermark:
        section.complain("deduplicate", NEEDS_WATERMARK)
    if view.shape is None:
        return
    for frame in view.shape.streams(lambda name: views.get(name) is not None):
        if frame.ordered_at is not None:
            section.complain(
                "sql",
                "ORDER BY sorts nothing in a stream, which has no end; leave it out",
                line=section.line_in_text("sql", frame.ordered_at),
            )
        if frame.windowed_at is not None:
            section.complain(
                "sql",
                "OVER (...) is not possible on a stream; group by window(time, '1 minute') instead",
                line=section.line_in_text("sql", frame.windowed_at),
            )


def check_grouping(view: View, views: Views) -> None:
    """For a sink that appends: a group is written once, when the watermark has passed it."""
    for each in view.lineage():
        if each.shape is None or any(before.has_watermark for before in each.before()):
            continue
        for frame in each.shape.streams(lambda name: views.get(name) is not None):
            if frame.grouped_at is not None:
                each.section.complain(
                    "sql",
                    "GROUP BY (or DISTINCT) needs a watermark on a view before it, since a sink"
                    ' that appends must know when a group is complete; or mode = "update" there',
                    line=each.section.line_in_text("sql", frame.grouped_at),
                )
