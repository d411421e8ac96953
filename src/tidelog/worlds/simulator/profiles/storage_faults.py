"""What can happen to a single broker and its disk, and the operator who starts it again."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tidelog.core.wire.record_batch import CRC_COVERS_FROM, HEADER_BYTES, MAGIC_AT, batches
from tidelog.worlds.simulator.network import Conditions
from tidelog.worlds.simulator.profiles.storage_context import (
    BROKER,
    LossRecorder,
    StorageContext,
    TrackedPartition,
)
from tidelog.worlds.simulator.schedule import ScheduledFault

RESTART_MS = (5, 600)
PATIENCE_MS = 30_000
CHECKPOINT_LOSS_CHANCE = 0.6
"""At a power loss: that one of the checkpoints of offsets is damaged or gone."""
AMID_DELETION_CHANCE = 0.5
AMID_DELETION_MS = 1_500
"""How long a power loss waits for the deletion of a segment."""
_HEADER_BYTES_JUDGED = (*range(8, 12), *range(MAGIC_AT, HEADER_BYTES))
"""All but base offset and leader epoch, which no checksum covers: a reader who comes from before
cannot tell that they are wrong, in Kafka's format, so no expectation about him could be exact."""


class StorageFaults:
    """Each method injects one kind of fault."""

    def __init__(
        self, context: StorageContext, losses: LossRecorder, *, client_names: list[str]
    ) -> None:
        self.context = context
        self.losses = losses
        self.random: Random = context.world.random_for("faults")
        self._decay: Random = context.world.random_for("decay")
        self._client_names = client_names

    def menu(self, *, with_damage: bool, with_header_damage: bool) -> list[ScheduledFault]:
        menu = [
            ScheduledFault(name="kill", act=self.kill, weight=6),
            ScheduledFault(name="power loss", act=self.lose_power, weight=6),
            ScheduledFault(name="clean restart", act=self.restart, weight=2),
            ScheduledFault(name="pause", act=self.pause, weight=2),
            ScheduledFault(name="disk full", act=self.fill_disk, weight=2),
            ScheduledFault(name="disk error", act=self.fail_operation, weight=2),
            ScheduledFault(name="failed sync", act=self.fail_sync, weight=2),
            ScheduledFault(name="one-way cut", act=self.cut, weight=2),
            ScheduledFault(name="bad network", act=self.worsen_network, weight=1),
            ScheduledFault(name="clock jump", act=self.jump_clock, weight=1),
        ]
        if with_damage:
            menu.append(ScheduledFault(name="flipped bit", act=self.flip_bit, weight=3))
        if with_header_damage:
            menu.append(
                ScheduledFault(name="flipped header bit", act=self.flip_header_bit, weight=3)
            )
        return menu

    # The process.

    def kill(self) -> None:
        self.context.process.kill()

    def lose_power(self) -> None:
        """Now, or at the moment that is worst for a deletion."""
        if self._decay.random() < AMID_DELETION_CHANCE:
            self._lose_power_amid_deletion(AMID_DELETION_MS)
        else:
            self._lose_power()

    def _lose_power_amid_deletion(self, patience_ms: int) -> None:
        """While names of deleted segments are gone, but not durably so: any of them come back."""
        if self.context.is_over:
            return
        changes = self.context.process.store.unsynced_changes()
        is_amid = any(change.new is not None and ".log." in change.new for change in changes)
        if is_amid or not patience_ms or not self.context.process.is_up:
            self._lose_power()
        else:
            self.context.world.after(1_000, lambda: self._lose_power_amid_deletion(patience_ms - 1))

    def _lose_power(self) -> None:
        """Also when the process is down already: what it left unsynced goes now."""
        if not self.context.process.is_up:
            self.losses.record_losses("power lost while down")
        self.context.process.lose_power()
        if self._decay.random() < CHECKPOINT_LOSS_CHANCE:
            self._lose_checkpoint()

    def _lose_checkpoint(self) -> None:
        """It only saves work: without it, and whatever names come back, no record may go.

        No excuse is written down for it.
        """
        store = self.context.process.store
        paths = [path for path, _ in store.files() if path.endswith("-offset-checkpoint")]
        if not paths:
            return
        path = self._decay.choice(paths)
        if self._decay.random() < 0.5:
            store.lose_name(path)
        else:
            store.lose_content(path, bytes_left=self._decay.randint(1, 40))

    def restart(self) -> None:
        if self.context.process.is_up:
            self.context.process.stop()

    def pause(self) -> None:
        self.context.process.pause()
        self.context.later(self.random, 5, 3_000, self.context.process.wake)

    # The disk.

    def fill_disk(self) -> None:
        self.context.process.store.fill_up(bytes_left=self.random.choice((0, 50, 400, 3_000)))
        self.context.later(self.random, 100, 3_000, self.context.process.store.heal)

    def fail_operation(self) -> None:
        self.context.process.store.fail_operation(after=self.random.randint(0, 60))

    def fail_sync(self) -> None:
        self.context.process.store.fail_next_sync()

    def flip_bit(self) -> None:
        """Somewhere under the checksum of a batch that the broker has called safe."""
        self._damage(lambda size_bytes: self.random.randrange(CRC_COVERS_FROM, size_bytes))

    def flip_header_bit(self) -> None:
        """In the header: what walks go by, and what the checksum covers or is."""
        self._damage(lambda _: self.random.choice(_HEADER_BYTES_JUDGED))

    def _damage(self, choose_byte: Callable[[int], int]) -> None:
        topic_partition = self.context.any_partition(self.random)
        is_settled = self.context.process.is_up and self.context.process.store.dropped_pages == 0
        if topic_partition is None or topic_partition.key in self.context.damages or not is_settled:
            return
        found = self._old_batches(topic_partition)
        if not found:
            return
        path, position, size_bytes, start_offset, end_offset = self.random.choice(found)
        at = position + choose_byte(size_bytes)
        self.context.process.store.flip_bit(path, position=at, bit=self.random.randrange(8))
        self.losses.damage(topic_partition, start_offset, end_offset)

    def _old_batches(
        self, topic_partition: TrackedPartition
    ) -> list[tuple[str, int, int, int, int]]:
        directory = f"/{topic_partition.topic.name.name}-{topic_partition.index}/"
        found = []
        for path, node in self.context.process.store.files():
            if directory in f"/{path}" and path.endswith(".log"):
                for position, header in batches(bytes(node.data[: node.clean_bytes])):
                    found.append(
                        (path, position, header.size_bytes, header.base_offset, header.end_offset)
                    )
        return found[:-1]

    # Network and clock.

    def cut(self) -> None:
        pair = [self.random.choice(self._client_names), BROKER]
        self.random.shuffle(pair)
        source, target = pair
        self.context.network.cut(source, target)
        self.context.later(
            self.random, 20, 4_000, lambda: self.context.network.heal(source, target)
        )

    def worsen_network(self) -> None:
        self.context.network.conditions = Conditions(
            chop_chance=0.5, stall_chance=0.03, break_chance=0.01
        )
        self.context.later(self.random, 100, 3_000, self.better_network)

    def better_network(self) -> None:
        self.context.network.conditions = Conditions()

    def jump_clock(self) -> None:
        self.context.process.clock_offset_ms += self.random.choice((-3_000, -50, 50, 4_000))


class Operator:
    """Starts the broker again whenever it is down, after repairing the disk if need be."""

    def __init__(self, context: StorageContext) -> None:
        self.context = context
        self.random = context.world.random_for("operator")
        self._is_coming = False

    def watch(self) -> None:
        process = self.context.process
        if not process.is_up and not self._is_coming:
            self._is_coming = True
            self.context.later(self.random, *RESTART_MS, self._start)
        if not self.context.is_over:
            self.context.later(self.random, 20, 100, self.watch)

    def _start(self) -> None:
        self._is_coming = False
        process = self.context.process
        if process.is_up:
            return
        if process.halt_reason is not None:
            process.store.heal()
        process.start()
