"""Local clusters of real broker processes: started, watched, broken and mended by one object.

`cluster.Cluster` is the front door; `tidelog.Cluster` is the same.
"""
