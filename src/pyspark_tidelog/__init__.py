"""By this name Spark finds `format("tidelog")` without being told of it."""
