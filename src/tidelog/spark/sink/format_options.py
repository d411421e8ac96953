"""The options of `format("tidelog")` for writing: those of Spark's Kafka sink, and a few of ours.

`kafka.bootstrap.servers`, `topic` (or `topics`, with commas between, of which each row names one),
`sinkId` (which a stream must have), `kafka.compression.type`, `kafka.transaction.timeout.ms`,
`batchBytes`, `resumeAt`. Settings of a Kafka producer that mean nothing here cause a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping

from tidelog.client.config import COMMON_SETTINGS
from tidelog.client.sink.errors import SinkRefused
from tidelog.client.sink.options import BATCH_BYTES, SinkOptions

_PREFIX = "kafka."
_BOOTSTRAP = "kafka.bootstrap.servers"
_COMPRESSION = "kafka.compression.type"
_TIMEOUT = "kafka.transaction.timeout.ms"
_OURS = ("topic", "topics", "sinkid", "batchbytes", "resumeat", "path")
_CLIENT = frozenset(each.name for each in COMMON_SETTINGS)
_REFUSED = ("security.protocol", "sasl.", "ssl.")


def read_options(options: Mapping[str, str], *, default_id: str | None) -> SinkOptions:
    """The sink that these options describe; SinkRefused names the option that cannot be.

    `default_id` is the sink id of a write that needs none of its own.
    """
    given = {name.lower(): text for name, text in options.items()}
    sink_id = given.get("sinkid") or default_id
    if sink_id is None:
        raise SinkRefused(
            "a stream needs the option sinkId: the name of the sink's memory in the cluster, one"
            " for each query, for good"
        )
    if _BOOTSTRAP not in given:
        raise SinkRefused(f"the option {_BOOTSTRAP} must be given: host:port, or several of them")
    topics = [name.strip() for name in given.get("topics", "").split(",") if name.strip()]
    return SinkOptions(
        bootstrap=given[_BOOTSTRAP],
        sink_id=sink_id,
        topic=given.get("topic"),
        topics=topics,
        compression=given.get(_COMPRESSION, "none"),
        batch_bytes=_number(given, "batchbytes") or BATCH_BYTES,
        transaction_timeout_ms=_number(given, _TIMEOUT),
        resume_at=_number(given, "resumeat"),
        settings=_client_settings(given),
    )


def _number(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    if not text.strip().lstrip("-").isdigit():
        raise SinkRefused(f"the option {name} must be a number, not {text!r}")
    return int(text)


def _client_settings(given: Mapping[str, str]) -> dict[str, str]:
    settings = {}
    for option, text in given.items():
        name = option.removeprefix(_PREFIX)
        if option in (_BOOTSTRAP, _COMPRESSION, _TIMEOUT) or option in _OURS:
            continue
        if option.startswith(_PREFIX) and name.startswith(_REFUSED):
            if text.upper() != "PLAINTEXT":
                raise SinkRefused(f"{option} is not supported: connections are plain ones so far")
        elif option.startswith(_PREFIX) and name in _CLIENT:
            settings[name] = text
        else:
            warnings.warn(f"{option} has no effect on format tidelog", stacklevel=2)
    return settings
