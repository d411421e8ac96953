"""The consumer: positions, fetches, and the records that may be given to a program."""
