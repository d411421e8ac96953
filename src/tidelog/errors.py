"""The root of all exceptions that Tidelog defines: `except TidelogError` catches each of them."""

from __future__ import annotations

from tidelog.core.model.exceptions import TidelogError

__all__ = ["TidelogError"]
