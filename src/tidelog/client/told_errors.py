"""Error codes as brokers tell them: a code of a later Kafka is as good as an unknown error."""

from __future__ import annotations

from tidelog.core.model.errors import ErrorCode


def error_of(code: int) -> ErrorCode:
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
