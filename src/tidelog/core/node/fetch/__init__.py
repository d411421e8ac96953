"""Serving Fetch: incremental sessions, and answers that wait for data."""
