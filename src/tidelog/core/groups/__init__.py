"""Groups of consumers and their committed offsets, as pure machines over a log of records."""
