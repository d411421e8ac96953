"""The exactly-once sink of Spark: every micro-batch becomes one transaction of Kafka.

`exactly_once.py` is what `foreachBatch` calls, and the page to begin with. A batch is made ready in
three steps: `shape` (which columns, as Spark's own Kafka sink wants them), `output_partitions`
and `repartition` (which partition each row goes to, and one task for each partition),
`task_writer` (a task's rows as record batches). The protocol itself is `client.sink`.
"""
