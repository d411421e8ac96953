"""The command that starts three brokers, as `./dev bench startup` gives it: `tidelog up`."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

BROKERS = 3


def up_command(*, data: Path, port: int) -> list[str]:
    """In the foreground: whoever ends it ends the brokers."""
    if find_spec("tidelog.cli.cluster.up") is None:
        return [sys.executable, "-m", "bench.up", str(data), str(port)]
    command = [sys.executable, "-m", "tidelog.cli.main", "up", "--brokers", str(BROKERS)]
    return [*command, "--data", str(data), "--port", str(port)]


def main(data: str, port: str) -> None:
    """The same as a program of three lines, for a checkout without that verb."""
    import tidelog

    with tidelog.Cluster(BROKERS, data=data, port=int(port)):
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
