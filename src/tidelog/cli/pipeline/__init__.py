"""`tidelog pipeline`: check and run pipelines on Spark."""
