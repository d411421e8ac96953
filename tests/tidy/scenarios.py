"""The scenarios' ids: all that exist, and those which must have a test by now.

`D` rows are sentences of the five documents about Kafka that Tidelog shows to be true, `N` notes
where Kafka 4 differs from a document, `X` goes beyond them. Ids keep their meaning for ever.
"""

from __future__ import annotations

REQUIRED: dict[str, str] = {
    "D4-O1": "a producer does not know offsets in advance",
    "D4-O2": "a batch travels with base offset 0, and gets its real one under the same checksum",
    "D4-O3": "the leader assigns offsets at append, dense and unique over interleaved producers",
    "D4-O4": "the answer has base offset and error, and also log start offset and append time",
    "D4-O6": "table row produce: the leader assigns",
    "D4-O7": "table row consume: a fetch names a start offset and records carry theirs",
    "D4-O9": "offsets of a partition strictly increase and never change",
    "D4-I1": "without idempotence a lost answer and its retry give two copies",
    "D4-I2": "with idempotence the same fault gives one copy",
    "D4-I3": "a producer id is unique and given at the start",
    "D4-I4": "a restart without a transactional id is a new producer with epoch 0: no epoch rises",
    "D4-I5": "sequences count per partition",
    "D4-I6": "producer 500 numbers its records 0, 1, 2",
    "D4-I7": "a known sequence is ignored, a gap refused and nothing stored",
    "D4-I8": "producer id, partition and sequence are unique and ordered",
    "X-22": "a forgotten producer may go on at any sequence",
    "X-23": "sequences wrap inside a batch, and its retry is still a duplicate",
    "X-31": "a full disk is never acknowledged, and takes its directory offline",
    "X-32": "a torn last batch is cut at recovery, and indexes are rebuilt",
    "X-33": "a flipped bit in an old segment is noticed, never spread",
}

# Family and numbers: "D3-T 1-20" stands for D3-T1 ... D3-T20.
_TOLD = """
    D1-T 3 5; D1-F 1-2; D1-I 1-2; D1-E 1; D1-R 1-3; D1-V 1-3; D1-W 1-7
    D2-A 2; D2-S 1-7; D2-E 1-5; D2-T 1-4; D2-C 2-3; D2-M 1-10; D2-G 1-4
    D3-B 1-5; D3-O 1 3-4; D3-T 2-3 7-13 15-17; D3-C 2-5 7a 7b; D3-U 1 3 5-7; D3-R 0-6; D3-L 1-4
    D3-PS 3; D3-K 1-3; D3-F 1-2; D3-A 1-2; D3-S 1 2a 2b-A 2b-B 2c 4 5; D3-Q 1-3
    D5-L 2-3; D5-P 3; D5-R 3 5-7 13; D5-B 2-3; D5-U 1-2
    D4-O 5 8; X- 1-17 20 31-42 44-49 51
"""

# First shown with processes, and in need of no transaction.
_PROCESS = """
    D1-T 1-2 4; D1-E 2; D1-P 1-4; D1-V 4; D1-S 1 5
    D2-A 1; D2-E 6; D2-C 1
    D3-T 1 4-6 14 18-20; D3-C 1 6 7c; D3-U 4; D3-P 1-2; D3-PS 1-2 2d; D3-PB 1-7; D3-F 1-2
    D3-K 2-3; D3-A 1-2; D3-S 3-5; D3-Q 4-6; D3-D 1-10; D4-O 5 7-8
    D5-L 1; D5-P 1-2; D5-F 2-3; D5-C 1; D5-R 1-2 4 8-12; D5-B 1 4-6
    X- 4-5 13-17 20 31-32 36 39-41 45-49
"""

