"""A load that lasts through a campaign: one producer, three partitions, and what it was told.

How much it writes is granted piece by piece, so a campaign is as long as it says on any machine.
"""

from __future__ import annotations

import threading
from collections import deque

from tests.process.producers import Call, Failed, TimelineProducer
from tests.process.verdicts import writes
from tests.process.waiting import wait_until
from tidelog.judge.history import Operation

PARTITIONS = 3
UNANSWERED_MAX = 200
PAUSE_S = 0.002


class Load(threading.Thread):
    """Writes as many records as it was granted, and has at most 200 without an answer."""

    def __init__(
        self, producer: TimelineProducer, *, name: str, topic: str, partitions: int = PARTITIONS
    ) -> None:
        super().__init__(daemon=True)
        self.topic = topic
        self.partitions = partitions
        self.calls: dict[int, list[Call]] = {partition: [] for partition in range(partitions)}
        self.answered = 0
        self._label = name
        self._producer = producer
        self._granted = self._before = 0
        self._sent = 0
        self._unanswered: deque[Call] = deque()
        self._is_over = threading.Event()
        self._pause = threading.Event()
        self._trouble: BaseException | None = None

    def grant(self, count: int) -> None:
        """So many more."""
        self._before = self._granted
        self._granted += count

    def wait_for(self, share: float) -> None:
        """Until so much of what was granted last is answered."""
        wanted = self._before + share * (self._granted - self._before)

        def is_there() -> bool:
            assert self._trouble is None, self._trouble
            return self.answered >= wanted

        wait_until(is_there, f"{self._label} to get on")

    def finish(self) -> None:
        """Everything that was granted has an outcome then, and none is an error."""
        self.wait_for(1)
        self.give_up()
        failed = [call for calls in self.calls.values() for call in calls]
        assert not [call.outcome for call in failed if isinstance(call.outcome, Failed)]

    def give_up(self) -> None:
        """Nothing is sent any more, whatever was granted."""
        self._is_over.set()
        self.join()

    def history(self, partition: int) -> list[Operation]:
        """What the judge needs to know of one partition."""
        name = f"{self.topic}-{partition}"
        return writes(self.calls[partition], partition=name, writer=self._label)

    def run(self) -> None:
        try:
            while not self._is_over.is_set():
                self._collect()
                if self._sent < self._granted and len(self._unanswered) < UNANSWERED_MAX:
                    self._send()
                else:
                    self._pause.wait(PAUSE_S)
        except BaseException as error:
            self._trouble = error
            raise

    def _send(self) -> None:
        partition = self._sent % self.partitions
        value = f"{self._label}-{self._sent}"
        call = self._producer.send(self.topic, value, partition=partition)
        self.calls[partition].append(call)
        self._unanswered.append(call)
        self._sent += 1

    def _collect(self) -> None:
        waiting: deque[Call] = deque()
        for call in self._unanswered:
            if call.outcome is None:
                waiting.append(call)
            else:
                self.answered += 1
        self._unanswered = waiting
