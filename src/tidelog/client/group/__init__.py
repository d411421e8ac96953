"""A member of a classic consumer group as a machine: joins, owns partitions, commits, leaves."""
