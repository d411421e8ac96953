"""Invariants of a cluster: facts about its nodes go in, evidence of what must never be comes out.

| invariant | where |
|---|---|
| one leader per leader epoch | leadership.py |
| elections are clean or allowed | leadership.py |
| leader completeness | completeness.py |
| leader candidate completeness | completeness.py |
| no committed record is lost | completeness.py |
| log matching | log_matching.py |
| the high watermark stays behind the maximal in-sync set | high_watermark.py |
| the high watermark needs the minimum in-sync set | high_watermark.py |
| replication quorum superset | in_sync_set.py |
| in-sync set is sound, eligible replicas are sound | in_sync_set.py |
| who joins the in-sync set is the process that fetched | in_sync_set.py |
| recovery has its last known leader | in_sync_set.py |
| epochs grow | epochs.py |
| metadata agrees, only committed metadata is applied | metadata.py |
| quorum election safety, one vote, quorum completeness and majority | quorum.py |
| producer state matches the log | producers.py |

The eight safety properties of the KIP-966 model (Vanlightly's TLA+ specification), and where each
is checked:

1. Leader Completeness: `leader completeness`.
2. Log Matching: `log matching`, for equal offsets and leader epochs on all replicas, and below the
   high watermark by `leader completeness` and `leader candidate completeness`.
3. Leader Candidate Completeness: `leader candidate completeness`.
4. Replication Quorum Superset: `replication quorum superset`.
5. Metadata Log Matching: `log matching` over the metadata log, and `metadata agrees`.
6. Consistent Read: judge/ghost.py over what readers were given.
7. Min ISR Recovery Quorum: Kafka 4.3 recovers with one replica, the last known leader; the property
   is then `recovery has its last known leader`.
8. No Committed Record Lost Globally: `no committed record is lost`, and judge/lost.py over what
   writers were told.

The fourth name on the issue's list, that a high watermark never goes back for a client, is
judge/non_monotonic.py.
"""
