"""A checked plan as Spark queries that run, tell how they fare, and stop when they are asked."""
