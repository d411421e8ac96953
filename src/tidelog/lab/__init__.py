"""The lab: stories about a cluster in trouble, each with the evidence for what became of it.

A story is a function that reads as prose (`stories/`). It is written once, against the words of one
small engine interface (`engine.py`), so that the same story runs in the simulator, on processes and
on Apache Kafka (`engines/`). What a story holds in its hands is a `Lab` (`lab.py`): the engine's
words, the evidence that brokers and disks give, clients, and checks that write everything down.
"""
