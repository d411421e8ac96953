"""Explicit ranges of offsets, as they lie in the log: fetched from whoever leads, never decoded."""
