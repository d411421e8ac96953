"""`python -m tests.golden`: record Apache Kafka's answers anew, and compare Tidelog with them.

Without a verb it does both: what Kafka answers now is compared with the stored recordings, and what
Tidelog answers with what Kafka answers: first one process of each, then one that coordinates groups
and transactions, then three that form a cluster. Nothing is stored unless the verb is `record`. The
exit code is 0 only if nothing differs without an explanation.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from tests.golden import cluster_live, live, recordings
from tests.golden.cases import CASES, COORDINATED_CASES, Case
from tests.golden.cluster_cases import CLUSTER_CASES
from tests.golden.compare import Difference, differences
from tests.golden.documentation import FILE, documentation
from tests.golden.explained import explanation, unexplained
from tests.golden.group_cases import GROUP_CASES
from tests.golden.recordings import Steps
from tests.golden.transaction_cases import TRANSACTION_CASES
from tests.kafka import KAFKA_VERSION, unavailable_reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Cases that need the same kind of opponents, and how to get these."""

    what: str
    cases: Sequence[Case]
    kafka: Callable[[], AbstractContextManager[Any]]
    tidelog: Callable[[], AbstractContextManager[Any]]
    run_all: Callable[..., dict[str, Steps]]


def rounds(pattern: str) -> list[Round]:
    """One broker, those with groups and coordinators, then a cluster, as far as cases need them."""
    alone = [case for case in CASES.values() if fnmatchcase(case.name, pattern)]
    coordinated = [case for case in COORDINATED_CASES.values() if fnmatchcase(case.name, pattern)]
    together = [case for case in CLUSTER_CASES.values() if fnmatchcase(case.name, pattern)]
    groups = [case for case in GROUP_CASES.values() if fnmatchcase(case.name, pattern)]
    transactions = [case for case in TRANSACTION_CASES.values() if fnmatchcase(case.name, pattern)]
    every = [
        Round(
            what="",
            cases=alone,
            kafka=live.apache_kafka,
            tidelog=live.tidelog,
            run_all=live.run_all,
        ),
        Round(
            what=" groups",
            cases=groups,
            kafka=live.kafka_with_groups,
            tidelog=live.tidelog_with_groups,
            run_all=live.run_all,
        ),
        Round(
            what=" with coordinators",
            cases=coordinated,
            kafka=live.coordinating_kafka,
            tidelog=live.coordinating_tidelog,
            run_all=live.run_all,
        ),
        Round(
            what=" transactions",
            cases=transactions,
            kafka=live.kafka_with_transactions,
            tidelog=live.tidelog_with_transactions,
            run_all=live.run_all,
        ),
        Round(
            what=" cluster",
            cases=together,
            kafka=cluster_live.apache_kafka,
            tidelog=cluster_live.tidelog,
            run_all=cluster_live.run_all,
        ),
    ]
    return [one for one in every if one.cases]


def main(arguments: Sequence[str]) -> int:
    options = parsed(arguments)
    found = rounds(options.only)
    if not found:
        print(f"no case is called {options.only}", file=sys.stderr)
        return 2
    if options.verb == "list":
        for case in [case for one in found for case in one.cases]:
            print(f"{case.name}: {case.description}")
        return 0
    if options.verb == "docs":
        FILE.write_text(documentation())
        return 0
    if reason := unavailable_reason():
        print(f"Apache Kafka cannot run here: {reason}", file=sys.stderr)
        return 2
    return max([play(one, options.verb) for one in found])


def play(one: Round, verb: str) -> int:
    """Ask both sides everything, or only Kafka where that is to be recorded."""
    with one.kafka() as kafka:
        label = f"Apache Kafka {KAFKA_VERSION}{one.what}"
        kafka_says = one.run_all(one.cases, kafka, label=label)
    if verb == "record":
        return record(one.cases, kafka_says)
    is_stale = verb == "all" and not recordings_hold(one.cases, kafka_says)
    with one.tidelog() as tidelog:
        tidelog_says = one.run_all(one.cases, tidelog, label=f"Tidelog{one.what}")
    return 1 if report(kafka_says, tidelog_says) or is_stale else 0


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="golden", description=__doc__)
    parser.add_argument(
        "verb",
        nargs="?",
        choices=("all", "record", "compare", "list", "docs"),
        default="all",
        help="all: compare Kafka with the recordings and Tidelog with Kafka (the default); "
        "record: write the recordings anew; compare: only Tidelog with Kafka; list: the cases; "
        "docs: write docs/differences-from-kafka.md",
    )
    parser.add_argument(
        "--only", default="*", metavar="PATTERN", help="only cases of this name, like 'fetch-*'"
    )
    return parser.parse_args(arguments)


def record(cases: Sequence[Case], kafka_says: Mapping[str, Steps]) -> int:
    """Store what Kafka said; recordings of cases that were not run are kept."""
    kept = {**recordings.load(), **kafka_says}
    every = [CASES, GROUP_CASES, COORDINATED_CASES, TRANSACTION_CASES, CLUSTER_CASES]
    recordings.save(kept, [case for cases in every for case in cases.values()])
    print(f"{len(cases)} cases recorded in {recordings.DIRECTORY.name}/")
    return 0


def recordings_hold(cases: Sequence[Case], kafka_says: Mapping[str, Steps]) -> bool:
    """Whether the stored recordings are what Kafka answers now; says where they are not."""
    stored = recordings.load()
    changed = [case.name for case in cases if stored.get(case.name) != kafka_says[case.name]]
    for name in changed:
        print(f"the recording is not what Kafka answers: {name}")
        for difference in differences(name, kafka_says[name], stored.get(name)):
            print(f"    {difference.path}: now {difference.kafka!r}, was {difference.tidelog!r}")
    print(f"recordings: {len(cases) - len(changed)} of {len(cases)} are what Kafka answers")
    return not changed


def report(kafka_says: Mapping[str, Steps], tidelog_says: Mapping[str, Steps]) -> int:
    """Print what differs; how many differences nothing explains."""
    found: list[Difference] = []
    for name, steps in kafka_says.items():
        found += differences(name, steps, tidelog_says[name])
    wrong = unexplained(found)
    for difference in wrong:
        print(difference)
    explained = [entry for difference in found if (entry := explanation(difference))]
    for title in dict.fromkeys(entry.title for entry in explained):
        count = sum(entry.title == title for entry in explained)
        print(f"explained: {count} x {title}")
    print(f"Tidelog: {len(kafka_says)} cases, {len(wrong)} unexplained differences")
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
