"""The mission, step by step: orders flow, brokers and Spark's driver die, all is accounted for.

stage      brokers in two racks, or an existing cluster
stream     orders, acknowledged one by one and written down in a journal
pipeline   Spark: validated, deduplicated, dead letters; revenue into a topic, in transactions
failures   kill -9 of a leader, a rack, the transaction coordinator, the driver
audit      journal against topic against what the pipeline published
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from tidelog.client.consumer.errors import ConsumerError
from tidelog.client.shells.blocking_clients import RequestFailed, TimedOut
from tidelog.cluster.errors import ClusterError
from tidelog.demo.accounts import Account, PublishedOrders, StreamedRecord, account
from tidelog.demo.errors import WITHIN_S, DemoFailed, Say, wait_until
from tidelog.demo.existing_kafka import ExistingKafka
from tidelog.demo.flow import Flow
from tidelog.demo.own_cluster import OwnCluster
from tidelog.demo.pipeline_file import (
    CHECKPOINT,
    REVENUE,
    SINKS,
    VALID,
    Targets,
    pipeline_text,
)
from tidelog.demo.spark_processes import DriverProcess, PipelineProgress, run_audit
from tidelog.demo.stream import OrderStream
from tidelog.demo.topics import end_offsets


class DemoStage(Protocol):
    """The brokers of the mission."""

    targets: Targets

    @property
    def servers(self) -> str: ...

    def inject_failures(self, flow: Flow) -> None: ...

    def audit_arguments(self) -> list[str]: ...

    def published(self) -> PublishedOrders: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """The options of a run."""

    directory: Path
    """For all files."""
    rate: int
    pause_s: float
    """Between one failure and the next."""
    bootstrap: str | None = None


def run(options: DemoOptions, say: Say) -> Account:
    """Run the whole mission; DemoFailed if it could not be completed."""
    try:
        with ExitStack() as stack:
            stage: OwnCluster | ExistingKafka
            if options.bootstrap is None:
                stage = OwnCluster(options.directory, say)
            else:
                stage = ExistingKafka(options.bootstrap, say)
            stage.start()
            stack.callback(stage.close)
            return _Mission(options, stage, stack, say).run()
    except (ClusterError, RequestFailed, TimedOut, ConsumerError) as error:
        raise DemoFailed(str(error)) from error


class _Mission:
    def __init__(self, options: DemoOptions, stage: DemoStage, stack: ExitStack, say: Say) -> None:
        self._options = options
        self._stage = stage
        self._stack = stack
        self._say = say
        self._file = options.directory / "orders.toml"
        self._journal = options.directory / "acks.jsonl"
        checkpoint = options.directory / CHECKPOINT
        self._progress = {sink: PipelineProgress(checkpoint, sink) for sink in SINKS}
        self._stream = stack.enter_context(
            OrderStream(stage.servers, stage.targets.orders, self._journal, rate=options.rate)
        )
        self._scratch = Path(
            stack.enter_context(
                TemporaryDirectory(prefix="tidelog-spark-", ignore_cleanup_errors=True)
            )
        )
        self._driver: DriverProcess | None = None

    def run(self) -> Account:
        self._file.write_text(
            pipeline_text(self._stage.targets, bootstrap=self._stage.servers), encoding="utf-8"
        )
        self._begin()
        revenue = self._progress[REVENUE]
        self._stage.inject_failures(Flow(self._stream, revenue, self._pause, self._wait))
        self._pause()
        self._kill_driver()
        self._pause()
        self._resume()
        self._pause()
        sent = self._drain()
        return self._audit(sent)

    # The steps.

    def _begin(self) -> None:
        self._stream.start()
        wait_until(lambda: self._stream.acknowledged > 0, "the first acknowledgement")
        self._say(
            f"the first order is acknowledged; {self._options.rate} a second follow, "
            "some sent twice, some broken on purpose"
        )
        self._say(
            "starting the pipeline on Spark: validate, deduplicate, publish revenue by minute"
        )
        self._driver = self._start_driver()
        self._wait(lambda: self._processed > 0, "the first batch of the pipeline")
        self._say(f"the pipeline's first batch is published: {self._progress_text()}")
        self._wait(lambda: self._has_started, "all sinks of the pipeline")

    def _kill_driver(self) -> None:
        """In the middle of a batch: one that is planned and not committed."""
        assert self._driver is not None
        progress = self._progress[REVENUE]
        self._wait(lambda: progress.under_way is not None, "a batch under way")
        batch = progress.under_way
        self._driver.kill()
        self._driver = None
        self._say(
            f"[bold]kill -9[/bold] of the Spark driver and its JVM, in batch {batch} of the revenue"
        )

    def _resume(self) -> None:
        """Until the batch in which the driver died, or the next, is done."""
        progress = self._progress[REVENUE]
        before = progress.done
        self._driver = self._start_driver()
        self._say("the same pipeline is started again, on its checkpoint")
        self._wait(lambda: progress.done != before, "a batch after the restart")
        self._say(f"it continued from its checkpoint: {self._progress_text()}")
        self._wait(lambda: self._has_started, "all sinks of the pipeline")

    def _drain(self) -> list[StreamedRecord]:
        sent = self._stream.finish()
        self._say(f"the order stream stops: {len(sent):,} records were sent, each has an outcome")
        ends = end_offsets(self._stage.servers, self._stage.targets.orders)
        everyone = self._progress.values()
        self._wait(lambda: all(each.has_reached(ends) for each in everyone), "the end of the topic")
        assert self._driver is not None
        self._driver.stop()
        self._say("the pipeline has processed everything, and stopped cleanly")
        return sent

    def _audit(self, sent: list[StreamedRecord]) -> Account:
        self._say("auditing on Spark: what was promised, what the brokers hold, what was published")
        arguments = ["--acks", str(self._journal), "--topic", self._stage.targets.orders]
        arguments += ["--bootstrap", self._stage.servers, "--strict", "--may-filter"]
        found = run_audit([*arguments, *self._stage.audit_arguments()])
        batches = self._progress[REVENUE].batch_ends()
        result = account(sent, found, self._stage.published(), batches)
        self._say("audited")
        return result

    # Inside.

    def _start_driver(self) -> DriverProcess:
        log = self._options.directory / "pipeline.log"
        return self._stack.enter_context(closing(DriverProcess(self._file, log, self._scratch)))

    def _wait(self, reached: Callable[[], bool], what: str, *, within_s: float = WITHIN_S) -> None:
        """DemoFailed at once if the driver dies by itself."""

        def is_reached() -> bool:
            if self._driver is not None:
                self._driver.check()
            return reached()

        wait_until(is_reached, what, within_s=within_s)

    @property
    def _has_started(self) -> bool:
        return self._driver is not None and self._driver.is_started

    @property
    def _processed(self) -> int:
        """Records that the pipeline is done with."""
        return self._progress[VALID].records

    def _progress_text(self) -> str:
        return f"{self._stream.acknowledged:,} acknowledged, {self._processed:,} processed"

    def _pause(self) -> None:
        """Let it run for a while, and print the progress."""
        until_s = time.monotonic() + self._options.pause_s
        within_s = self._options.pause_s + WITHIN_S
        self._wait(lambda: time.monotonic() > until_s, "time", within_s=within_s)
        self._say(f"[dim]{self._progress_text()}[/dim]")
