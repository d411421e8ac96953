"""Kafka's files on disk as pure functions: their names, and the content of the small ones.

Storage writes and reads through it, the audit and the lab read the same files from outside. What
it does not have: batches (core/wire), indexes and the quorum state, which only storage reads.
"""
