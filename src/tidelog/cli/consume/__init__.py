"""`tidelog consume`: its options, what to read, and the run."""
