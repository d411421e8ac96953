"""Which names a topic may have, and which names belong to the cluster itself.

A topic's name becomes a directory name, so it is kept to characters and a length that every file
system takes.
"""

from __future__ import annotations

import re

from tidelog.core.model.limits import TOPIC_NAME_CHARACTERS_MAX

METADATA_TOPIC = "__cluster_metadata"
OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
SHARE_STATE_TOPIC = "__share_group_state"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC})
"""Those that clients see marked as internal. The metadata log is not a topic to them at all."""

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def refuse_topic_name(name: str) -> str | None:
    """Why no topic may have this name; None if one may."""
    if not name:
        return "a topic name cannot be empty"
    if name in (".", ".."):
        return f"a topic cannot be called {name!r}"
    if len(name) > TOPIC_NAME_CHARACTERS_MAX:
        return f"a topic name has at most {TOPIC_NAME_CHARACTERS_MAX} characters, not {len(name)}"
    if _LEGAL.fullmatch(name) is None:
        return f"a topic name has only ASCII letters, digits, '.', '_' and '-', not {name!r}"
    return None


def is_internal_topic(name: str) -> bool:
    return name in INTERNAL_TOPICS
