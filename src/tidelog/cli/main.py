"""`tidelog`: the command line. A broker starts from here without loading what only people need.

Typer and rich cost a fifth of a second, which is longer than the rest of a broker's start; so a
plain `tidelog broker ...` or `tidelog up ...` is understood here, and everything else (help,
mistakes, other commands) goes to the full application in app.py.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence

_WITH_VALUE = ("--config", "--set", "--ready-file", "--log-level", "--faults")
_WITHOUT_VALUE = "--stop-with-stdin"
_LOG_LEVELS = ("debug", "info", "warning", "error")


def main() -> None:
    """The console script."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["broker"]:
        options = plain_broker_options(arguments[1:])
        if options is not None:
            sys.exit(run_plain_broker(options))
    if arguments[:1] == ["up"]:
        run_plain_up(arguments[1:])
    from tidelog.cli.app import app

    app(prog_name="tidelog")


def plain_broker_options(arguments: Sequence[str]) -> dict[str, list[str]] | None:
    """The options of `tidelog broker` by name; None if there is anything to explain."""
    options: dict[str, list[str]] = {name: [] for name in (*_WITH_VALUE, _WITHOUT_VALUE)}
    rest = list(arguments)
    while rest:
        if rest[0] == _WITHOUT_VALUE:
            options[rest.pop(0)] = ["yes"]
            continue
        name, equals, value = rest.pop(0).partition("=")
        if name not in _WITH_VALUE:
            return None
        if not equals:
            if not rest:
                return None
            value = rest.pop(0)
        options[name].append(value)
    is_single = all(len(options[name]) <= 1 for name in _WITH_VALUE if name != "--set")
    is_known = all(level in _LOG_LEVELS for level in options["--log-level"])
    has_settings = bool(options["--config"] or options["--set"])
    return options if is_single and is_known and has_settings else None


def run_plain_broker(options: dict[str, list[str]]) -> int:
    gc.disable()  # until the broker is ready: what a start makes, it keeps
    from tidelog.worlds.runtime.broker import run_broker

    return run_broker(
        next(iter(options["--config"]), None),
        options["--set"],
        ready_file=next(iter(options["--ready-file"]), None),
        log_level=next(iter(options["--log-level"]), None),
        faults=next(iter(options["--faults"]), None),
        stop_with_stdin=bool(options[_WITHOUT_VALUE]),
    )


def run_plain_up(arguments: Sequence[str]) -> None:
    """Start a cluster if there is nothing to explain."""
    from tidelog.cli.cluster.up_options import plain_up_options

    options = plain_up_options(arguments)
    if options is not None:
        from tidelog.cli.cluster.up_run import run_up

        sys.exit(run_up(options))


if __name__ == "__main__":
    main()
