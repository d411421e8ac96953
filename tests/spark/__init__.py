"""Spark end to end: one real session, real brokers, and Spark's own Kafka connector beside ours."""
