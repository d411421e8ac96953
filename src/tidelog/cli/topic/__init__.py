"""`tidelog topic`: create, list, describe, delete and alter topics."""
