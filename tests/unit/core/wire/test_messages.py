"""The table of messages: every API of the broker, its module and its versions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map, schema_name_map

from tidelog.core.wire import messages
from tidelog.core.wire.headers import FLEXIBLE_FROM
from tidelog.core.wire.messages import MESSAGES, modules_by_api_key
from tidelog.core.wire.schema import Array, Nested, Struct

LEFT_OUT = {22: {6}}
"""Versions of Kafka 4.3 that are not here: InitProducerId's for two-phase commit."""
ADDED = {18: {5}}
"""Versions that Kafka 4.3 does not know: the ApiVersions of clients 4.4."""


@pytest.mark.parametrize("api_key", MESSAGES)
def test_an_api_has_a_request_and_an_answer_in_kafkas_versions(api_key: int) -> None:
    versions = set(schema_name_map[api_key_map[api_key]]) - LEFT_OUT.get(api_key, set())
    expected = (load_request_schema, load_response_schema)

    for message, load in zip(MESSAGES[api_key], expected, strict=True):
        assert message.__name__ == load(api_key, max(versions)).__name__
        assert message.api_key == api_key
        assert set(message.versions) == versions | ADDED.get(api_key, set())
        assert message.flexible_from == FLEXIBLE_FROM[api_key]


def test_every_file_of_the_folder_is_found_by_its_number() -> None:
    folder = Path(messages.__file__).parent
    files = sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")

    assert files == [request.__module__.rpartition(".")[2] for request, _ in MESSAGES.values()]
    assert list(MESSAGES) == sorted(int(name[4:6]) for name in files)
    assert len(MESSAGES) == len(files) > 30


def test_an_api_without_a_file_is_not_known() -> None:
    with pytest.raises(KeyError):
        MESSAGES[4]
    assert 4 not in MESSAGES


def test_two_files_for_one_number_are_refused(tmp_path: Path) -> None:
    (tmp_path / "api_07_one.py").touch()
    (tmp_path / "api_11_other.py").touch()
    (tmp_path / "notes.py").touch()
    assert modules_by_api_key(str(tmp_path)) == {7: "api_07_one", 11: "api_11_other"}

    (tmp_path / "api_7_two.py").touch()
    with pytest.raises(AssertionError, match="two modules for one API key"):
        modules_by_api_key(str(tmp_path))


def structs_below(struct: type[Struct]) -> list[type[Struct]]:
    found = [struct]
    for field in struct.schema:
        kind = field.kind.item if isinstance(field.kind, Array) else field.kind
        if isinstance(kind, Nested):
            found += structs_below(kind.struct)
    return found


@pytest.mark.parametrize("api_key", MESSAGES)
def test_every_field_exists_in_some_version_and_tags_count_from_zero(api_key: int) -> None:
    for message in MESSAGES[api_key]:
        for struct in structs_below(message):
            for field in struct.schema:
                assert any(field.exists_in(v) for v in message.versions), (struct, field.name)
            tags = sorted(field.tag for field in struct.schema if field.tag is not None)
            assert tags == list(range(len(tags))), struct


def test_asking_for_one_api_imports_no_other() -> None:
    program = (
        "import sys; from tidelog.core.wire.messages import MESSAGES; MESSAGES[18];"
        "print(*sorted(m for m in sys.modules if '.api_' in m))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert run.stdout.split() == ["tidelog.core.wire.messages.api_18_api_versions"], run.stderr
