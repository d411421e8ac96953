"""The faults that can be injected into a cluster: one table, and the rules that gates obey."""
