"""Hosts of a fault: the two ends of a link, as rules and commands write them."""

from __future__ import annotations

Host = int | str
"""A node's id, "clients" (everyone who is not a node), "client:NAME" for one client id, or "*"."""
ANYONE = "*"
CLIENTS = "clients"
ONE_CLIENT = "client:"
