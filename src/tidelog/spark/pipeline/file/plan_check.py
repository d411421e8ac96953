"""A pipeline's file, or the same as a mapping, becomes a plan and all diagnostics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidelog.spark.pipeline.file import keys
from tidelog.spark.pipeline.file.check_columns import (
    check_sink_columns,
    check_step_columns,
    find_columns,
)
from tidelog.spark.pipeline.file.check_sinks import check_sink, check_target, check_targets
from tidelog.spark.pipeline.file.check_sources import check_source
from tidelog.spark.pipeline.file.check_steps import (
    check_grouping,
    check_step,
    check_streaming,
    connect_views,
)
from tidelog.spark.pipeline.file.diagnostics import BadPlan, Diagnostic, in_file_order
from tidelog.spark.pipeline.file.name_rules import (
    PIPELINE,
    absolute_path,
    bootstrap_error,
    master_error,
)
from tidelog.spark.pipeline.file.plan import (
    DEAD_LETTERS,
    PipelinePlan,
    SinkSpec,
    SourceSpec,
    StepSpec,
    TableTarget,
    TopicTarget,
)
from tidelog.spark.pipeline.file.sections import Section, read_named, read_section
from tidelog.spark.pipeline.file.sql_shape import nondeterminism
from tidelog.spark.pipeline.file.toml_document import Document, document_of, read_document
from tidelog.spark.pipeline.file.views import View, Views

TRIGGER_MS = 1_000
_CHECKPOINT = 'is missing; expected a directory, like checkpoint = "state/orders"'
_SOURCES = 'is missing; expected [sources.NAME] with topic = "orders"'
_SINKS = 'is missing; expected [sinks.NAME] with table = "DIRECTORY", or a topic'


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPlan:
    """The result of a check: a plan unless there are errors, and all diagnostics."""

    file: str
    plan: PipelinePlan | None
    diagnostics: tuple[Diagnostic, ...]
    document: Document

    def line_of(self, key: str) -> int | None:
        """The line of a key, for diagnostics that come later."""
        return self.document.line_of(tuple(key.split(".")))

    @property
    def errors(self) -> list[Diagnostic]:
        return [each for each in self.diagnostics if not each.is_warning]

    @property
    def warnings(self) -> list[Diagnostic]:
        return [each for each in self.diagnostics if each.is_warning]

    def plan_or_raise(self) -> PipelinePlan:
        """BadPlan if there is none."""
        if self.plan is None:
            raise BadPlan(self.file, self.errors)
        return self.plan


def check_text(text: str, *, file: str, base: str, name: str) -> CheckedPlan:
    """Check a file's text. Paths are relative to `base`; `name` is the default name."""
    document, diagnostics = read_document(text)
    return _Check(document, diagnostics, file=file, base=base, name=name).checked()


def check_mapping(plan: Mapping[str, object], *, base: str, name: str) -> CheckedPlan:
    """Check the same tables and keys as nested mappings; a step may be a function there."""
    return _Check(document_of(plan), [], file="plan", base=base, name=name).checked()


