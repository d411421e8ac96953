"""The front door of the simulator: many seeds with progress, or one seed with its whole trace.

Exit codes: 0 all seeds clean; 1 a seed failed (or a mutant was not caught); 2 bad arguments.
"""

from __future__ import annotations

import argparse
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Protocol

from tidelog.worlds.simulator.campaign_report import (
    Progress,
    print_anomalies,
    print_failure,
    print_story,
    seed_summary,
)
from tidelog.worlds.simulator.disk import SimDisk
from tidelog.worlds.simulator.mutants import MUTANTS
from tidelog.worlds.simulator.profiles.cluster_run import ClusterRun
from tidelog.worlds.simulator.profiles.compaction import CompactionRun
from tidelog.worlds.simulator.profiles.groups import GroupsRun
from tidelog.worlds.simulator.profiles.planned_run import PlannedRun
from tidelog.worlds.simulator.profiles.replication_plan import make_replication_plan
from tidelog.worlds.simulator.profiles.storage_plan import make_storage_plan
from tidelog.worlds.simulator.profiles.transactions import TransactionsRun
from tidelog.worlds.simulator.step_shrinker import Shrinker
from tidelog.worlds.simulator.steps import BadChoice, ChosenStep, from_text
from tidelog.worlds.simulator.verdict import Verdict
from tidelog.worlds.simulator.world import SimWorld


class SeedRun(Protocol):
    """One seed of a profile."""

    @property
    def world(self) -> SimWorld: ...

    def run(self, *, with_digest: bool = False) -> Verdict: ...


PROFILES: dict[str, Callable[..., SeedRun]] = {
    "storage": partial(PlannedRun, make_storage_plan),
    "replication": partial(PlannedRun, make_replication_plan),
    "groups": GroupsRun,
    "compaction": CompactionRun,
    "transactions": TransactionsRun,
}
REPORTED_IN_FULL = 3

HELP = """\
Run the real broker in a simulated world: virtual time, a lossy network, a disk that forgets,
processes that crash. A seed decides the whole run, so a failing seed fails again:

  ./dev sim --profile storage --seeds 1000 --jobs 2     a thousand worlds
  ./dev sim --profile replication --seeds 300           clusters of three to five nodes
  ./dev sim --profile groups --seeds 300                consumer groups and their coordinators
  ./dev sim --profile compaction --seeds 300            compacted topics, and crashes amid swaps
  ./dev sim --profile transactions --seeds 300          both protocols, and their coordinators
  ./dev sim --profile storage --replay 4711             one world, every event printed
  ./dev sim --profile replication --replay 4711 --only 3,7/200
                                                        with two of its steps, one for 200 ms
  ./dev sim --profile storage --seeds 50 --mutant forget-names
                                                        plant a known mistake; it must be caught
"""


def main(arguments: list[str]) -> int:
    """Parse, run, report; the result is the exit code."""
    options = _parse(arguments)
    if options.replay is not None:
        return replay(options.profile, options.replay, options.mutant, options.only)
    return campaign(
        options.profile,
        seeds=range(options.first_seed, options.first_seed + options.seeds),
        jobs=options.jobs,
        mutant=options.mutant,
        keep_going=options.keep_going,
        shrinks=not options.no_shrink,
        with_counts=options.counts,
        prints_each=options.each,
    )


def run_seed(
    profile: str, seed: int, mutant: str | None, only: Sequence[ChosenStep] | None = None
) -> Verdict:
    """One seed from start to verdict, with a planted mistake if one is named."""
    steps = {} if only is None else {"only": only}
    if mutant is None:
        return PROFILES[profile](seed, disk_type=SimDisk, **steps).run()
    with MUTANTS[mutant].planted() as disk_type:
        return PROFILES[profile](seed, disk_type=disk_type, **steps).run()


def campaign(
    profile: str,
    *,
    seeds: range,
    jobs: int,
    mutant: str | None,
    keep_going: bool,
    shrinks: bool = True,
    with_counts: bool = False,
    prints_each: bool = False,
) -> int:
    """Many seeds; stops at the first failure unless `keep_going`."""
    progress = Progress(total=len(seeds), profile=profile)
    failed: list[Verdict] = []
    for verdict in verdicts(profile, seeds, jobs, mutant):
        progress.add(verdict)
        if prints_each:
            print(seed_summary(verdict))
        if verdict.anomalies and (mutant is None or _is_caught(mutant, verdict)):
            failed.append(verdict)
            progress.end_line()
            if len(failed) <= REPORTED_IN_FULL:
                print_failure(profile, verdict, mutant)
                if shrinks and verdict.story and mutant is None:
                    shrink(profile, verdict, mutant)
            else:
                print(f"seed {verdict.seed} failed: {verdict.anomalies[0].name}")
            if mutant is not None or not keep_going:
                break
    progress.finish(with_counts=with_counts)
    if mutant is not None:
        return _judge_mutant(mutant, failed, progress.done)
    if failed:
        print(f"{len(failed)} of {progress.done} seeds failed")
        return 1
    print(f"{progress.done} seeds clean ({seeds.start} to {seeds.stop - 1})")
    return 0


