"""Raft for the metadata log, in KRaft's form: a pure machine, told things, returning wishes."""
