"""Acks journals for tests: lines as a producer writes them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any


def begin(run: str = "r1", topic: str = "orders", **more: Any) -> str:
    line = {
        "journal": "tidelog-acks",
        "version": 1,
        "run": run,
        "topic": topic,
        "topic_id": None,
        "acks": "all",
        "idempotence": True,
        "began_ms": 1_767_225_600_000,
        "began_us": 5_000_000,
    }
    return json.dumps({**line, **more}, ensure_ascii=False)


def entry(number: int, **more: Any) -> str:
    line = {
        "number": number,
        "key": f"k{number}",
        "value_sha256": hashlib.sha256(f"v{number}".encode()).hexdigest(),
        "partition": 0,
        "offset": number,
        "outcome": "ok",
        "error": None,
        "reason": None,
        "timestamp_ms": 1_767_225_600_000 + number,
        "sent_us": 5_000_000 + number,
        "answered_us": 5_000_100 + number,
    }
    return json.dumps({**line, **more}, ensure_ascii=False)


def end(ok: int, refused: int = 0, unknown: int = 0) -> str:
    counts = {"ok": ok, "refused": refused, "unknown": unknown, "errors": {}}
    return json.dumps({"end": counts, "ended_ms": 1_767_225_601_000})


def write(path: Path, *lines: str, is_torn: bool = False) -> Path:
    path.write_text("\n".join(lines) + ("" if is_torn else "\n"), encoding="utf-8")
    return path
