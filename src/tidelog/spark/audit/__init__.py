"""The audit: producers' outcomes, what a topic holds and what a sink published, compared.

| modules | what they are about |
|---|---|
| journal_index, journal_columns, acknowledged | an acks journal, as runs and as rows of outcomes |
| replicas, segment_frames | the segment files of every replica |
| broker_metadata, broker_frames | the same topic through its brokers |
| audited_topic, batches, transactions | the topic's bounds; which records count |
| pairing, pairs | outcomes and held records, each found once |
| rules, replica_rules, classification, findings, replica_lookup | what is wrong, and the evidence |
| published | what a sink made of the topic |
| request, audit, report, launcher, tasks | the order of it all, from request to report |

The names of findings are those of judge/anomalies.py.
"""
