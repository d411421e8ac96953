"""A whole broker as one deterministic object, driven through ports."""
