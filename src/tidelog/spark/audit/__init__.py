"""The audit: what producers were told, what a topic holds and what a sink published, compared.

journal_index, journal_columns   an acks journal, as runs and as columns
told                             every outcome as a row
replicas, segment_frames         segment files of every replica, as batches and records
broker_facts, broker_frames      the same topic through its brokers
transactions, batches            which records count, and their digests
pairing, pairs                   told and held records, each found once
anomalies/, verdict              one file for each thing that can be wrong; the classes
published, publishing            what a sink made of the topic
audit, report                    the order of it all, and what is told at the end
"""
