"""Bytes to messages and back: the only room that knows protocol versions."""
