"""Readers of commits see no aborted record, all readers see no marker, and every offset counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.spark.columns.any_records import EXAMPLES, see
from tidelog.core.wire.control_records import LeaderChange, end_txn_marker, leader_change
from tidelog.core.wire.records import NewRecord, build
from tidelog.spark.columns.decode import Aborted, ColumnDecoder


@dataclass
class Log:
    """A partition as transactional producers and their coordinator write it."""

    batches: list[bytearray] = field(default_factory=list)
    end_offset: int = 0
    committed: list[bytes] = field(default_factory=list)
    aborted: list[tuple[Aborted, int]] = field(default_factory=list)
    """Each with the offset of its marker."""
    open: dict[int, tuple[int, list[bytes]]] = field(default_factory=dict)

    def write(self, producer_id: int, *values: bytes, transactional: bool = True) -> None:
        records = [NewRecord(value=value) for value in values]
        who = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0}
        self._append(records, transactional=transactional, **who)
        if not transactional:
            self.committed += values
            return
        self.open.setdefault(producer_id, (self.end_offset - len(values), []))[1].extend(values)

    def end(self, producer_id: int, *, commit: bool) -> None:
        first_offset, values = self.open.pop(producer_id, (self.end_offset, []))
        marker = end_txn_marker(commit=commit, coordinator_epoch=1)
        who = {"producer_id": producer_id, "producer_epoch": 0}
        self._append([marker], transactional=True, control=True, **who)
        if commit:
            self.committed += values
        elif values:
            transaction = Aborted(producer_id=producer_id, first_offset=first_offset)
            self.aborted.append((transaction, self.end_offset - 1))

    def answer(self, first: int, after: int) -> tuple[bytes, list[Aborted]]:
        """Batches [first, after) and the aborted transactions that a broker names with them."""
        sizes = self._record_counts
        fetch_offset, end_offset = sum(sizes[:first]), sum(sizes[:after])
        touching = [
            transaction
            for transaction, marker_offset in self.aborted
            if transaction.first_offset < end_offset and marker_offset >= fetch_offset
        ]
        return b"".join(self.batches[first:after]), touching

    def _append(self, records: list[NewRecord], **how: int) -> None:
        self.batches.append(
            build(records, base_offset=self.end_offset, **how)  # type: ignore[arg-type]
        )
        self.end_offset += len(records)

    @property
    def _record_counts(self) -> list[int]:
        return [int.from_bytes(batch[57:61], "big") for batch in self.batches]


def values_of(log: Log, borders: list[int], *, is_read_committed: bool = True) -> list[bytes]:
    """What a reader sees that fetches in answers between these borders."""
    decoder = ColumnDecoder(
        start_offset=0,
        end_offset=10**6,
        is_read_committed=is_read_committed,
        with_headers=False,
    )
    values = []
    for first, after in pairwise(borders):
        records, aborted = log.answer(first, after)
        for decoded in decoder.decode(memoryview(records), aborted):
            values += decoded.columns.column("value").to_pylist()
    assert decoder.next_offset == log.end_offset
    return values


def two_interleaved() -> Log:
    log = Log()
    log.write(1, b"a1", b"a2")
    log.write(2, b"b1")
    log.write(3, b"plain", transactional=False)
    log.write(1, b"a3")
    log.end(1, commit=False)
    log.write(2, b"b2")
    log.write(1, b"a4")
    log.end(2, commit=True)
    log.end(1, commit=True)
    return log


def test_an_abort_marker_ends_what_was_aborted() -> None:
    log = two_interleaved()

    assert values_of(log, [0, 9]) == [b"b1", b"plain", b"b2", b"a4"]


def test_every_way_to_split_the_answers_gives_the_same() -> None:
    log = two_interleaved()

    for middle in range(1, 9):
        assert values_of(log, [0, middle, 9]) == [b"b1", b"plain", b"b2", b"a4"]
    assert values_of(log, list(range(10))) == [b"b1", b"plain", b"b2", b"a4"]


def test_readers_of_everything_see_aborted_records_but_no_markers() -> None:
    everything = [b"a1", b"a2", b"b1", b"plain", b"a3", b"b2", b"a4"]

    assert values_of(two_interleaved(), [0, 9], is_read_committed=False) == everything


def test_what_is_skipped_is_counted_and_its_offsets_are_seen() -> None:
    log = Log()
    log.write(1, b"x", b"y", b"z")
    log.end(1, commit=False)
    records, aborted = log.answer(0, 2)
    seen = see(records, aborted=aborted)

    assert seen.records == []
    assert (seen.skipped_aborted, seen.skipped_control) == (3, 1)
    assert seen.next_offset == 4


def test_the_same_list_may_come_with_each_part_of_an_answer() -> None:
    """A transaction whose marker was read is over, even if it is named again."""
    log = Log()
    log.write(1, b"no")
    log.end(1, commit=False)
    log.write(1, b"yes")
    log.end(1, commit=True)
    _, aborted = log.answer(0, 4)
    parts = [b"".join(log.batches[:2]), b"".join(log.batches[2:])]

    assert [record.value for record in see(*parts, aborted=aborted).records] == [b"yes"]


def test_a_batch_of_the_same_producer_outside_of_transactions_is_not_void() -> None:
    log = Log()
    log.write(1, b"no")
    log.write(1, b"yes", transactional=False)
    log.end(1, commit=False)

    assert values_of(log, [0, 3]) == [b"yes"]


def test_a_transaction_counts_from_its_first_offset_on() -> None:
    log = Log()
    log.write(1, b"yes")
    log.end(1, commit=True)
    log.write(1, b"no")
    log.end(1, commit=False)

    assert values_of(log, [0, 4]) == [b"yes"]


def test_control_records_of_other_kinds_are_skipped_as_well() -> None:
    change = leader_change(LeaderChange(1, (), ()), timestamp_ms=0)
    data = build([change], control=True) + build([NewRecord(value=b"x")], base_offset=1)
    known: tuple[list[Aborted] | None, ...] = (None, [])
    for aborted in known:
        seen = see(data, aborted=aborted)
        assert [record.value for record in seen.records] == [b"x"]
        assert seen.skipped_control == 1


step = st.one_of(
    st.tuples(st.just("write"), st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.just("plain"), st.integers(1, 4), st.integers(1, 3)),
    st.tuples(st.just("commit"), st.integers(1, 3), st.just(0)),
    st.tuples(st.just("abort"), st.integers(1, 3), st.just(0)),
)


@settings(max_examples=EXAMPLES)
@given(st.lists(step, min_size=1, max_size=30), st.data())
def test_any_history_read_in_any_answers_gives_what_was_committed(
    steps: list[tuple[str, int, int]], data: st.DataObject
) -> None:
    log = Log()
    for number, (what, producer_id, count) in enumerate(steps):
        values = [b"%d/%d" % (number, index) for index in range(count)]
        if what in ("write", "plain"):
            log.write(producer_id, *values, transactional=what == "write")
        else:
            log.end(producer_id, commit=what == "commit")
    for producer_id in list(log.open):
        log.end(producer_id, commit=False)
    inner = data.draw(st.sets(st.integers(0, len(log.batches))))
    borders = sorted(inner | {0, len(log.batches)})

    assert sorted(values_of(log, borders)) == sorted(log.committed)
