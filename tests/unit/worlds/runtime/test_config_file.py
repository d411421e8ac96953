"""A configuration file: three ways to write a name, and every mistake told with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidelog.worlds.runtime.config_file import BadConfiguration, load_settings

GOOD = 'node.id = 1\nlog.dirs = "data"\n'


def write(tmp_path: Path, text: str) -> str:
    path = tmp_path / "broker.toml"
    path.write_text(text)
    return str(path)


def complaints(tmp_path: Path, text: str, *overrides: str) -> list[str]:
    path = write(tmp_path, text)
    with pytest.raises(BadConfiguration) as refused:
        load_settings(path, overrides)
    return [complaint.replace(path, "broker.toml") for complaint in refused.value.complaints]


@pytest.mark.parametrize(
    "text",
    [
        '"log.segment.bytes" = 2097152',
        "log.segment.bytes = 2_097_152",
        'log.segment.bytes = "2097152"',
        "log = {segment = {bytes = 2097152}}",
        "[log]\nsegment.bytes = 2097152",
        "[log.segment]\nbytes = 2097152",
        '[log]\n"segment.bytes" = 2097152  # a comment',
    ],
)
def test_a_name_may_be_quoted_dotted_or_below_a_table(tmp_path: Path, text: str) -> None:
    settings = load_settings(write(tmp_path, GOOD + text), [])
    assert settings.integer("log.segment.bytes") == 2_097_152


def test_lists_numbers_and_truth_keep_their_meaning(tmp_path: Path) -> None:
    text = GOOD + (
        'listeners = [\n  "PLAINTEXT://127.0.0.1:9092",  # one\n'
        '  "OTHER://127.0.0.1:9093",\n]\n'
        'listener.security.protocol.map = "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT"\n'
        "auto.create.topics.enable = false\n"
        'log.cleanup.policy = """compact,delete"""\n'
    )
    settings = load_settings(write(tmp_path, text), [])
    assert [str(listener) for listener in settings.listeners] == [
        "PLAINTEXT://127.0.0.1:9092",
        "OTHER://127.0.0.1:9093",
    ]
    assert settings.boolean("auto.create.topics.enable") is False
    assert settings.value("log.cleanup.policy") == ("compact", "delete")


def test_a_name_may_be_the_beginning_of_another(tmp_path: Path) -> None:
    text = GOOD + "max.connections = 10\nmax.connections.per.ip = 5\n"
    settings = load_settings(write(tmp_path, text), [])
    assert settings.integer("max.connections") == 10
    assert settings.integer("max.connections.per.ip") == 5


def test_every_mistake_is_told_with_its_line(tmp_path: Path) -> None:
    text = (
        "node.id = 1\n"
        "log.segment.byte = 5\n"
        "\n"
        'log.segment.bytes = "many"\n'
        "num.partitions = \n"
        "[auto]\n"
        "create.topics.enable = 3\n"
        "[log]\n"
        "dirs = 1979-05-27\n"
        "flush.interval.ms = [[1]]\n"
    )
    told = complaints(tmp_path, text)
    assert [complaint.split(": ")[0] for complaint in told] == [
        f"broker.toml:{line}" for line in (2, 4, 5, 7, 9, 10)
    ]
    assert "did you mean log.segment.bytes?" in told[0]
    assert "log.segment.bytes" in told[1] and "at least 1048576" in told[1]
    assert "is not TOML" in told[2]
    assert "auto.create.topics.enable" in told[3] and "true or false" in told[3]


def test_values_that_do_not_fit_together_are_told_with_the_line_of_one(tmp_path: Path) -> None:
    text = GOOD + 'listeners = "PLAINTEXT://:9092,X://:9092"\n'
    [told] = complaints(tmp_path, text)
    assert told.startswith("broker.toml:3: listeners: ")
    assert "same port" in told


def test_a_missing_setting_is_told_without_a_line(tmp_path: Path) -> None:
    [told] = complaints(tmp_path, 'log.dirs = "data"\n')
    assert told.startswith("broker.toml: node.id: must be set")


@pytest.mark.parametrize(
    "text",
    ["log.segment.bytes = 5_000_000\n", '"log.segment.bytes" = 5_000_000\n'],
)
def test_the_same_name_twice_is_refused(tmp_path: Path, text: str) -> None:
    [told] = complaints(tmp_path, GOOD + "[log]\nsegment.bytes = 4_000_000\n[log.segment]\n"
                        "bytes = 5_000_000\n")  # fmt: skip
    assert told.startswith("broker.toml:6: log.segment.bytes: was already set at broker.toml:4")
    [told] = complaints(tmp_path, GOOD + text + text)
    assert told.startswith("broker.toml:4: log.segment.bytes: was already set at broker.toml:3")


def test_overrides_are_above_the_file_and_the_later_one_wins(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD + "num.partitions = 2\n")
    overrides = ["num.partitions=3", "num.partitions=4", "broker.rack = a=b "]
    settings = load_settings(path, overrides)
    assert settings.integer("num.partitions") == 4
    assert settings.rack == "a=b"


def test_overrides_that_are_wrong_are_told_as_such(tmp_path: Path) -> None:
    told = complaints(tmp_path, GOOD, "num.partitions=none", "nonsense", "=5", "no.such=1")
    assert len(told) == 4
    assert all(complaint.startswith("--set ") for complaint in told)
    assert any("num.partitions: 'none' is refused" in complaint for complaint in told)


def test_settings_may_come_without_a_file() -> None:
    settings = load_settings(None, ["node.id=7", "log.dirs=a,b"])
    assert settings.node_id == 7
    assert settings.log_dirs == ("a", "b")


def test_an_override_may_repair_what_the_file_says(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD + 'num.partitions = "x"\n')
    assert load_settings(path, ["num.partitions=1"]).integer("num.partitions") == 1


def test_a_file_that_cannot_be_read_is_one_complaint(tmp_path: Path) -> None:
    with pytest.raises(BadConfiguration, match="No such file"):
        load_settings(str(tmp_path / "nothing.toml"), [])
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadConfiguration, match="UTF-8"):
        load_settings(str(tmp_path / "binary.toml"), [])


def test_a_statement_that_never_ends_is_told_with_its_first_line(tmp_path: Path) -> None:
    [told, *_] = complaints(
        tmp_path, GOOD + 'log.cleanup.policy = ["delete",\nnum.partitions = 1\n'
    )
    assert told.startswith("broker.toml:3: is not TOML")


def test_lists_of_tables_are_refused(tmp_path: Path) -> None:
    told = complaints(tmp_path, GOOD + "[[log]]\nsegment.bytes = 5_000_000\n")
    assert told[0].startswith("broker.toml:3: lists of tables")


VOTERS = 'controller.quorum.voters = "1@127.0.0.1:9092,2@127.0.0.1:9093"\n'
SECRET = "thirty-two characters or a few more"
SECRET_LINE = f'tidelog.cluster.secret = "{SECRET}"\n'


def test_several_nodes_need_a_cluster_id_before_their_first_start(tmp_path: Path) -> None:
    text = GOOD.replace("data", str(tmp_path / "data")) + VOTERS + SECRET_LINE
    [complaint] = complaints(tmp_path, text)
    assert "cluster.id: must be set before the first start" in complaint

    settings = load_settings(write(tmp_path, text + 'cluster.id = "orders-cluster"\n'), [])
    assert settings.cluster_id == "orders-cluster"


def test_a_directory_that_knows_its_cluster_is_enough(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "meta.properties").write_text("cluster.id=orders-cluster\n")
    text = GOOD.replace("data", str(tmp_path / "data")) + VOTERS + SECRET_LINE
    assert load_settings(write(tmp_path, text), []).cluster_id is None


def test_a_node_alone_needs_no_cluster_id(tmp_path: Path) -> None:
    alone = GOOD.replace("data", str(tmp_path / "data"))
    assert load_settings(write(tmp_path, alone), []).cluster_id is None
    voter = 'controller.quorum.voters = "1@127.0.0.1:9092"\n'
    assert load_settings(write(tmp_path, alone + voter), []).cluster_id is None


def test_several_nodes_need_a_secret(tmp_path: Path) -> None:
    [complaint] = complaints(tmp_path, GOOD + VOTERS + 'cluster.id = "orders-cluster"\n')
    assert complaint.startswith("broker.toml: tidelog.cluster.secret: must be set, here or in the")

    alone = 'controller.quorum.voters = "1@127.0.0.1:9092"\n'
    assert load_settings(write(tmp_path, GOOD + alone), []).cluster_secret is None


def test_the_secret_may_be_in_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    named = f'tidelog.cluster.secret.file = "{tmp_path / "secret"}"\n'

    assert load_settings(write(tmp_path, GOOD + named), []).cluster_secret == SECRET
    [complaint] = complaints(tmp_path, GOOD + named + SECRET_LINE)
    assert complaint.endswith("tidelog.cluster.secret is set as well; one is enough")


def test_a_file_for_the_secret_that_is_not_there(tmp_path: Path) -> None:
    named = 'tidelog.cluster.secret.file = "/no/such/file"\n'
    [complaint] = complaints(tmp_path, GOOD + named)
    assert complaint.startswith(
        "broker.toml:3: tidelog.cluster.secret.file: /no/such/file: No such"
    )


def test_no_complaint_shows_the_secret(tmp_path: Path) -> None:
    told = complaints(tmp_path, GOOD + 'tidelog.cluster.secret = "hunter2"\n')
    told += complaints(tmp_path, GOOD, "tidelog.cluster.secret=hunter2")
    assert len(told) == 2
    for complaint in told:
        assert "hunter2" not in complaint
        assert "must have at least 32 characters" in complaint
