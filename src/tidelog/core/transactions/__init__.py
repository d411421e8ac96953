"""The transaction coordinator's state: one machine for each partition of `__transaction_state`."""
