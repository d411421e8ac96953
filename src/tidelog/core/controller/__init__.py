"""What the active controller decides: pure functions that return records."""
