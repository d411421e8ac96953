"""Raft for the metadata log, in KRaft's form: a pure machine, events in, effects out."""