@dataclass
class _Check:
    """Collects the parts, then checks them together."""

    document: Document
    diagnostics: list[Diagnostic]
    file: str
    base: str
    name: str
    views: Views = field(default_factory=Views)
    sources: list[SourceSpec] = field(default_factory=list)
    steps: list[StepSpec] = field(default_factory=list)
    sinks: list[SinkSpec] = field(default_factory=list)
    sink_views: list[tuple[Section, View]] = field(default_factory=list)
    targets: list[tuple[Section, TableTarget | TopicTarget]] = field(default_factory=list)

    def checked(self) -> CheckedPlan:
        top = read_section(self.document, (), keys.TOP, self.diagnostics)
        checkpoint = self._check_top(top)
        self._read_views(top)
        self._read_sinks(top)
        dead_letters = self._read_dead_letters()
        check_targets(self.targets, self.sources, checkpoint=checkpoint)
        self._check_views()
        diagnostics = tuple(in_file_order(self.diagnostics))
        plan = None
        if all(each.is_warning for each in diagnostics):
            assert checkpoint is not None
            plan = PipelinePlan(
                name=top.text("name") or self.name,
                checkpoint=checkpoint,
                bootstrap=top.text("bootstrap"),
                master=top.text("master"),
                trigger_ms=top.values.get("trigger", TRIGGER_MS),
                sources=tuple(self.sources),
                steps=tuple(self.steps),
                sinks=tuple(self.sinks),
                dead_letters=dead_letters,
                spark=_spark_settings(top),
            )
        return CheckedPlan(
            file=self.file, plan=plan, diagnostics=diagnostics, document=self.document
        )

    def _check_top(self, top: Section) -> str | None:
        for key, find_error in (("bootstrap", bootstrap_error), ("master", master_error)):
            given = top.text(key)
            error = None if given is None else find_error(given)
            if error is not None:
                top.error(key, error)
        name = top.text("name")
        if name is not None and PIPELINE.fullmatch(name) is None:
            top.error(
                "name", f"{name!r} is not a valid name; expected letters, digits, '.', '_', '-'"
            )
        if "checkpoint" not in top.given:
            top.error("checkpoint", _CHECKPOINT)
        checkpoint = top.text("checkpoint")
        return None if checkpoint is None else absolute_path(checkpoint, self.base)

    def _read_views(self, top: Section) -> None:
        for section in read_named(self.document, "sources", keys.SOURCE, self.diagnostics):
            source, columns = check_source(section)
            self.sources.append(source)
            self._add_view(section, self.views.add(section, columns=columns))
        for section in read_named(self.document, "steps", keys.STEP, self.diagnostics):
            step, shape = check_step(section)
            self.steps.append(step)
            self._add_view(section, self.views.add(section, shape=shape))
        if not self.sources:
            top.error("sources", _SOURCES)

    def _add_view(self, section: Section, view: View | None) -> None:
        if view is None:
            earlier = self.views.get(section.name)
            assert earlier is not None
            section.error(
                "",
                f"the name is taken by [{'.'.join(earlier.section.path)}]; view names must be"
                " unique, and Spark ignores case",
            )

    def _read_sinks(self, top: Section) -> None:
        for section in read_named(self.document, "sinks", keys.SINK, self.diagnostics):
            sink, view = check_sink(section, self.views, self.base)
            if sink is not None:
                self.sinks.append(sink)
                self.targets.append((section, sink.target))
            if view is not None:
                self.sink_views.append((section, view))
        if not self.document.names_below("sinks"):
            top.error("sinks", _SINKS)

    def _read_dead_letters(self) -> TableTarget | TopicTarget | None:
        is_given = DEAD_LETTERS in self.document_sections()
        with_dead_letters = [
            each for each in self.sources if each.columns and not each.fails_on_bad_records
        ]
        if not is_given:
            for source in with_dead_letters:
                view = self.views.get(source.name)
                assert view is not None
                view.section.error(
                    "bad_records",
                    "is missing, and records that cannot be parsed need a destination; expected"
                    ' [dead_letters] with table = "DIRECTORY" or a topic, or bad_records = "fail"',
                )
            return None
        section = read_section(self.document, (DEAD_LETTERS,), keys.DEAD, self.diagnostics)
        if not with_dead_letters and self.sources:
            section.warn("", "no source uses it: none is json with dead letters")
        target = check_target(section, self.base)
        if target is not None:
            self.targets.append((section, target))
        return target

    def document_sections(self) -> set[str]:
        """The first parts of all keys and tables."""
        return {path[0] for path in (*self.document.values, *self.document.tables) if path}

    def _check_views(self) -> None:
        connect_views(self.views)
        for view in self.views:
            find_columns(view, self.views)
            check_step_columns(view)
            check_streaming(view, self.views)
        used: set[View] = set()
        for section, view in self.sink_views:
            used.update(view.lineage())
            check_sink_columns(section, view)
            if section.text("mode") != "update":
                check_grouping(view, self.views)
        is_sound = all(each.is_warning for each in self.diagnostics)
        for view in self.views:
            if view not in used and is_sound:  # a misspelt name is an unused view, too
                view.section.warn("", "no sink needs it, so it does not run")
            elif view.shape is not None:
                self._warn_of_nondeterminism(view)

    def _warn_of_nondeterminism(self, view: View) -> None:
        assert view.shape is not None
        for call in view.shape.calls:
            warning = nondeterminism(call)
            if warning is not None:
                line = view.section.line_in_text("sql", call.line)
                view.section.warn("sql", warning, line=line)


def _spark_settings(top: Section) -> dict[str, str]:
    """`[spark]` may omit the prefix `spark.` of its keys."""
    given = top.values.get("spark", {})
    return {f"spark.{name.removeprefix('spark.')}": value for name, value in given.items()}
