"""A broker's configuration file: TOML with Kafka's names, and every mistake told with its line.

A name may be written as one quoted key, as a dotted key or below a table:

    "log.segment.bytes" = 1_048_576
    log.segment.bytes = 1_048_576
    [log]
    segment.bytes = 1_048_576

The file is read statement by statement. So each setting knows its line, one mistake does not hide
the next, and `max.connections` may stand beside `max.connections.per.ip`, which TOML as a whole
would refuse, since there a name is either a value or a table.
"""

from __future__ import annotations

import os
import tomllib
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tidelog.core.formats.file_names import META_PROPERTIES
from tidelog.core.model.config import BadSetting, as_text
from tidelog.core.model.exceptions import TidelogError
from tidelog.core.node.settings import BadSettings, NodeSettings

CLUSTER_ID = "cluster.id"
"""Of meta.properties in Kafka, which has a step of formatting; here the file may say it."""
SECRET, SECRET_FILE = "tidelog.cluster.secret", "tidelog.cluster.secret.file"
_UNFINISHED = "(at end of document)"


class BadConfiguration(TidelogError):
    """Nothing was started; each complaint is one line that says where, what and what is allowed."""

    def __init__(self, complaints: list[str]) -> None:
        super().__init__("\n".join(complaints))
        self.complaints = complaints


class ConfiguredValue(NamedTuple):
    """A value and where it was set: "broker.toml:7" or "--set"."""

    text: str
    where: str


def load_settings(path: str | None, overrides: Iterable[str]) -> NodeSettings:
    """Read a file, put `key=value` overrides above it, check everything."""
    complaints: list[str] = []
    configured: dict[str, ConfiguredValue] = {}
    if path is not None:
        try:
            with open(path, encoding="utf-8") as file:
                lines = file.read().splitlines()
        except OSError as error:
            raise BadConfiguration([f"{path}: {error.strerror or error}"]) from error
        except UnicodeDecodeError as error:
            raise BadConfiguration([f"{path}: is not UTF-8 text"]) from error
        configured = read_file(path, lines, complaints)
    configured |= read_overrides(overrides, complaints)
    configured |= _secret_of_file(configured, complaints)
    texts = {name: one.text for name, one in configured.items()}
    cluster_id = texts.pop(CLUSTER_ID, None) or None
    try:
        settings = NodeSettings.of(texts, cluster_id=cluster_id)
    except BadSettings as refusal:
        for problem in refusal.problems:
            where = (
                configured[problem.name].where
                if problem.name in configured
                else (path or "settings")
            )
            complaints.append(f"{where}: {problem.name}: {problem.reason}")
    else:
        complaints += _lacks_cluster_id(settings, path)
    if complaints:
        raise BadConfiguration(sorted(set(complaints), key=_by_line))
    return settings


def read_file(path: str, lines: list[str], complaints: list[str]) -> dict[str, ConfiguredValue]:
    """The settings of a file by name; what cannot be read becomes a complaint."""
    configured: dict[str, ConfiguredValue] = {}
    for line, name, raw in _statements(path, lines, complaints):
        where = f"{path}:{line}"
        if name in configured:
            complaints.append(f"{where}: {name}: was already set at {configured[name].where}")
            continue
        try:
            configured[name] = ConfiguredValue(as_text(name, raw), where)
        except BadSetting as refusal:
            complaints.append(f"{where}: {name}: {refusal.text} is refused: {refusal.reason}")
    return configured


def read_overrides(overrides: Iterable[str], complaints: list[str]) -> dict[str, ConfiguredValue]:
    """The last word for one name counts."""
    configured = {}
    for override in overrides:
        name, equals, text = override.partition("=")
        if not equals or not name.strip():
            complaints.append(f"--set {override}: must be like --set log.segment.bytes=1048576")
            continue
        shown = name if name.strip() == SECRET else override
        configured[name.strip()] = ConfiguredValue(text.strip(), f"--set {shown}")
    return configured


def _secret_of_file(
    configured: dict[str, ConfiguredValue], complaints: list[str]
) -> dict[str, ConfiguredValue]:
    """The cluster's secret, if a file of its own holds it."""
    named = configured.get(SECRET_FILE)
    if named is None:
        return {}
    if SECRET in configured:
        complaints.append(f"{named.where}: {SECRET_FILE}: {SECRET} is set as well; one is enough")
        return {}
    try:
        with open(named.text, encoding="utf-8") as file:
            return {SECRET: ConfiguredValue(file.read().strip(), named.where)}
    except OSError as error:
        complaints.append(f"{named.where}: {SECRET_FILE}: {named.text}: {error.strerror or error}")
    except UnicodeDecodeError:
        complaints.append(f"{named.where}: {SECRET_FILE}: {named.text}: is not UTF-8 text")
    return {}


def _lacks_cluster_id(settings: NodeSettings, path: str | None) -> Iterator[str]:
    """A node alone makes an id for its cluster; several would make several.

    Later starts need none: each log directory then says whose it is.
    """
    voters = settings.value("controller.quorum.voters")
    assert isinstance(voters, tuple)
    is_alone = all(voter.startswith(f"{settings.node_id}@") for voter in voters)
    knows = any(os.path.exists(os.path.join(each, META_PROPERTIES)) for each in settings.log_dirs)
    if settings.cluster_id is None and not is_alone and not knows:
        made = urlsafe_b64encode(os.urandom(16)).decode("ascii").rstrip("=")
        yield (
            f"{path or 'settings'}: {CLUSTER_ID}: must be set before the first start, to the same"
            f" text in all nodes of the cluster, for example {made}"
        )


def _statements(
    path: str, lines: list[str], complaints: list[str]
) -> Iterator[tuple[int, str, object]]:
    """(line, full name, raw value) of every key; a statement may span lines."""
    table = ""
    start = 0
    while start < len(lines):
        end = start + 1
        parsed, error = _parse(lines[start:end])
        while error is not None and error.endswith(_UNFINISHED) and end < len(lines):
            end += 1
            parsed, error = _parse(lines[start:end])
        if error is not None:
            complaints.append(f"{path}:{start + 1}: is not TOML: {_reason(error)}")
            start += 1
            continue
        header = lines[start].strip()
        if header.startswith("["):
            names = list(_flatten(parsed, empty_tables=True))
            table = names[0][0] + "."
            if header.startswith("[["):
                complaints.append(f"{path}:{start + 1}: lists of tables are not known here")
        else:
            for name, raw in _flatten(parsed):
                yield start + 1, table + name, raw
        start = end


def _parse(lines: list[str]) -> tuple[dict[str, object], str | None]:
    try:
        return tomllib.loads("\n".join(lines)), None
    except tomllib.TOMLDecodeError as error:
        return {}, str(error)


def _reason(error: str) -> str:
    """Without the position, which is within the statement: the complaint has the line."""
    return error.partition(" (at ")[0]


def _flatten(
    table: dict[str, object], prefix: str = "", *, empty_tables: bool = False
) -> Iterator[tuple[str, object]]:
    for key, value in table.items():
        if isinstance(value, dict) and (value or not empty_tables):
            yield from _flatten(value, f"{prefix}{key}.", empty_tables=empty_tables)
        else:
            yield prefix + key, value


def _by_line(complaint: str) -> tuple[bool, int]:
    """Complaints in the order of the file; those without a line come last."""
    line = complaint.split(": ", 1)[0].rpartition(":")[2]
    return (not line.isdecimal(), int(line) if line.isdecimal() else 0)
