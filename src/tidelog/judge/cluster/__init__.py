"""Invariants of a cluster: facts about its nodes go in, evidence of what must never be comes out.

| invariant | where |
|---|---|
| one leader per leader epoch; elections are clean or allowed; epochs grow | leadership.py |
| leader and leader candidate completeness, no committed record is lost | log_invariants.py |
| log matching, producer state matches the log | log_invariants.py |
| the high watermark: behind the maximal in-sync set, minimum, forward | high_watermark.py |
| replication quorum superset, in-sync and eligible sets are sound | in_sync_set.py |
| who joins the in-sync set is the process that fetched | in_sync_set.py |
| recovery has its last known leader | in_sync_set.py |
| quorum election safety, one vote, quorum completeness and majority | metadata_quorum.py |
| metadata agrees, only committed metadata is applied | metadata_quorum.py |

checker.py takes the facts in and holds all of them against cluster_model.py.

The eight safety properties of the KIP-966 model (Vanlightly's TLA+ specification), and where each
is checked:

1. Leader Completeness: `leader completeness`.
2. Log Matching: `log matching`, for equal offsets and leader epochs on all replicas, and below the
   high watermark by `leader completeness` and `leader candidate completeness`.
3. Leader Candidate Completeness: `leader candidate completeness`.
4. Replication Quorum Superset: `replication quorum superset`.
5. Metadata Log Matching: `log matching` over the metadata log, and `metadata agrees`.
6. Consistent Read: `read then lost` over what readers were given (judge/lost_records.py).
7. Min ISR Recovery Quorum: Kafka 4.3 recovers with one replica, the last known leader; the property
   is then `recovery has its last known leader`.
8. No Committed Record Lost Globally: `no committed record is lost`, and `lost` over what writers
   were answered (judge/lost_records.py).

That a high watermark never goes back for a client is `non-monotonic` (judge/reader_answers.py).
"""
