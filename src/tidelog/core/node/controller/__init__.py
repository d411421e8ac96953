"""The active controller, and the way to it from every other node."""
