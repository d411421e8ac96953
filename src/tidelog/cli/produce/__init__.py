"""`tidelog produce`: its options, and the run."""
