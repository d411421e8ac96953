"""Reading goes on where the log was cut, and the reader is told so."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tidelog.cli.consume.plan import Reading
from tidelog.cli.consume.run import poll
from tidelog.client.consumer.errors import LogTruncationError, OutOfRange
from tidelog.client.shells.blocking_clients import Consumer
from tidelog.core.model.ids import TopicPartition

P0 = TopicPartition("orders", 0)


class TroubledConsumer:
    """Raises what it was given once, and notes where it is sent."""

    def __init__(self, trouble: Exception) -> None:
        self._troubles = [trouble]
        self.sought: list[int | str] = []

    def poll(self, timeout_s: float) -> list[Any]:
        if self._troubles:
            raise self._troubles.pop()
        return []

    def end_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 1_003)

    def beginning_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 40)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.sought.append(offset)

    def seek_to_beginning(self, partition: TopicPartition) -> None:
        self.sought.append("beginning")


def cut(divergence: int | None) -> LogTruncationError:
    return LogTruncationError(P0, offset=1_005, divergence=divergence, divergence_epoch=4)


@pytest.mark.parametrize(
    ("trouble", "sought", "told"),
    [
        (cut(1_000), 1_000, "orders-0: position 1005, but the log differs from offset 1000 on"),
        (cut(None), "beginning", "differs at an unknown offset"),
        (OutOfRange(P0, 7), 40, "OFFSET_OUT_OF_RANGE: orders-0: offset 7 is out of range; reading"),
    ],
)
def test_trouble_is_told_and_read_past(
    trouble: Exception, sought: int | str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    consumer = TroubledConsumer(trouble)
    reading = Reading({P0: 1_005})

    assert poll(cast(Consumer, consumer), reading) == ([], True)
    assert consumer.sought == [sought]
    assert told in capsys.readouterr().err
    assert reading.end_of(P0) == (1_003 if isinstance(trouble, LogTruncationError) else 1_005)
    assert poll(cast(Consumer, consumer), reading) == ([], False)
