"""What every test run shares: its switches, the Java gate, and repeatable properties."""

from __future__ import annotations

import gc
import os
import signal
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings

from tests.campaign_extent import CampaignExtent
from tests.seeds.fresh import first_fresh_seed, number_of_all_code
from tidelog.demo.spark_processes import spark_scratch

TIDY = Path(__file__).parent / "tidy"

# Deadlines would time the machine, not the code. Properties draw the same examples in every run,
# so that a red run is red again; `--hypothesis-seed=N` with `derandomize` off explores further.
settings.register_profile(
    "default",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("all", settings.get_profile("default"), max_examples=200)
settings.register_profile("fast", settings.get_profile("default"), max_examples=25)


# Every Spark that a test starts lives for seconds: code that is compiled once and quickly is best.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


# Who is started in the background may have to ignore interrupts, and so would all that tests start;
# some of these are interrupted to see what they do.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Ten thousand tests are collected by every worker: nothing of it is garbage.
gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    gc.freeze()
    gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="also run the tests marked `long`")
    parser.addoption(
        "--whole-campaigns", action="store_true", help="all of each campaign, and not a part of it"
    )
    parser.addoption("--few", action="store_true", help="fewer examples of each property")


def pytest_configure(config: pytest.Config) -> None:
    few = "fast" if config.getoption("--few") else "default"
    settings.load_profile("all" if config.getoption("--all") else few)
    if not hasattr(config, "workerinput"):
        scratch = TemporaryDirectory(prefix="tidelog-spark-", ignore_cleanup_errors=True)
        config.add_cleanup(scratch.cleanup)
        os.environ.update(spark_scratch(Path(scratch.name)), SPARK_WORKER_DIR=scratch.name)
        if config.getoption("--all"):
            from tests.spark.class_archive import ClassArchive

            config.add_cleanup(ClassArchive(Path(scratch.name)).close)


@pytest.fixture(scope="session")
def extent(request: pytest.FixtureRequest) -> CampaignExtent:
    """How much of its campaign a test has."""
    is_whole: bool = request.config.getoption("--whole-campaigns")
    return CampaignExtent(is_whole=is_whole, number=number_of_all_code())


def pytest_report_header(config: pytest.Config) -> str:
    return f"fresh seeds begin at {first_fresh_seed()} (TIDELOG_FIRST_SEED=N: begin there)"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the long campaigns out unless asked for; keep everything of Java on one worker."""
    for item in items:
        if item.get_closest_marker("java") and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group("java"))
        if item.path.is_relative_to(TIDY):  # they read the same files
            item.add_marker(pytest.mark.xdist_group("tidy"))
        if config.getoption("loadgroup", False):
            name_the_group(item)
    if not config.getoption("--all") and "long" not in config.getoption("markexpr"):
        long = [item for item in items if item.get_closest_marker("long")]
        if long:
            config.hook.pytest_deselected(items=long)
            items[:] = [item for item in items if not item.get_closest_marker("long")]
    if not config.getoption("--whole-campaigns"):
        leave_out_other_parts(config, items)
    if config.getoption("loadgroup", False):
        put_groups_first(items)


def leave_out_other_parts(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of what is marked `rotating` a run has one part: other code has another one."""
    counts: Counter[str] = Counter()
    left_out: list[pytest.Item] = []
    for item in items:
        marker = item.get_closest_marker("rotating")
        if marker is None:
            continue
        test = item.nodeid.split("[")[0]
        key = str(item.path) if marker.kwargs.get("of") == "file" else test
        if (counts[key] + number_of_all_code()) % marker.args[0]:
            left_out.append(item)
        counts[key] += 1
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        unwanted = set(left_out)
        items[:] = [item for item in items if item not in unwanted]


def put_groups_first(items: list[pytest.Item]) -> None:
    """What one worker must do alone should not begin last: Spark's groups, then the others, those
    of many tests first. The scheduler keeps this order when it is told not to make its own."""
    groups = {item: item.get_closest_marker("xdist_group") for item in items}
    names = {item: group.args[0] if group else "" for item, group in groups.items()}
    sizes = Counter(names.values())

    def turn(item: pytest.Item) -> tuple[bool, bool, int, str]:
        name = names[item]
        return (not name, not name.startswith("spark"), -sizes[name] if name else 0, name)

    items.sort(key=turn)


def name_the_group(item: pytest.Item) -> None:
    """The scheduler of xdist reads a test's group at the end of its id. xdist 3.8 cannot write it
    there since pytest 9.2: without this a group is torn apart, and every worker starts the cluster
    that one of them should have started."""
    group = item.get_closest_marker("xdist_group")
    if group is not None and hasattr(item, "_id"):
        item._id = type(item._id).parse(f"{item.nodeid}@{group.args[0]}")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test marked `java` says why it cannot run instead of failing."""
    if item.get_closest_marker("java"):
        from tests.kafka.class_path import unavailable_reason

        reason = unavailable_reason()
        if reason is not None:
            pytest.skip(f"Apache Kafka cannot run here: {reason}")
