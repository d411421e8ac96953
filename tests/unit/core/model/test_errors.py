"""Error codes: what other nodes send, known or not."""

from __future__ import annotations

import pytest

from tidelog.core.model.errors import ErrorCode


@pytest.mark.parametrize("error", list(ErrorCode))
def test_a_code_that_is_known_is_its_error(error: ErrorCode) -> None:
    assert ErrorCode.from_wire(int(error)) is error


@pytest.mark.parametrize("code", [-2, 999, 2**15 - 1])
def test_a_code_of_a_later_kafka_is_an_unknown_error(code: int) -> None:
    assert ErrorCode.from_wire(code) is ErrorCode.UNKNOWN_SERVER_ERROR
