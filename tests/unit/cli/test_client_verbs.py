"""The verbs over the Kafka protocol before they reach a cluster: help that teaches, mistakes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tidelog.cli.app import app

VERBS = (
    "topic create",
    "topic list",
    "topic describe",
    "topic delete",
    "topic alter",
    "topic reassign",
    "broker remove",
    "produce",
    "consume",
    "elect",
    "quorum describe",
    "pipeline run",
    "audit",
)


@pytest.mark.parametrize("verb", VERBS)
def test_help_teaches(verb: str) -> None:
    shown = CliRunner().invoke(app, [*verb.split(), "--help"])
    assert shown.exit_code == 0
    assert f"tidelog {verb} " in shown.stdout, "an example"
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown.stdout)
    assert "--json" in plain and "--bootstrap" in plain


def test_checking_a_file_teaches_what_a_complaint_looks_like() -> None:
    shown = CliRunner().invoke(app, ["pipeline", "check", "--help"])
    assert "tidelog pipeline check orders.toml" in shown.stdout
    assert "orders.toml:7: sources.orders.shema: is not known here" in shown.stdout


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("topic create t --config retention.ms", "--config: 'retention.ms' is not KEY=VALUE"),
        ("topic create t --replica-assignment 1:x", "--replica-assignment: '1:x' is not a list"),
        ("topic create t --replica-assignment 1:2 --partitions 2", "leave --partitions"),
        ("topic alter t", "say what: --partitions, --config or --delete-config"),
        ("topic alter t --config a=1 --delete-config a", "a is both set and deleted"),
        ("topic reassign t", "say where: --brokers 4,5,6; or --cancel, or --list"),
        ("topic reassign t --brokers 1 --cancel", "say where"),
        ("topic reassign --brokers 1", "say which topics"),
        ("topic reassign t --brokers 1,x", "--brokers: '1,x' is not a list of broker ids"),
        ("topic reassign t u --brokers 1 --partitions 0", "--partitions needs exactly one topic"),
        ("broker remove", "ID"),
        ("elect preferred", "say which partitions, such as orders-0, or --all-topics"),
        ("elect preferred orders-0 --all-topics", "say which partitions"),
        ("elect unclean orders", "'orders' is not TOPIC-PARTITION, such as orders-0"),
        ("produce t --count 1 --key-separator :", "--count makes its own records"),
        ("produce t --header x", "--header: 'x' is not KEY=VALUE"),
        ("produce t --file no/such/file", "--file: "),
        ("consume t --group g --partition 0", "--group: no --partition, --from-time or"),
        ("consume t --group g --from-time 0", "--group: no --partition, --from-time or"),
        ("consume t --group g --until-offset 1", "--group: no --partition, --from-time or"),
        ("consume t --group g --offset 5", "--group: --offset may be earliest or latest"),
        ("group describe --members --state", "choose one of --members and --state"),
        ("group reset g --topic t", "choose one of --to-earliest, --to-latest"),
        ("group reset g --topic t --to-offset 1 --to-latest", "choose one of --to-earliest"),
        ("group reset g --to-latest", "say which topics: --topic TOPIC[:0,1], or --all-topics"),
        ("group reset g --topic t --all-topics --to-latest", "say which topics"),
        ("group reset g --topic t --to-latest --execute --dry-run", "choose one of --dry-run"),
        ("group reset g --topic t:x --to-latest", "--topic: 'x' is not the number of a"),
        ("group reset g --topic t --to-datetime noon", "--to-datetime: 'noon' is neither"),
        ("consume t --offset first", "--offset: 'first' is none of"),
        ("consume t --from-time noon", "--from-time: 'noon' is neither"),
        ("consume t --offset 1 --from-beginning", "choose one of"),
        ("consume t --partition a", "--partition: 'a' is not the number of a partition"),
        ("consume t --print value", "--print: 'value' is none of topic, partition"),
        ("topic list --bootstrap-server nonsense", "'nonsense' is not host:port"),
        ("topic list --command-config no/such/file", "--command-config: no/such/file cannot be"),
        ("elect sideways --all-topics", "sideways"),
        ("produce t --acks 2", "2"),
        ("topic create", "NAME"),
        ("topic list --timeout 0", "--timeout: '0': a duration is longer than nothing"),
        ("topic list --timeout soon", "--timeout: 'soon' is no duration"),
    ],
)
def test_a_mistake_is_named_and_the_code_is_2(line: str, complaint: str) -> None:
    refused = CliRunner().invoke(app, line.split())
    assert refused.exit_code == 2, refused.output
    assert complaint in refused.stderr
    assert not refused.stdout


def test_a_file_of_settings_is_read_and_a_wrong_name_in_it_refused(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("request.timeout.ms=5000\nreqest.timeout.ms=1\n")
    refused = CliRunner().invoke(app, ["topic", "list", "--command-config", str(file)])
    assert refused.exit_code == 2
    assert "reqest.timeout.ms is not a setting of this client" in refused.stderr
    file.write_text("nonsense\n")
    refused = CliRunner().invoke(app, ["topic", "list", "--command-config", str(file)])
    assert refused.exit_code == 2 and "line 1, 'nonsense', is not KEY=VALUE" in refused.stderr
