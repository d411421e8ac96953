"""Bytes to messages and back, in every version of the protocol."""
