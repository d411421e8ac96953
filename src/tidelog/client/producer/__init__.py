"""The producer: records in, batches out, and an outcome for every record."""
