"""Which view reads which: the graph of sources and steps, in the order of the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tidelog.spark.pipeline.file.sections import Section
from tidelog.spark.pipeline.file.sql_shape import QueryShape


@dataclass(eq=False)
class View:
    """A source or a step, by the name that SQL knows it by."""

    section: Section
    number: int
    """Its index among all views; a step reads only earlier views."""
    reads: list[View] = field(default_factory=list)
    shape: QueryShape | None = None
    columns: tuple[str, ...] | None = None
    """None: only Spark knows them."""

    @property
    def name(self) -> str:
        return self.section.name

    @property
    def is_source(self) -> bool:
        return self.section.path[0] == "sources"

    @property
    def has_watermark(self) -> bool:
        return "watermark" in self.section.given

    @property
    def deduplicates(self) -> bool:
        return "deduplicate" in self.section.given

    def lineage(self) -> list[View]:
        """Itself and all views that it is made of, in file order."""
        found: dict[View, None] = {}
        pending = [self]
        while pending:
            view = pending.pop()
            if view not in found:
                found[view] = None
                pending.extend(view.reads)
        return sorted(found, key=lambda each: each.number)

    def before(self) -> list[View]:
        """What it is made of."""
        return [each for each in self.lineage() if each is not self]


class Views:
    """By name; Spark ignores case."""

    def __init__(self) -> None:
        self._by_name: dict[str, View] = {}

    def add(
        self,
        section: Section,
        *,
        shape: QueryShape | None = None,
        columns: tuple[str, ...] | None = None,
    ) -> View | None:
        """None if there is already one of this name."""
        name = section.name.lower()
        if name in self._by_name:
            return None
        view = View(section, len(self._by_name), shape=shape, columns=columns)
        self._by_name[name] = view
        return view

    def get(self, name: str) -> View | None:
        return self._by_name.get(name.lower())

    def __iter__(self) -> Iterator[View]:
        return iter(self._by_name.values())

    def names(self) -> list[str]:
        return [view.name for view in self]


def read_path(start: View, goal: View, by_name: Views) -> list[str] | None:
    """The names on a path from `start` to `goal` along what each reads, in any file order."""
    pending: list[tuple[View, list[str]]] = [(start, [start.name])]
    seen = {start}
    while pending:
        view, path = pending.pop(0)
        if view is goal:
            return path
        for name in relation_names(view):
            following = by_name.get(name)
            if following is not None and following not in seen:
                seen.add(following)
                pending.append((following, [*path, following.name]))
    return None


def relation_names(view: View) -> Iterable[str]:
    """The single names that its SQL reads."""
    if view.shape is None:
        return []
    return dict.fromkeys(read.parts[0] for read in view.shape.reads if len(read.parts) == 1)