_FAMILIES = """
    D1-E 1-2; D1-F 1-2; D1-I 1-2; D1-P 1-4; D1-R 1-3; D1-S 1-5; D1-T 1-5; D1-V 1-4; D1-W 1-7
    D1-K 1-8; D1-Q 1-6; D1-Z 1-6
    D2-A 1-2; D2-C 1-3; D2-E 1-6; D2-S 1-7; D2-T 1-4; D2-M 1-10; D2-G 1-4; D2-Y 1-2; D2-Z 1-3
    D3-A 1-3; D3-B 1-5; D3-C 1-6; D3-C 7a 7b 7c; D3-F 1-2; D3-H 1-3; D3-K 1-3; D3-L 1-5; D3-O 1-6
    D3-P 1-2; D3-Q 1-6; D3-R 0-6; D3-S 1 2a 2c 2b-A 2b-B 3-5; D3-T 1-20; D3-U 1-8
    D3-PS 1-3; D3-PS 2d; D3-PB 1-7; D3-PG 1-5; D3-V 0-7; D3-D 1-10; D3-Z 1-9
    D3-BP 1-3 1-G1 1-G2 1-G3 1-G4 2-G1 2-G2 2-G3 2-G4 3-G1 3-G2 3-G3 3-G4
    D4-F 1-4; D4-I 1-10; D4-O 1-9; D4-T 1-10; D4-X 1-3; D4-C 1-5; D4-Q 1-5; D4-Z 1-5
    D5-B 1-6; D5-C 1; D5-F 1-3; D5-L 1-3; D5-P 1-3; D5-R 1-13; D5-U 1-3
    D5-TL 1-4; D5-TR 1-4; D5-K 1-4
    DR- 1-16; N 1-56; X- 1-52
"""

NOT_YET: dict[str, str] = {
    "a story of transactions": "D3-BP 1-G2 3-G4; D4-Z 1-3 5; X- 18 24 52",
    "`tidelog doctor`": "D3-BP 1-3; D3-H 1-3; D5-U 3; DR- 1-16; N 53",
    "a benchmark of the profiles": "D3-BP 1-G4 2-G2 2-G3 3-G2 3-G3; N 52",
    "the console": "D3-O 2 6",
    "a story of its own": "D3-BP 2-G4",
}
"""What the scenarios that nothing shows are waiting for."""

PARTLY: dict[str, str] = {
    "X-43": "without transactions, and without retention",
    "X-25": "an epoch per transaction; the producer that is fenced by its own timeout is not shown",
    "X-29": "markers of older coordinator epochs are sent by hand, no coordinator is paused",
    "D3-A3": "both fences and what readers get, not the position of the reader",
    "D4-F4": "the job is killed at several moments, not at every step",
    "X-38": "no `tidelog doctor` reports it yet",
    "X-26": "the simulator does not record such a duplicate as an event of its own",
    "D3-PG3": "the latency is not compared",
    "D3-PG4": "the latency is not compared",
}
"""Scenarios of which only a part is shown, and which part is missing."""


def _ids(families: str) -> frozenset[str]:
    ids: set[str] = set()
    for entry in families.replace("\n", ";").split(";"):
        family, *numbers = entry.split() or [""]
        for number in numbers:
            first, _, end = number.partition("-")
            if first.isdecimal() and end.isdecimal():
                ids.update(f"{family}{value}" for value in range(int(first), int(end) + 1))
            else:
                ids.add(f"{family}{number}")
    return frozenset(ids)


KNOWN = _ids(_FAMILIES)
TOLD = _ids(_TOLD)
"""What a story of the lab must show in the simulator: the heart of a replicated cluster."""
PROCESS = _ids(_PROCESS)
"""What a test must show with real brokers and unmodified clients."""


def is_known(scenario: str) -> bool:
    """A known id, or a variant of one: `D3-C3b` is a variant of `D3-C3`."""
    known = {each.upper() for each in KNOWN}
    scenario = scenario.upper()
    return scenario in known or (scenario[-1:] in "ABCD" and scenario[:-1] in known)


WAITING = {scenario: reason for reason, ids in NOT_YET.items() for scenario in _ids(ids)}
