"""The settings that Kafka does not have: their names begin with `tidelog.`."""

from __future__ import annotations

from tidelog.core.model.config import Setting, SettingType, Value

_STRING = SettingType.STRING
SECRET_CHARACTERS_MIN = 32


def _secret_rule(value: Value) -> str | None:
    if isinstance(value, str) and len(value) < SECRET_CHARACTERS_MIN:
        return f"must have at least {SECRET_CHARACTERS_MIN} characters, chosen at random"
    return None


OWN = (
    Setting(
        name="tidelog.cluster.secret",
        type=SettingType.PASSWORD,
        default=None,
        about="The same on all nodes of a cluster: they prove to each other that they know it. "
        "A node that is alone needs none.",
        rule=_secret_rule,
    ),
    Setting(
        name="tidelog.cluster.secret.file",
        type=_STRING,
        default=None,
        about="A file that holds tidelog.cluster.secret, and nothing else.",
    ),
    Setting(
        name="tidelog.fsync",
        type=_STRING,
        default="none",
        about="When a write counts: in the page cache as in Kafka (none), after a sync shared by "
        "all that wait (group), or after a sync of its own (always).",
        one_of=("none", "group", "always"),
    ),
    Setting(
        name="tidelog.records.validation",
        type=_STRING,
        default="full",
        about="What a leader checks in a producer's batch: every record as Kafka does (full), or "
        "only header and checksum (header): cheaper, but a batch that lies stops its consumers.",
        one_of=("full", "header"),
    ),
    Setting(
        name="tidelog.failure.detection",
        type=_STRING,
        default="connection",
        about="Whether a refused connection already proves a dead broker, or only silence does.",
        one_of=("connection", "session"),
    ),
    Setting(
        name="tidelog.log.format",
        type=_STRING,
        default="text",
        about="How the broker writes its own log lines.",
        one_of=("text", "json"),
    ),
    Setting(
        name="tidelog.log.level",
        type=_STRING,
        default="info",
        about="The least important lines of its own log that the broker writes.",
        one_of=("debug", "info", "warning", "error"),
    ),
)
