"""The log directories of a broker, as its controller hears of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.unit.core.node.brokers import Brokers


@pytest.mark.parametrize(
    ("epochs", "expected"),
    [((31,), 31), ((31, 31), 31), ((None,), None), ((31, None), None), ((31, 32), None)],
)
@pytest.mark.scenario("X-7")
def test_a_stop_was_clean_only_if_every_directory_says_so(
    epochs: tuple[int | None, ...], expected: int | None
) -> None:
    manager = Brokers(1).nodes[1].replica_manager
    manager.directories = cast("Any", [SimpleNamespace(clean_broker_epoch=each) for each in epochs])
    assert manager.clean_broker_epoch() == expected
