"""Judges of one broker and its disk: what may be missing after a crash, and nothing else.

One replica has nobody to ask, so every end of its life puts its newest records in doubt; the ledger
says which. A replicated partition gets no such doubt: its judges are one floor up.
"""
