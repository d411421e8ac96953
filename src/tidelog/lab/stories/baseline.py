"""The baseline of document 3: `orders` with 1005 records on its leader and 1000 on the followers.

Partition 0 has the replicas [1, 2, 3], broker 1 leads in leader epoch 5, all three are in sync, the
records 0–999 are everywhere, and 1000–1004 were acknowledged by broker 1 alone (acks=1).
"""

from __future__ import annotations

from collections.abc import Mapping

from tidelog.lab.lab import Lab
from tidelog.lab.writers import PartitionWriter

COMMITTED = 1_000
AT_RISK = tuple(f"r{number}" for number in range(1_000, 1_005))


def led_by_1_in_epoch_5(lab: Lab, *, isr_min: str = "2", **configs: str) -> None:
    """A new partition begins at leader epoch 0: five elections bring it to 5, led by 1."""
    lab.cluster()
    lab.create("orders", (1, 2, 3), min_insync_replicas=isr_min, **configs)
    lab.stop(1)  # 2 leads in 1
    lab.until_led(2)
    lab.stop(2)  # 3 leads in 2
    lab.until_led(3)
    lab.start(1, 2)
    _elect_1(lab)  # 1 leads in 3
    lab.stop(1)  # 2 leads in 4
    lab.until_led(2)
    lab.start(1)
    _elect_1(lab)  # 1 leads in 5
    assert lab.desc().leader_epoch == 5, lab.desc()


def _elect_1(lab: Lab) -> None:
    lab.until_isr(1, 2, 3)
    lab.until_elected(1)
    lab.until("all know that 1 leads", lambda: all(lab.desc(via=b).leader == 1 for b in (1, 2, 3)))


def baseline(lab: Lab, *, isr_min: str = "2", **configs: str) -> PartitionWriter:
    """The whole of it; the writer of 1000–1004 is given back. Followers 2 and 3 are held."""
    led_by_1_in_epoch_5(lab, isr_min=isr_min, **configs)
    lab.fill(COMMITTED)
    lab.until_quiet()
    lab.hold(2, 3)
    writer = lab.writer("unlucky", acks=1)
    for payload in AT_RISK:
        assert writer.write(payload).is_ok
    return writer


def orders(
    lab: Lab,
    *,
    count: int = 10,
    replicas: tuple[int, ...] = (1, 2, 3),
    isr_min: str = "2",
    settings: Mapping[str, str] | None = None,
    **configs: str,
) -> None:
    """A smaller stage: leader epoch 0, so many records, on every replica and committed.

    The controller is the node after the last broker; `settings` are those of the cluster.
    """
    brokers = tuple(sorted(replicas))
    lab.cluster(brokers, controllers=(len(brokers) + 1,), settings=settings)
    lab.create("orders", replicas, min_insync_replicas=isr_min, **configs)
    lab.fill(count)
    lab.until_quiet()
