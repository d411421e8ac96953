"""A pipeline file becomes a checked plan, or a list of errors with their lines: pure, no Spark."""
