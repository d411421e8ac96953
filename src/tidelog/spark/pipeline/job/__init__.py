"""A checked plan as Spark queries: run, watched, reported as events, and stopped on request."""
