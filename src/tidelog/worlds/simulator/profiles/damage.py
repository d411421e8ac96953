"""Decay of a medium under one replica: a bit of a batch flips, and is put right again later.

Behind a batch's header the checksum condemns them, and whoever copies or reads them must notice
(X-33). The replica itself does not: until the file is repaired, it serves what it has. In the
header, which is what walks go by, the replica must notice, and hide no other batch. A recovery that
reads so far back cuts the log there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from tidelog.core.storage.log import Log
from tidelog.core.wire.record_batch import HEADER_BYTES, MAGIC_AT, BatchHeader, batches
from tidelog.judge.excuses import BatchDamaged
from tidelog.worlds.simulator.disk import SimFile
from tidelog.worlds.simulator.durable_store import FileNode
from tidelog.worlds.simulator.profiles.context import RunContext

OF_LEADER_CHANCE = 0.6
HEADER_BYTES_JUDGED = (*range(8, 12), *range(MAGIC_AT, HEADER_BYTES))
"""All but base offset and leader epoch, which no checksum covers: a reader who comes from before
cannot tell that they are wrong, in Kafka's format, so no expectation about him could be exact."""
NEWEST = 6
"""Half of the time one of the newest batches decays: a follower may be about to fetch it."""


@dataclass(slots=True)
class Damage:
    """One spoilt batch, as it was and as it is."""

    excuse: BatchDamaged
    file: FileNode
    position: int
    right: bytes
    wrong: bytes


class Damages:
    """All of a run. Invariant: at most one is not repaired yet for each replica."""

    def __init__(self, context: RunContext, random: Random) -> None:
        self._context = context
        self._random = random
        self._open: dict[tuple[str, int], Damage] = {}
        self._repaired: list[BatchDamaged] = []

    def flip(self, partition: str, *, in_header: bool = False) -> int | None:
        """Flip a bit on one replica that has anything; None: there is none.

        In a header only where the batch is durable, and not in the newest one: a start cannot tell
        the newest from one that was torn.
        """
        topic, _, index = partition.rpartition("-")
        found = {}
        for node_id, node in self._context.cluster.running.items():
            hosted = node.partition(topic, int(index))
            if hosted is not None and (partition, node_id) not in self._open:
                standing = _batches(hosted.log, is_durable=in_header)
                standing = standing[:-1] if in_header else standing
                if standing:
                    found[node_id] = standing
        if not found:
            return None
        node_id = self._random.choice(sorted(found))
        leader = self._context.leader_of(partition)
        if leader in found and self._random.random() < OF_LEADER_CHANCE:
            node_id = leader
        standing = found[node_id]
        some = standing[-NEWEST:] if self._random.random() < 0.5 else standing
        file, position, header = self._random.choice(some)
        if in_header:
            at = self._random.choice(HEADER_BYTES_JUDGED)
        else:
            at = self._random.randrange(HEADER_BYTES, header.size_bytes)
        self._flip(partition, node_id, file, position, header, at)
        return node_id

    def repair(self, partition: str, node_id: int) -> None:
        """Wherever the batch still stands as it was damaged."""
        damage = self._open.pop((partition, node_id), None)
        if damage is not None:
            damage.file.replace(damage.position, damage.wrong, damage.right)
            damage.file.damages.remove((damage.position, damage.wrong, damage.right))
            now_us = self._context.world.now_us
            self._repaired.append(replace(damage.excuse, until_us=now_us))
            del self._context.observation.damaged[(partition, node_id)]

    def repair_all(self) -> None:
        for partition, node_id in list(self._open):
            self.repair(partition, node_id)

    def excuses(self) -> list[BatchDamaged]:
        return [*self._repaired, *(damage.excuse for damage in self._open.values())]

    def _flip(
        self,
        partition: str,
        node_id: int,
        file: FileNode,
        position: int,
        header: BatchHeader,
        at: int,
    ) -> None:
        end = position + header.size_bytes
        right = bytes(file.data[position:end])
        file.flip(position + at, 1 << self._random.randrange(8))
        wrong = bytes(file.data[position:end])
        file.damages.append((position, wrong, right))
        self._open[(partition, node_id)] = Damage(
            excuse=BatchDamaged(
                at_us=self._context.world.now_us,
                partition=partition,
                start_offset=header.base_offset,
                end_offset=header.end_offset,
            ),
            file=file,
            position=position,
            right=right,
            wrong=wrong,
        )
        self._context.observation.damaged[(partition, node_id)] = header.base_offset


def _batches(log: Log, *, is_durable: bool) -> list[tuple[FileNode, int, BatchHeader]]:
    """Every batch in the log, or every durable one, with its file and position."""
    found = []
    for segment in log.files.segments if log.failed is None else ():
        assert isinstance(segment.file, SimFile)
        file = segment.file.node
        data = file.sound_data()[: file.clean_bytes if is_durable else None]
        found += [(file, position, header) for position, header in batches(bytes(data))]
    return found
