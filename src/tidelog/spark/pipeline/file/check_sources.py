"""Checks of sources: topics, schema, watermark and options."""

from __future__ import annotations

import json
import re

from tidelog.core.model.topic_name import refuse_topic_name
from tidelog.spark.pipeline.file.diagnostics import did_you_mean, one_of
from tidelog.spark.pipeline.file.keys import OPTIONS_OF_SOURCE, OWN_OPTIONS, WATERMARK
from tidelog.spark.pipeline.file.name_rules import VIEW, bootstrap_error
from tidelog.spark.pipeline.file.plan import METADATA_COLUMNS, RAW_COLUMNS, SourceSpec, Watermark
from tidelog.spark.pipeline.file.schema_ddl import SchemaColumn, read_ddl
from tidelog.spark.pipeline.file.sections import Section, option, read_section

_EDGES = ("earliest", "latest")


def check_source(section: Section) -> tuple[SourceSpec, tuple[str, ...] | None]:
    """The source as far as it is valid, and its columns; mistakes are added to the section."""
    check_view_name(section)
    topics = _topics(section)
    columns = _columns(section)
    known = _known_columns(section, columns)
    watermark = check_watermark(section, known)
    deduplicate = _deduplicate(section, known, watermark)
    check_bootstrap(section)
    if columns is None and "bad_records" in section.given:
        section.error("bad_records", "is only for format json: raw records are not parsed")
    source = SourceSpec(
        name=section.name,
        topics=topics,
        pattern=_pattern(section),
        bootstrap=section.text("bootstrap"),
        connector="kafka" if section.text("connector") == "kafka" else "tidelog",
        columns=columns,
        fails_on_bad_records=section.text("bad_records") == "fail",
        watermark=watermark,
        deduplicate=deduplicate,
        options=_options(section),
    )
    return source, known


def check_view_name(section: Section) -> None:
    """The name must be an identifier of SQL."""
    if VIEW.fullmatch(section.name) is None:
        section.error(
            "", f"{section.name!r} is not a valid view name; expected letters, digits and '_'"
        )


def check_bootstrap(section: Section) -> None:
    """A source or a sink may use another cluster than the rest."""
    given = section.text("bootstrap")
    error = None if given is None else bootstrap_error(given)
    if error is not None:
        section.error("bootstrap", error)


def check_watermark(section: Section, known: tuple[str, ...] | None) -> Watermark | None:
    """`watermark = { column = "ordered_at", delay = "10 minutes" }`."""
    if "watermark" not in section.given:
        return None
    path = (*section.path, "watermark")
    if path in section.document.values:
        return None  # not a table, which is an error already
    inner = read_section(section.document, path, WATERMARK, section.diagnostics)
    for key in WATERMARK:
        if key not in inner.given:
            inner.error(key, f"is missing; expected {_WATERMARK_EXAMPLE}")
    column = inner.text("column")
    if column is not None:
        check_column(inner, "column", column, known)
    if column is None or "delay" not in inner.values:
        return None
    return Watermark(column=column, delay_ms=inner.values["delay"])


_WATERMARK_EXAMPLE = 'watermark = { column = "ordered_at", delay = "10 minutes" }'


def check_column(section: Section, key: str, column: str, known: tuple[str, ...] | None) -> None:
    """Only where all columns are known, and not for a field of one."""
    if known is None or "." in column or "`" in column:
        return
    if column.lower() not in [each.lower() for each in known]:
        hint = did_you_mean(column, known) or f"; expected {one_of(known)}"
        section.error(key, f"there is no column {column!r}{hint}")


def _topics(section: Section) -> tuple[str, ...]:
    ways = [key for key in ("topic", "topics", "pattern") if key in section.given]
    if not ways:
        section.error("topic", 'is missing; expected topic = "orders", topics or pattern')
    elif len(ways) > 1:
        section.error(ways[1], f"is given together with {ways[0]}; expected only one of them")
    topic = section.text("topic")
    topics = section.texts("topics") if topic is None else (topic,)
    for each in topics:
        error = refuse_topic_name(each)
        if error is not None:
            section.error("topic" if topic is not None else "topics", error)
    return topics


