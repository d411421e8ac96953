"""Engines: the places where a story can be played."""
