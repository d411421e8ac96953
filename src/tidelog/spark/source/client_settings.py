"""Options that begin with `kafka.`: settings of our client, without effect here, or refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tidelog.client.config import COMMON_SETTINGS
from tidelog.client.consumer.config import CONSUMER_SETTINGS
from tidelog.client.ranges.config import range_config
from tidelog.client.settings import ConfigError
from tidelog.spark.source.errors import OptionError

PREFIX = "kafka."
BOOTSTRAP = "kafka.bootstrap.servers"
_PLAIN = "PLAINTEXT"
_KNOWN = frozenset(each.name for each in (*COMMON_SETTINGS, *CONSUMER_SETTINGS))
_COMMON = frozenset(each.name for each in COMMON_SETTINGS)
_BYTES = "keys and values are read as bytes; convert them with column functions"
_REFUSED = {
    "auto.offset.reset": "use startingOffsets: Spark, not the client, decides where reading starts",
    "key.deserializer": _BYTES,
    "value.deserializer": _BYTES,
    "enable.auto.commit": "Spark's checkpoint keeps the offsets, none are committed to Kafka",
    "interceptor.classes": "there are no interceptors here",
}
_SECURED = ("ssl.", "sasl.")


class ClientSettings(NamedTuple):
    """The settings for the client, and warnings for the user."""

    given: dict[str, str]
    warnings: tuple[str, ...]

    def of_admin(self) -> dict[str, str]:
        """Those that every client has, not only consumers."""
        return {name: text for name, text in self.given.items() if name in _COMMON}


def read_client_settings(options: Mapping[str, str]) -> ClientSettings:
    """`options` have lower-case names; those without `kafka.` are ignored."""
    if not options.get(BOOTSTRAP, "").strip():
        raise OptionError(f"{BOOTSTRAP} must be given: host:port, or several separated by commas")
    given: dict[str, str] = {}
    warnings: list[str] = []
    for option, text in options.items():
        if not option.startswith(PREFIX):
            continue
        name = option.removeprefix(PREFIX)
        if name in _REFUSED:
            raise OptionError(f"{option} is not supported: {_REFUSED[name]}")
        if name.startswith(_SECURED) or (
            name == "security.protocol" and text.strip().upper() != _PLAIN
        ):
            raise OptionError(f"{option} is not supported: connections are PLAINTEXT so far")
        if name in _KNOWN:
            given[name] = text
        elif name != "security.protocol":
            warnings.append(f"{option} has no effect on format tidelog")
    try:
        range_config(given)
    except ConfigError as error:
        raise OptionError(f"{PREFIX}{error}") from None
    return ClientSettings(given, tuple(warnings))
