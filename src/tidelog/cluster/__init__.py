"""Local clusters of real broker processes: start them, describe them, break and mend them.

`cluster.Cluster` is the front door; `tidelog.Cluster` is the same.
"""
