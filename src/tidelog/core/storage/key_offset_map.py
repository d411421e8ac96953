"""The newest offset of each key, in a table of fixed size: what one round of compaction remembers.

An entry is 24 bytes: a 128-bit digest of the key and an offset. The table is made once per round
and never grows, so no step of a round costs more than a few probes. Two keys with the same digest
would count as one; BLAKE2 makes that as good as impossible, for keys chosen by an enemy, too.
"""

from __future__ import annotations

from hashlib import blake2b

ENTRY_BYTES = 24
_DIGEST_BYTES = 16
_SLOTS_MIN = 16


class KeyOffsetMap:
    """Open addressing with a second hash as the step.

    Invariant: at most `keys_max` entries, fewer than there are slots; `latest_offset` is the
    offset up to which every record of the dirty part was looked at.
    """

    __slots__ = ("_digests", "_offsets", "_slots", "count", "keys_max", "latest_offset")

    def __init__(self, *, keys: int, memory_bytes: int, load_factor: float) -> None:
        """`keys`: no more distinct keys will come; memory beyond their need is not taken."""
        slots_max = max(_SLOTS_MIN, memory_bytes // ENTRY_BYTES)
        wanted = int(keys / load_factor) + _SLOTS_MIN
        self._slots = min(slots_max, wanted)
        self.keys_max = max(1, min(self._slots - 1, int(self._slots * load_factor)))
        self._digests = bytearray(self._slots * _DIGEST_BYTES)
        self._offsets = memoryview(bytearray(self._slots * 8)).cast("q")
        self.count = 0
        self.latest_offset = -1

    @property
    def is_full(self) -> bool:
        return self.count >= self.keys_max

    @property
    def size_bytes(self) -> int:
        return self._slots * ENTRY_BYTES

    def put(self, key: bytes, offset: int) -> None:
        """Offsets come in growing order, so a known key's entry is overwritten."""
        digest = blake2b(key, digest_size=_DIGEST_BYTES).digest()
        at = self._slot_of(digest)
        if not self._offsets[at]:
            assert not self.is_full, "a full map takes no further key"
            self._digests[at * _DIGEST_BYTES : (at + 1) * _DIGEST_BYTES] = digest
            self.count += 1
        self._offsets[at] = offset + 1

    def get(self, key: bytes) -> int:
        """The newest offset of this key; -1 if it is not in the map."""
        digest = blake2b(key, digest_size=_DIGEST_BYTES).digest()
        return self._offsets[self._slot_of(digest)] - 1

    def _slot_of(self, digest: bytes) -> int:
        """The slot of this digest, or the free one where it belongs.

        After as many steps as there are slots the search goes on slot by slot: a step that
        divides the number of slots visits only some of them.
        """
        slots, digests, offsets = self._slots, self._digests, self._offsets
        at = int.from_bytes(digest[:8]) % slots
        step = int.from_bytes(digest[8:12]) % (slots - 1) + 1
        for probe in range(2 * slots):
            if not offsets[at]:
                return at
            start = at * _DIGEST_BYTES
            if digests[start : start + _DIGEST_BYTES] == digest:
                return at
            at = (at + (step if probe < slots else 1)) % slots
        raise AssertionError("a map without a free slot")
