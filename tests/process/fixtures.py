"""The fixtures of `process` and `compat`: a shared broker, brokers of one's own, fresh topics."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack

import pytest

from tests.process.broker import Setting
from tests.process.target import RUNNING, Target, running_target
from tests.process.wire import WireClient

StartBroker = Callable[..., Target]
NewTopic = Callable[..., str]


@pytest.fixture(scope="session")
def broker() -> Iterator[Target]:
    """One broker with default settings for all tests that only add topics to it."""
    with running_target() as target:
        yield target


@pytest.fixture
def bootstrap(broker: Target) -> str:
    """The address of the shared broker, as clients want it."""
    return broker.address


@pytest.fixture
def start_broker() -> Iterator[StartBroker]:
    """Starts a broker with the given settings; it is gone after the test."""
    with ExitStack() as stack:

        def start(settings: dict[str, Setting] | None = None) -> Target:
            return stack.enter_context(running_target(settings))

        yield start


@pytest.fixture
def wire(broker: Target) -> Iterator[WireClient]:
    """A connection to the shared broker that speaks the wire itself."""
    with WireClient(broker.address) as client:
        yield client


@pytest.fixture
def new_topic(request: pytest.FixtureRequest, wire: WireClient) -> NewTopic:
    """Makes topics on the shared broker, named after the test."""
    module = request.node.module.__name__.rpartition(".")[2]
    stem = re.sub(r"[^a-zA-Z0-9-]", "-", f"{module}-{request.node.name}")[:200]
    made: list[str] = []

    def make(*, partitions: int = 1, **configs: str) -> str:
        name = f"{stem}-{len(made)}"
        wire.create_topic(
            name,
            partitions=partitions,
            configs={key.replace("_", "."): value for key, value in configs.items()},
        )
        made.append(name)
        return name

    return make


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failing test shows what its brokers said."""
    report = yield
    if report.failed:
        for target in RUNNING:
            report.sections.append((f"broker at {target.address}", target.last_log_lines()))
    return report
