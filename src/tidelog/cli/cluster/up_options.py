"""What `tidelog up` was told, and how a plain command line is understood without typer."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tidelog.cli.cluster.exit_codes import DATA_VARIABLE, DEFAULT_DATA
from tidelog.cluster.errors import ClusterUsageError

DEFAULT_PORT = 9092


class UpOptions(NamedTuple):
    """None: not said."""

    brokers: int | None = None
    racks: tuple[str, ...] | None = None
    controllers: int | None = None
    data: Path = Path(DEFAULT_DATA)
    profile: str | None = None
    port: int | None = None
    settings: tuple[str, ...] = ()
    detach: bool = False
    verbose: bool = False


_NUMBERS = ("--brokers", "--controllers", "--port")
_TEXTS = ("--racks", "--data", "--profile")
_SETTING = "--set"
_FLAGS = {"--detach": "detach", "-d": "detach", "--verbose": "verbose", "-v": "verbose"}


def plain_up_options(
    arguments: Sequence[str], environment: Mapping[str, str] | None = None
) -> UpOptions | None:
    """What the arguments say; None if there is anything to explain, which typer does."""
    environment = os.environ if environment is None else environment
    given: dict[str, str] = {"--data": environment.get(DATA_VARIABLE) or DEFAULT_DATA}
    flags: dict[str, bool] = {}
    settings: list[str] = []
    rest = list(arguments)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if name in _FLAGS and not equals:
            flags[_FLAGS[name]] = True
            continue
        if name not in (*_NUMBERS, *_TEXTS, _SETTING):
            return None
        if not equals:
            if not rest:
                return None
            value = rest.pop(0)
        if name in _NUMBERS and not value.isdecimal():
            return None
        if name == _SETTING:
            settings.append(value)
        else:
            given[name] = value
    return UpOptions(
        brokers=_number(given.get("--brokers")),
        racks=read_racks(given.get("--racks")),
        controllers=_number(given.get("--controllers")),
        data=Path(given["--data"]),
        profile=given.get("--profile"),
        port=_number(given.get("--port")),
        settings=tuple(settings),
        detach=flags.get("detach", False),
        verbose=flags.get("verbose", False),
    )


def read_racks(text: str | None) -> tuple[str, ...] | None:
    """`a,b`."""
    return None if text is None else tuple(each.strip() for each in text.split(","))


def read_settings(texts: Sequence[str]) -> dict[str, str | int | bool]:
    """KEY=VALUE; what a broker does not understand it says itself."""
    settings: dict[str, str | int | bool] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key.strip() and equals):
            raise ClusterUsageError(f"--set {text!r}: write it like KEY=VALUE")
        settings[key.strip()] = value.strip()
    return settings


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