def _pattern(section: Section) -> str | None:
    pattern = section.text("pattern")
    if pattern is not None:
        try:
            re.compile(pattern)
        except re.error as error:
            section.error("pattern", f"{pattern!r} is not a regular expression: {error}")
    return pattern


def _columns(section: Section) -> tuple[SchemaColumn, ...] | None:
    schema = section.text("schema")
    kind = section.text("format")
    if kind == "raw" and "schema" in section.given:
        section.error("schema", "is only for format json: raw records have Kafka's columns")
        return None
    if "schema" not in section.given:
        if kind == "json":
            section.error("schema", "is missing; expected columns like 'order_id STRING, ...'")
            return ()
        return None
    if schema is None:
        return ()
    columns, mistakes = read_ddl(schema)
    for mistake in mistakes:
        line = section.line_in_text("schema", mistake.line)
        section.error("schema", mistake.text, line=line)
    for column in columns:
        if column.name.lower() in METADATA_COLUMNS:
            section.error(
                "schema",
                f"column {column.name!r} would hide the record's metadata; expected another name"
                f" than {one_of(METADATA_COLUMNS)}",
            )
    return tuple(columns)


def _known_columns(
    section: Section, columns: tuple[SchemaColumn, ...] | None
) -> tuple[str, ...] | None:
    """None if a mistake in the schema leaves them unknown."""
    has_headers = bool(section.values.get("include_headers"))
    if columns is None:
        return RAW_COLUMNS if has_headers else RAW_COLUMNS[:-1]
    if not columns or any(
        each.key.startswith(f"sources.{section.name}.schema") for each in section.diagnostics
    ):
        return None
    own = tuple(column.name for column in columns)
    return (*own, *(METADATA_COLUMNS if has_headers else METADATA_COLUMNS[:-1]))


def _deduplicate(
    section: Section, known: tuple[str, ...] | None, watermark: Watermark | None
) -> tuple[str, ...]:
    columns = section.texts("deduplicate")
    for column in columns:
        check_column(section, "deduplicate", column, known)
    if "deduplicate" in section.given and "watermark" not in section.given:
        section.error("deduplicate", NEEDS_WATERMARK)
    return columns


NEEDS_WATERMARK = (
    "needs a watermark here or in an earlier view, else every key is kept forever; expected "
    + _WATERMARK_EXAMPLE
)


def _options(section: Section) -> dict[str, str]:
    """All for `readStream`, by Spark's names. A pipeline starts at the earliest record."""
    options = {"startingOffsets": "earliest"}
    for key, name in OPTIONS_OF_SOURCE.items():
        if key in section.values:
            options[name] = option(section.values[key])
    _check_starting_offsets(section, options["startingOffsets"])
    given = section.values.get("options", {})
    theirs = {name.lower(): key for key, name in OPTIONS_OF_SOURCE.items()}
    for name in given:
        if name.lower() in theirs:
            section.error(f"options.{name}", f"has a key of its own: {theirs[name.lower()]}")
        elif name.lower() in [each.lower() for each in OWN_OPTIONS]:
            section.error(f"options.{name}", "has a key of its own: topic, pattern, bootstrap")
    return {**options, **given}


def _check_starting_offsets(section: Section, given: str) -> None:
    if given in _EDGES:
        return
    try:
        is_fine = isinstance(json.loads(given), dict)
    except ValueError:
        is_fine = False
    if not is_fine:
        section.error(
            "starting_offsets",
            f'{given!r} is not known; expected "earliest", "latest" or'
            f""" JSON like '{{"orders": {{"0": 23, "1": -2}}}}'{did_you_mean(given, _EDGES)}""",
        )
