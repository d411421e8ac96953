"""All files of one partition: segments in order, what lies beside them, what awaits removal.

Here is decided in which order things become durable. A segment counts as synced only after the
names in the partition's directory, the directory's own name, the leader epochs and the segment's
indexes' syncs were requested before it.
"""

# Size: one class, whose every method takes part in the order of syncs that is its subject.

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple, Protocol

from tidelog.core.formats import file_names
from tidelog.core.model.ids import TopicId
from tidelog.core.storage import partition_files, producer_snapshot
from tidelog.core.storage.aborted import AbortedIndex
from tidelog.core.storage.disk import Disk, File, SyncListener
from tidelog.core.storage.durability import Durability
from tidelog.core.storage.epochs import LeaderEpochs
from tidelog.core.storage.producers import ProducerStateEntry
from tidelog.core.storage.segment import Segment


class PendingDelete(NamedTuple):
    """Files of a deleted segment that are not removed yet."""

    files: list[File]
    end_offset: int | None
    """They may be touched once the durable log start is here; None: at once."""
    is_renamed: bool
    due_ms: int | None
    """When to remove them, once they were renamed."""


class UnfinishedSwap(Protocol):
    """A cleaned segment on its way into the log (segment_swap.py)."""

    def settle_now(self) -> None: ...


