"""Fields of a fault rule: how each is read from JSON, with one clear line for every mistake."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any

from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.exceptions import TidelogError
from tidelog.core.wire.messages import MESSAGES
from tidelog.faults.hosts import ANYONE, CLIENTS, ONE_CLIENT, Host

PURPOSES = ("replica", "quorum", "controller", "coordinator", "probe")

REQUIRED: Any = object()
Reader = Callable[[object], Any]
Fields = Mapping[str, tuple[Reader, object]]
"""By name: how a value is read, and its default or REQUIRED."""


class BadRule(TidelogError):
    """One clear line for whoever sent the rule."""


def host(value: object) -> Host:
    if type(value) is int and value >= 0:
        return value
    if isinstance(value, str):
        is_client = value.startswith(ONE_CLIENT) and len(value) > len(ONE_CLIENT)
        if value in (ANYONE, CLIENTS) or is_client:
            return value
    raise BadRule(f'is not a node id, "{CLIENTS}", "{ONE_CLIENT}NAME" or "{ANYONE}"')


def purpose(value: object) -> str | None:
    if value is None or value in PURPOSES:
        return value
    raise BadRule(f"is not null or one of {', '.join(PURPOSES)}")


def one_purpose(value: object) -> str | None:
    if value is None:
        raise BadRule(f"must be one of {', '.join(PURPOSES)}: without one it would be a cut")
    return purpose(value)


def whole_number(least: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        if type(value) is not int or value < least:
            raise BadRule(f"is not a whole number from {least} on")
        return value

    return read


def chance(value: object) -> float:
    if type(value) not in (int, float) or not 0 < value <= 1:  # type: ignore[operator]
        raise BadRule("is not a chance above 0 and up to 1")
    return float(value)  # type: ignore[arg-type]


def text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise BadRule("is not a text of one letter or more")
    return value


def until(value: object) -> int | None:
    return None if value is None else whole_number(0)(value)


@cache
def api_keys() -> Mapping[str, int]:
    """Every API that a broker serves, by name; read only for rules that name one."""
    return {pair[0].__name__.removesuffix("Request"): key for key, pair in MESSAGES.items()}


def api(value: object) -> str:
    if isinstance(value, str) and value in api_keys():
        return value
    raise BadRule(f"is not an API that this broker serves{suggestion(str(value), api_keys())}")


def error(value: object) -> str:
    names = [code.name for code in ErrorCode if code]
    if isinstance(value, str) and value in names:
        return value
    raise BadRule(f"is not the name of a Kafka error{suggestion(str(value), names)}")


def suggestion(given: str, known: Iterable[str]) -> str:
    """ "; did you mean ...?" with names like the given one, or all of them if there are few."""
    known = list(known)
    by_lower = {name.lower(): name for name in known}
    found = [by_lower[name] for name in get_close_matches(given.lower(), by_lower, n=4, cutoff=0.5)]
    if found:
        return f"; did you mean {', '.join(found)}?"
    return f"; it is one of {', '.join(known)}" if len(known) <= 12 else ""
