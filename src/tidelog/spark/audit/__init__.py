"""The audit: what producers were told, what a topic holds and what a sink published, compared.

| modules | what they are about |
|---|---|
| journal_index, journal_columns, told | an acks journal, as runs and as rows |
| replicas, segment_reading, segment_frames, replica_facts | the segment files of every replica |
| broker_facts, broker_reading, broker_frames | the same topic through its brokers |
| batches, transactions | which records count, and their digests |
| pairing, pairs, superseded | told and held records, each found once |
| anomalies/, verdict, findings, whereabouts | what can be wrong, and the evidence |
| published_rows, published, publishing | what a sink made of the topic |
| wish, audit, report, starting | the order of it all, from question to answer |

What runs in tasks (`*_reading`, `*_columns`, `*_rows`, batches, transactions) knows no Spark.
"""
