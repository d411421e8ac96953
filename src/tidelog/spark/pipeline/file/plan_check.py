"""The front door: a pipeline's file, or the same as a mapping, to a plan and all complaints."""

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
from tidelog.spark.pipeline.file.doubtful import doubt_of
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
from tidelog.spark.pipeline.file.toml_document import Document, document_of, read_document
from tidelog.spark.pipeline.file.views import View, Views

TRIGGER_MS = 1_000
_CHECKPOINT = 'is missing; expected a directory, like checkpoint = "state/orders"'
_SOURCES = 'there is none; expected [sources.NAME] with topic = "orders"'
_SINKS = 'there is none; expected [sinks.NAME] with table = "DIRECTORY", or a topic'


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPlan:
    """What a file says: a plan unless something is wrong, and everything there is to tell."""

    file: str
    plan: PipelinePlan | None
    complaints: tuple[Diagnostic, ...]
    document: Document

    def line_of(self, key: str) -> int | None:
        """Where a key stands, for complaints that come later."""
        return self.document.line_of(tuple(key.split(".")))

    @property
    def errors(self) -> list[Diagnostic]:
        return [each for each in self.complaints if not each.is_warning]

    @property
    def warnings(self) -> list[Diagnostic]:
        return [each for each in self.complaints if each.is_warning]

    def plan_or_raise(self) -> PipelinePlan:
        """BadPlan if there is none."""
        if self.plan is None:
            raise BadPlan(self.file, self.errors)
        return self.plan


def check_text(text: str, *, file: str, base: str, name: str) -> CheckedPlan:
    """A file's text. `base` is where its paths begin, `name` what it is called by default."""
    document, complaints = read_document(text)
    return _Check(document, complaints, file=file, base=base, name=name).checked()


def check_mapping(plan: Mapping[str, object], *, base: str, name: str) -> CheckedPlan:
    """The same tables and keys as nested mappings; a step may be a function there."""
    return _Check(document_of(plan), [], file="plan", base=base, name=name).checked()


@dataclass
class _Check:
    """Collects the parts, then looks at them together."""

    document: Document
    complaints: list[Diagnostic]
    file: str
    base: str
    name: str
    views: Views = field(default_factory=Views)
    sources: list[SourceSpec] = field(default_factory=list)
    steps: list[StepSpec] = field(default_factory=list)
    sinks: list[SinkSpec] = field(default_factory=list)
    fed: list[tuple[Section, View]] = field(default_factory=list)
    places: list[tuple[Section, TableTarget | TopicTarget]] = field(default_factory=list)

    def checked(self) -> CheckedPlan:
        top = read_section(self.document, (), keys.TOP, self.complaints)
        checkpoint = self._check_top(top)
        self._read_views(top)
        self._read_sinks(top)
        dead_letters = self._read_dead_letters()
        check_targets(self.places, self.sources, checkpoint=checkpoint)
        self._look_at_views()
        complaints = tuple(in_file_order(self.complaints))
        plan = None
        if all(each.is_warning for each in complaints):
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
        return CheckedPlan(file=self.file, plan=plan, complaints=complaints, document=self.document)

    def _check_top(self, top: Section) -> str | None:
        for key, trouble in (("bootstrap", bootstrap_error), ("master", master_error)):
            given = top.text(key)
            told = None if given is None else trouble(given)
            if told is not None:
                top.complain(key, told)
        name = top.text("name")
        if name is not None and PIPELINE.fullmatch(name) is None:
            top.complain("name", f"{name!r} is no name; expected letters, digits, '.', '_', '-'")
        if "checkpoint" not in top.given:
            top.complain("checkpoint", _CHECKPOINT)
        checkpoint = top.text("checkpoint")
        return None if checkpoint is None else absolute_path(checkpoint, self.base)

    def _read_views(self, top: Section) -> None:
        for section in read_named(self.document, "sources", keys.SOURCE, self.complaints):
            source, columns = check_source(section)
            self.sources.append(source)
            self._add_view(section, self.views.add(section, columns=columns))
        for section in read_named(self.document, "steps", keys.STEP, self.complaints):
            step, shape = check_step(section)
            self.steps.append(step)
            self._add_view(section, self.views.add(section, shape=shape))
        if not self.sources:
            top.complain("sources", _SOURCES)

    def _add_view(self, section: Section, view: View | None) -> None:
        if view is None:
            earlier = self.views.get(section.name)
            assert earlier is not None
            section.complain(
                "",
                f"the name is taken by [{'.'.join(earlier.section.path)}]; views need names"
                " of their own, and Spark does not mind capital letters",
            )

    def _read_sinks(self, top: Section) -> None:
        for section in read_named(self.document, "sinks", keys.SINK, self.complaints):
            sink, view = check_sink(section, self.views, self.base)
            if sink is not None:
                self.sinks.append(sink)
                self.places.append((section, sink.target))
            if view is not None:
                self.fed.append((section, view))
        if not self.document.names_below("sinks"):
            top.complain("sinks", _SINKS)

    def _read_dead_letters(self) -> TableTarget | TopicTarget | None:
        is_given = DEAD_LETTERS in self.document_sections()
        needy = [each for each in self.sources if each.columns and not each.fails_on_bad_records]
        if not is_given:
            for source in needy:
                view = self.views.get(source.name)
                assert view is not None
                view.section.complain(
                    "bad_records",
                    "is missing, and records that do not parse need a place; expected"
                    ' [dead_letters] with table = "DIRECTORY" or a topic, or bad_records = "fail"',
                )
            return None
        section = read_section(self.document, (DEAD_LETTERS,), keys.DEAD, self.complaints)
        if not needy and self.sources:
            section.warn("", "no source sends anything here: none is json with dead letters")
        target = check_target(section, self.base)
        if target is not None:
            self.places.append((section, target))
        return target

    def document_sections(self) -> set[str]:
        """The first parts of all keys and tables."""
        return {path[0] for path in (*self.document.values, *self.document.tables) if path}

    def _look_at_views(self) -> None:
        connect_views(self.views)
        for view in self.views:
            find_columns(view, self.views)
            check_step_columns(view)
            check_streaming(view, self.views)
        used: set[View] = set()
        for section, view in self.fed:
            used.update(view.lineage())
            check_sink_columns(section, view)
            if section.text("mode") != "update":
                check_grouping(view, self.views)
        is_sound = all(each.is_warning for each in self.complaints)
        for view in self.views:
            if view not in used and is_sound:  # a name that is spelt wrong feeds nobody
                view.section.warn("", "no sink needs it, so it does not run")
            elif view.shape is not None:
                self._warn_of_doubts(view)

    def _warn_of_doubts(self, view: View) -> None:
        assert view.shape is not None
        for call in view.shape.calls:
            doubt = doubt_of(call)
            if doubt is not None:
                line = view.section.line_in_text("sql", call.line)
                view.section.warn("sql", doubt, line=line)


def _spark_settings(top: Section) -> dict[str, str]:
    """`[spark]` may leave out the word that all of its keys begin with."""
    given = top.values.get("spark", {})
    return {f"spark.{name.removeprefix('spark.')}": value for name, value in given.items()}
