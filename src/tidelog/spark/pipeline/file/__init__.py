"""A pipeline file becomes a checked plan, or every mistake in it with its line: pure, no Spark."""
