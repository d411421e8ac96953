"""Judges of compaction: what a cleaner may take out of a log, and what readers must still get.

| check | where |
|---|---|
| a record goes only if a later one replaces it, a tombstone after its time | compacted_log.py |
| offsets keep their records, nothing comes back, whatever crashes | compacted_log.py |
| replicas at rest have the same newest value of each key | compacted_log.py |
| a reader of the whole log gets the newest value of each key, and nothing else | scans.py |
"""