class LogFiles:
    """Invariant: segments are sorted by base offset; the one at the end is the active one."""

    __slots__ = (
        "_pending_deletes",
        "_epochs_doubted",
        "_epochs_file",
        "_names_doubted",
        "_names_unsynced",
        "_owner",
        "_parent_doubted",
        "_parent_unsynced",
        "_rolled",
        "_topic_id_file",
        "_unsynced_epochs_file",
        "aborted",
        "directory",
        "disk",
        "durability",
        "exists",
        "removals",
        "segments",
        "snapshots",
        "swap",
        "topic_id",
    )

    def __init__(
        self,
        *,
        disk: Disk,
        directory: str,
        topic_id: TopicId | None,
        exists: bool,
        synced_end_offset: int,
    ) -> None:
        self.disk = disk
        self.directory = directory
        self.topic_id = topic_id
        self.exists = exists
        """The directory is there."""
        self.segments: list[Segment] = []
        self.snapshots: list[int] = []
        """The offsets of the producer snapshots, sorted."""
        self.aborted = AbortedIndex(disk, directory)
        self.durability = Durability(synced_end_offset)
        self.swap: UnfinishedSwap | None = None
        self.removals = 0
        """How often records were cut off or segments deleted: a round of compaction begins anew."""
        self._owner: SyncListener | None = None
        self._pending_deletes: list[PendingDelete] = []
        self._names_unsynced = self._parent_unsynced = False
        """Whether a sync of the names must be requested before the next sync of bytes."""
        self._names_doubted = self._parent_doubted = False
        """Whether such a sync, requested or not, is not known to be done."""
        self._rolled: list[Segment] = []
        """Segments whose indexes were not known to be durable when they were rolled."""
        self._topic_id_file: File | None = None
        self._epochs_file: File | None = None
        self._unsynced_epochs_file: File | None = None
        self._epochs_doubted = False
        """Whether that file, its sync requested or not, is not known to be durable."""

    # Finding.

    @property
    def active(self) -> Segment | None:
        return self.segments[-1] if self.segments else None

    def position_in_list(self, offset: int) -> int:
        """Which segment holds `offset`, or the first gap before it; 0 if it is before all."""
        return max(0, bisect_right(self.segments, offset, key=_base_offset) - 1)

    def size_bytes(self) -> int:
        return sum(segment.file.size_bytes for segment in self.segments)

    def owned_by(self, owner: SyncListener) -> None:
        """Set the listener of syncs: of the segments that are there, and of those to come."""
        self._owner = owner
        for segment in self.segments:
            segment.file.owner = owner
        if self._epochs_file is not None:
            self._epochs_file.owner = owner  # recovery wrote it, before it had an owner

    # Growing.

    def begin_segment(self, base_offset: int, wall_ms: int | None) -> Segment:
        """A new active segment. The names it needs are synced before its bytes count as synced."""
        if not self.exists:
            self.disk.make_directory(self.directory)
            self.exists = True
            self.doubt_names()
        if len(self.segments) == 1:
            self._keep_first_name()
        segment = Segment.begin(
            disk=self.disk, directory=self.directory, base_offset=base_offset, created_ms=wall_ms
        )
        segment.file.owner = self._owner
        self.aborted.forget(base_offset)
        assert not self.segments or self.segments[-1].base_offset < base_offset
        self.segments.append(segment)
        self._change_names()
        return segment

    def _keep_first_name(self) -> None:
        """Durable before a second name is there.

        1. Segments 0 and 46 have names that are not durable. The power fails and keeps the second.
        2. This log seems to begin at 46. It leads one day, and its followers delete 0 to 46.
        """
        if not self.segments[0].synced_bytes:
            self.disk.sync_directory_now(self.directory)

    def doubt_names(self) -> None:
        """New, or after an unclean stop: no name and no small file is known to be durable."""
        self._change_names(parent=True)
        if self.topic_id is not None:
            self._topic_id_file = partition_files.write_topic_id(
                self.disk, self.directory, self.topic_id
            )

    def names_changed(self) -> None:
        """Somebody else renamed files here."""
        self._change_names()

    def _change_names(self, *, parent: bool = False) -> None:
        self._names_unsynced = self._names_doubted = True
        if parent:
            self._parent_unsynced = self._parent_doubted = True

    def doubt_epochs(self, file: File, *, changed_from: int) -> None:
        """What the file says is right, but perhaps not durable."""
        self._epochs_file = self._unsynced_epochs_file = file
        self._epochs_doubted = True
        self.durability.hold_back(changed_from)

    def write_epochs(self, epochs: LeaderEpochs, *, changed_from: int | None) -> None:
        """Nothing from `changed_from` on counts as durable before this file does."""
        if not self.exists:
            return
        path = f"{self.directory}/{file_names.LEADER_EPOCHS}"
        self._epochs_file = partition_files.replace(self.disk, path, epochs.encode(), self._owner)
        self._unsynced_epochs_file = self._epochs_file
        self._epochs_doubted = True
        self._change_names()
        if changed_from is not None:
            self.durability.hold_back(changed_from)
        elif self.durability.is_held_back:
            self._want_names()  # whoever waits for the file before waits for this one

    def want_epochs(self) -> None:
        """Request a sync of the leader epochs' file, which says where the log starts.

        Syncs are done in order, so it is durable before a checkpoint that is written from now on,
        and before the files of deleted segments lose their names: see `Recovery._drop_stale_head`.
        """
        if self.exists:
            self._want_names()

    def write_snapshot(self, offset: int, producers: Iterable[ProducerStateEntry]) -> File:
        """The state of all producers just before `offset`."""
        path = file_names.offset_file(self.directory, offset, file_names.SNAPSHOT)
        content = producer_snapshot.encode(producers)
        file = partition_files.replace(self.disk, path, content, None)
        if offset not in self.snapshots:
            self.snapshots.append(offset)
            self.snapshots.sort()
        self._change_names()
        return file

    def remove_snapshot(self, offset: int) -> None:
        path = file_names.offset_file(self.directory, offset, file_names.SNAPSHOT)
        self.snapshots.remove(offset)
        self.disk.open(path).remove()

    # Syncing.

    def want_sync(self, end_offset: int) -> None:
        """Ask for everything up to the end of the log."""
        if self._unsynced_epochs_file is not None and self.durability.is_held_back:
            self._want_names()  # bytes that are synced already may wait for these alone
        segment = self.active
        if segment is None or end_offset <= self.durability.wanted_end_offset:
            return
        self._want_names()
        self.durability.mark(segment, end_offset)
        segment.file.sync()

    def want_sync_of(self, segment: Segment, snapshot: File | None, *, end_offset: int) -> None:
        """Ask for a segment that will not grow any more, its indexes first."""
        self._want_names()
        segment.offsets.sync()
        segment.times.sync()
        standing = {id(each) for each in self.segments}
        self._rolled = [each for each in self._rolled if id(each) in standing]
        self._rolled.append(segment)
        aborted = self.aborted.file(segment.base_offset)
        if aborted is not None:
            aborted.sync()
        if snapshot is not None:
            snapshot.sync()
        self.durability.mark(segment, end_offset)
        segment.file.sync()

    def _want_names(self) -> None:
        """Names and small files first: what is requested earlier is durable earlier."""
        if self._topic_id_file is not None:
            self._topic_id_file.sync()
            self._topic_id_file = None
        if self._parent_unsynced:
            self.disk.sync_directory(file_names.parent(self.directory))
            self._parent_unsynced = False
        if self._names_unsynced:
            self.disk.sync_directory(self.directory)
            self._names_unsynced = False
        if self._unsynced_epochs_file is not None:
            self._unsynced_epochs_file.sync()
            self._unsynced_epochs_file = None

    def on_synced(self, file: File, size_bytes: int) -> None:
        if file is self._epochs_file:
            self._epochs_doubted = False
            self.durability.release()
            return
        for segment in reversed(self.segments):
            if segment.file is file:
                self.durability.on_segment_synced(segment, size_bytes)
                return
        deleted = self.durability.awaited_segment(file)
        if deleted is not None:
            self.durability.on_segment_synced(deleted, size_bytes)

    def sync_now(self, end_offset: int, *, with_parent: bool) -> None:
        """Block until all of the log is durable: at a clean stop.

        `with_parent`: also the name of the partition's directory, which is the log directory's
        affair if there is one: one sync for all. Indexes of a segment may be younger than its
        records, which were synced before it was rolled.
        """
        if not with_parent:
            self._parent_doubted = False
        if self._topic_id_file is not None:
            self._topic_id_file.sync_now()
        if self._epochs_doubted and self._epochs_file is not None:
            self._epochs_file.sync_now()
        self._topic_id_file = self._unsynced_epochs_file = None
        self._epochs_doubted = False
        rolled = {id(each) for each in self._rolled}
        for segment in self.segments:
            is_unsynced = segment.synced_bytes < segment.file.size_bytes
            if segment is not self.segments[-1] and (is_unsynced or id(segment) in rolled):
                segment.offsets.sync_now()
                segment.times.sync_now()
            if is_unsynced:
                self._sync_aborted_now(segment)
                segment.file.sync_now()
                segment.synced_bytes = segment.file.size_bytes
        self._rolled.clear()
        self._sync_names_now()
        self.durability.on_all_synced(end_offset)

    def _sync_aborted_now(self, segment: Segment) -> None:
        aborted = self.aborted.file(segment.base_offset)
        if aborted is not None:
            aborted.sync_now()

    def _sync_names_now(self) -> None:
        if self._names_doubted:
            self.disk.sync_directory_now(self.directory)
        if self._parent_doubted:
            self.disk.sync_directory_now(file_names.parent(self.directory))
        self._names_doubted = self._parent_doubted = False
        self._names_unsynced = self._parent_unsynced = False

    def is_closed(self, end_offset: int) -> bool:
        """Whether a clean stop finds nothing to do: nothing happened since the one before."""
        if self._names_doubted or self.durability.recovery_point != end_offset:
            return False
        return not self.segments or end_offset in self.snapshots

    # Shrinking.

    def end_of_cut(self, end_offset: int) -> int:
        """Where the log would end if every batch went that reaches beyond `end_offset`."""
        segment = self.segments[self.position_in_list(end_offset)]
        cut_offset = segment.end_of_cut_at(end_offset)
        return end_offset if cut_offset is None else min(end_offset, cut_offset)

    def cut_to(self, end_offset: int) -> None:
        """Drop everything from `end_offset` on, which is where a batch begins or a gap is."""
        self._settle_swap()
        self.removals += 1
        kept = bisect_left(self.segments, end_offset, key=_base_offset)
        self._mark_tail_for_delete(self.segments[kept:])
        del self.segments[kept:]
        self.durability.truncate(end_offset)
        if not self.segments:
            return
        segment = self.segments[-1]
        position = segment.position_past_damage(end_offset)
        if position == segment.file.size_bytes:
            segment.become_inactive()
            return
        self.aborted.truncate(segment.base_offset, end_offset)
        segment.cut(position)
        self._sync_names_now()  # that it is synced must not be known before its name is
        segment.offsets.sync_now()  # nor before its indexes: the old ones would be trusted
        segment.times.sync_now()
        self._sync_aborted_now(segment)
        segment.file.sync_now()
        self.durability.mark(segment, end_offset)
        self.durability.on_segment_synced(segment, position)

    def drop_first(self, count: int, *, end_offset: int) -> list[Segment]:
        """Delete the oldest segments, once the durable log start has passed them."""
        self._settle_swap()
        self.removals += 1
        gone = self.segments[:count]
        del self.segments[:count]
        if len(self.segments) > 1:
            self._keep_first_name()
        self._mark_for_delete(gone, end_offset=end_offset)
        return gone

    def drop_all(self) -> None:
        """Segments that were waiting for their deletion go, too: they are before no log start."""
        self._settle_swap()
        self.removals += 1
        gone, self.segments = self.segments, []
        self._pending_deletes = [
            pending._replace(end_offset=None) for pending in self._pending_deletes
        ]
        self._mark_tail_for_delete(gone)
        for offset in list(self.snapshots):
            self.remove_snapshot(offset)

    def _settle_swap(self) -> None:
        if self.swap is not None:
            self.swap.settle_now()

    def replace_segments(self, old: list[Segment], new: Segment, aborted_file: File | None) -> None:
        """A cleaned segment, durable under its `.swap` name, stands for those it was made from.

        The producers' snapshot at its base offset stays; those at the other ones go.
        """
        at = self.segments.index(old[0])
        assert self.segments[at : at + len(old)] == old and old[-1] is not self.segments[-1]
        self.segments[at : at + len(old)] = [new]
        has_snapshot = new.base_offset in self.snapshots
        if has_snapshot:
            self.snapshots.remove(new.base_offset)
        self._mark_for_delete(old, end_offset=None)
        if has_snapshot:
            self.snapshots.insert(bisect_left(self.snapshots, new.base_offset), new.base_offset)
        if aborted_file is not None:
            self.aborted.adopt(new.base_offset, aborted_file)

    def own(self, segment: Segment) -> None:
        """Its syncs are ours to hear of."""
        segment.file.owner = self._owner

    def _mark_tail_for_delete(self, segments: list[Segment]) -> None:
        """The first of them goes last, so that a power loss brings no headless rest back."""
        if len(segments) > 1:
            self._mark_for_delete(segments[1:], end_offset=None)
            self.disk.sync_directory_now(self.directory)
        self._mark_for_delete(segments[:1], end_offset=None)

    def _mark_for_delete(self, segments: list[Segment], *, end_offset: int | None) -> None:
        for segment in segments:
            files = [segment.file]
            for index in (segment.offsets, segment.times):
                file = index.file_or_none()
                if file is not None:
                    files.append(file)
            aborted = self.aborted.forget(segment.base_offset)
            if aborted is not None:
                files.append(aborted)
            if segment.base_offset in self.snapshots:
                self.snapshots.remove(segment.base_offset)
                path = file_names.offset_file(
                    self.directory, segment.base_offset, file_names.SNAPSHOT
                )
                files.append(self.disk.open(path))
            self._pending_deletes.append(PendingDelete(files, end_offset, False, None))
        if end_offset is None:
            self.rename_pending_deletes(durable_log_start_offset=0)

    def rename_pending_deletes(self, *, durable_log_start_offset: int) -> None:
        """First step of a deletion: the files lose their names as parts of the log."""
        for at, pending in enumerate(self._pending_deletes):
            end_offset = 0 if pending.end_offset is None else pending.end_offset
            if not pending.is_renamed and end_offset <= durable_log_start_offset:
                for file in pending.files:
                    file.rename(self._deleted_name(file.path))
                self._change_names()
                self._pending_deletes[at] = pending._replace(is_renamed=True)

    def remove_pending_deletes(self, *, wall_ms: int, delay_ms: int) -> int:
        """Second step: the files that are due go; how many."""
        kept, removed = [], 0
        for pending in self._pending_deletes:
            if pending.is_renamed and pending.due_ms is None:
                pending = pending._replace(due_ms=wall_ms + delay_ms)
            if pending.due_ms is None or pending.due_ms > wall_ms:
                kept.append(pending)
                continue
            for file in pending.files:
                file.remove()
                removed += 1
        self._pending_deletes = kept
        return removed

    def _deleted_name(self, path: str) -> str:
        """A segment of the same offset may be waiting for its removal already."""
        name, number = path + file_names.DELETED, 1
        while self.disk.exists(name):
            name, number = f"{path}.{number}{file_names.DELETED}", number + 1
        return name

    def moved_to(self, directory: str) -> None:
        """The whole directory has another name: nothing is appended there any more."""
        self.disk.rename_directory(self.directory, directory)
        self.disk.sync_directory(file_names.parent(directory))
        self.directory = directory
        self.aborted.moved_to(directory)

    def check(self) -> None:
        for before, after in pairwise(self.segments):
            assert before.base_offset < after.base_offset, self.directory
        assert self.snapshots == sorted(set(self.snapshots)), self.directory
        for segment in self.segments:
            segment.check()


def _base_offset(segment: Segment) -> int:
    return segment.base_offset
