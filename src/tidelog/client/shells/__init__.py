"""Shells: what gives the machines of this room sockets, a clock and a thread."""
