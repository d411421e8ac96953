"""The quorum for people and for programs: lags are counted from the leader."""

from __future__ import annotations

from tidelog.cli.quorum import quorum_json, quorum_text
from tidelog.client.admin.cluster import QuorumInfo, QuorumReplica
from tidelog.core.model.errors import ErrorCode

TOLD = QuorumInfo(
    ErrorCode.NONE,
    2,
    7,
    98,
    (
        QuorumReplica(1, 90, bytes(range(16)), 9_000, 8_500),
        QuorumReplica(2, 100, None, 9_900, 9_900),
    ),
    (QuorumReplica(9, None),),
)


def test_lags_are_behind_the_leader() -> None:
    document = quorum_json("the-cluster", TOLD)
    facts = {key: value for key, value in document.items() if key != "nodes"}
    assert facts == {
        "cluster_id": "the-cluster",
        "leader": 2,
        "quorum_epoch": 7,
        "high_watermark": 98,
        "max_follower_lag": 10,
        "max_follower_lag_ms": 1_400,
    }
    leader, voter, observer = document["nodes"]
    assert (leader["node"], leader["status"], leader["lag"]) == (2, "leader", 0)
    assert (voter["node"], voter["status"], voter["lag"], voter["behind_ms"]) == (
        *(1, "voter", 10),
        1_400,
    )
    assert voter["directory_id"] == "AAECAwQFBgcICQoLDA0ODw"
    assert (observer["node"], observer["status"], observer["lag"]) == (9, "observer", None)


def test_without_a_leader_nobody_lags() -> None:
    document = quorum_json("c", TOLD._replace(leader_id=None))
    assert document["leader"] is None and document["max_follower_lag"] == 0
    assert {each["status"] for each in document["nodes"]} == {"voter", "observer"}
    assert "leader:              none" in quorum_text(document)


def test_for_people() -> None:
    lines = quorum_text(quorum_json("c", TOLD)).splitlines()
    assert "voters:              1,2" in lines and "observers:           9" in lines
    assert lines[-3].split() == ["2", "leader", "100", "0", "0", "-"]
    assert lines[-1].split() == ["9", "observer", "-", "-", "-", "-"]
