"""How a second writer is found out, where Kafka itself would say nothing: one file per guard.

Kafka answers a batch with the same sequences and other bytes as a duplicate, silently. Two attempts
of one task would so be mixed. Each guard is a pure function or a small value, and alone enough to
refuse the batch.
"""
