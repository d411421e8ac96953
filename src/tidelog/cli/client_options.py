"""The options that every verb over the Kafka protocol has, and what they come to.

A module of a verb loads the client only when the verb runs: help must be quick.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tidelog.cli.exit_codes import Misused
from tidelog.cli.option_values import pairs, properties
from tidelog.cluster.durations import duration_ms
from tidelog.cluster.errors import ClusterUsageError

DEFAULT_BOOTSTRAP = "localhost:9092"
DEFAULT_TIMEOUT = "30s"

Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        "--bootstrap",
        "-b",
        metavar="HOST:PORT[,…]",
        envvar="TIDELOG_BOOTSTRAP",
        help="Brokers to ask first.",
    ),
]
CommandConfig = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        metavar="FILE",
        help="Settings of the client in a properties file, by Kafka's names.",
    ),
]
Timeout = Annotated[
    str,
    typer.Option(
        "--timeout", metavar="DURATION", help="How long to wait for the cluster: 500ms, 30s, 2m."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON for other programs.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How to reach the cluster, and how patiently."""

    settings: dict[str, str]
    timeout_s: float

    @property
    def timeout_ms(self) -> int:
        return int(self.timeout_s * 1_000)

    def with_settings(self, *more: Mapping[str, str]) -> dict[str, str]:
        """The later ones count."""
        together = dict(self.settings)
        for each in more:
            together.update(each)
        return together


def access(bootstrap: str, command_config: Path | None, timeout: str) -> Access:
    """Misused if the file cannot be read or is none, or the time is none."""
    try:
        timeout_s = duration_ms(timeout) / 1_000
    except ClusterUsageError as error:
        raise Misused(f"--timeout: {error}") from None
    settings: dict[str, str] = {}
    if command_config is not None:
        try:
            settings = properties(command_config.read_text())
        except (OSError, UnicodeDecodeError) as error:
            raise Misused(f"--command-config: {command_config} cannot be read: {error}") from None
        except ValueError as error:
            raise Misused(f"--command-config: {command_config}: {error}") from None
    return Access(settings={**settings, "bootstrap.servers": bootstrap}, timeout_s=timeout_s)


def pairs_of(option: str, texts: list[str] | None) -> dict[str, str]:
    """KEY=VALUE options; Misused names the option."""
    try:
        return pairs(texts or ())
    except ValueError as error:
        raise Misused(f"{option}: {error}") from None
