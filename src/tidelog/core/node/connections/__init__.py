"""Connections of a node: requests that come in, their answers in order, and probes that go out."""