def shrink(profile: str, verdict: Verdict, mutant: str | None) -> list[ChosenStep]:
    """Find a few steps of a failing seed that break the same thing, and print them."""
    kind = verdict.anomalies[0].kind
    found: dict[tuple[ChosenStep, ...], Verdict] = {}

    def fails(chosen: Sequence[ChosenStep]) -> bool:
        found[tuple(chosen)] = again = run_seed(profile, verdict.seed, mutant, chosen)
        return bool(again.anomalies) and again.anomalies[0].kind == kind

    plan = PROFILES[profile](verdict.seed, disk_type=SimDisk)
    assert isinstance(plan, ClusterRun), "only runs with steps can be shrunk"
    shrinker = Shrinker(fails)
    chosen = shrinker.shrink(plan.all_steps)
    shortest = found.get(tuple(chosen), verdict)
    print_story(profile, shortest, chosen, mutant, tries=shrinker.tries)
    return chosen


def replay(profile: str, seed: int, mutant: str | None, only: str | None = None) -> int:
    """One seed with every event on the terminal."""
    steps: dict[str, Sequence[ChosenStep]] = {}
    if only is not None:
        made = PROFILES[profile](seed, disk_type=SimDisk)
        assert isinstance(made, ClusterRun), "parsed so"
        try:
            steps = {"only": from_text(only, count=len(made.all_steps))}
        except BadChoice as bad:
            print(f"--only: {bad}")
            return 2
    if mutant is None:
        run = PROFILES[profile](seed, disk_type=SimDisk, **steps)
        verdict = run.run(with_digest=True)
    else:
        with MUTANTS[mutant].planted() as disk_type:
            run = PROFILES[profile](seed, disk_type=disk_type, **steps)
            verdict = run.run(with_digest=True)
    for line in run.world.trace.lines():
        print(line)
    for step in verdict.story:
        print(f"  {step}")
    print(seed_summary(verdict))
    print(f"digest {verdict.digest}")
    if verdict.traceback is not None:
        print(verdict.traceback)
    print_anomalies(verdict.anomalies)
    return 1 if verdict.anomalies else 0


def verdicts(profile: str, seeds: range, jobs: int, mutant: str | None) -> Iterator[Verdict]:
    """The verdicts of these seeds, as they come."""
    one = partial(_run_one, profile, mutant)
    if jobs <= 1:
        yield from map(one, seeds)
        return
    with multiprocessing.Pool(jobs) as pool:
        yield from pool.imap_unordered(one, seeds, chunksize=4)


def _run_one(profile: str, mutant: str | None, seed: int) -> Verdict:
    return run_seed(profile, seed, mutant)


def _is_caught(name: str, verdict: Verdict) -> bool:
    """By the check that is meant for it, not by whatever else goes wrong."""
    return any(anomaly.kind in MUTANTS[name].caught_by for anomaly in verdict.anomalies)


def _judge_mutant(name: str, failed: list[Verdict], seeds: int) -> int:
    mutant = MUTANTS[name]
    if not failed:
        print(f"mutant {name} was NOT caught in {seeds} seeds: {mutant.about}")
        return 1
    kinds = {anomaly.kind for anomaly in failed[0].anomalies} & mutant.caught_by
    names = sorted(kind.name for kind in kinds)
    print(f"mutant {name} was caught after {seeds} seeds by: {', '.join(names)}")
    return 0


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev sim", description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--profile", choices=sorted(PROFILES), default="storage")
    parser.add_argument("--seeds", type=_positive, default=100, help="how many (default 100)")
    parser.add_argument("--first-seed", type=int, default=1, metavar="K")
    parser.add_argument("--jobs", type=_positive, default=1, help="worlds at the same time")
    parser.add_argument("--replay", type=int, metavar="SEED", help="one seed, with its whole trace")
    parser.add_argument("--only", metavar="STEPS", help="with --replay: these steps of its plan")
    parser.add_argument("--mutant", choices=sorted(MUTANTS), help="plant a known mistake")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at a failure")
    parser.add_argument("--no-shrink", action="store_true", help="print a failure as it is")
    parser.add_argument("--each", action="store_true", help="a line for every seed")
    parser.add_argument("--counts", action="store_true", help="how often each event fired")
    options = parser.parse_args(arguments)
    if options.only is not None and options.replay is None:
        parser.error("--only needs --replay")
    if options.mutant is not None and MUTANTS[options.mutant].profile != options.profile:
        parser.error(f"{options.mutant} is for --profile {MUTANTS[options.mutant].profile}")
    return options


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number
