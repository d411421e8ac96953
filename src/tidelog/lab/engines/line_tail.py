"""The lines that another process adds to a file, each given once, and only when it is complete."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class JsonTail:
    """Reads on from where it stopped. What is no JSON object (a traceback) is left out."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self._unfinished = b""

    def new_objects(self) -> Iterator[dict[str, Any]]:
        """Everything that was added since the last time."""
        for line in self._new_lines():
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict):
                yield found

    def _new_lines(self) -> list[bytes]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._position)
                added = file.read()
        except FileNotFoundError:
            return []
        self._position += len(added)
        *lines, self._unfinished = (self._unfinished + added).split(b"\n")
        return lines
