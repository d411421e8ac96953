"""Profiles: what a kind of simulation does in one seed, and how it is judged."""
