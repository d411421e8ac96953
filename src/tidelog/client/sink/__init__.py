"""The exactly-once sink as machines: one batch of a pipeline is one transaction of Kafka.

A *driver* owns the sink: it takes it over when it starts, begins a transaction per batch, and is
the only one who commits. *Tasks* write under the driver's identity and hand receipts back. What was
published last is a *marker*: a committed offset of the group `tidelog-sink-NAME`, which moves in
the same transaction as the records, so that a batch that is run again is recognised.

The reading order: `options` and `values` (what a sink is given, and what travels between driver and
tasks), `marker` (what it remembers, and what that means for a batch), `requests` and `decisions`
(every request, and what every error code means there), `guards` (how a second writer is found out),
`driver` and `transaction_end` (the protocol, as generators that yield the calls they want to make),
`stateless_driver` (the same where no process lives from batch to batch), `task` and
`partition_output` (the writer), `call_runner` and `conversation` (which carry the calls out).

It speaks the classic protocol on purpose (AddPartitionsToTxn up to 3, Produce up to 11, EndTxn up
to 4): with Kafka's newer one a late task could add a partition to a transaction by merely writing.
Since every batch has a producer epoch of its own, what comes late from an older batch is fenced.
"""
