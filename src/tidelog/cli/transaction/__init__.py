"""`tidelog transaction`: list and describe transactions, find and abort those that hang."""
