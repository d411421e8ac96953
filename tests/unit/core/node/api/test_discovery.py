"""The APIs are found by their files, and each file says what kind of API it is."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

from tidelog.core.node import api
from tidelog.core.node.api import HANDLERS, read_api
from tidelog.core.wire.messages import MESSAGES

BETWEEN_NODES = {52, 53, 54, 56, 58, 59, 62, 63, 67, 73}
FORWARDED = {19, 20, 37, 43, 44, 46, 55, 57, 64}
WAITS_FOR_METADATA = {2, 3, 10, 23, 32, 60, 61, 75}


def described(**content: Any) -> ModuleType:
    """A module of API 99 with this content besides what every API has."""
    content = {"API_KEY": 99, "VERSIONS": range(2, 4), "handle": print, **content}
    return cast("ModuleType", SimpleNamespace(__name__="api_99_other", **content))


def test_every_file_of_the_folder_is_served_under_its_number() -> None:
    files = [path.stem for path in Path(api.__file__).parent.glob("api_*.py")]

    assert list(HANDLERS) == sorted(int(name[4:6]) for name in files)
    assert len(HANDLERS) == len(files)


@pytest.mark.parametrize("api_key", HANDLERS)
def test_what_is_served_can_be_read_and_answered(api_key: int) -> None:
    request, response = MESSAGES[api_key]

    assert set(HANDLERS[api_key].versions) <= set(request.versions) & set(response.versions)


def test_the_kinds_of_the_apis_are_kafkas() -> None:
    """Clients are not offered what nodes say to each other; the controller gets what it decides."""
    between_nodes = {key for key, served in HANDLERS.items() if not served.advertised}
    forwarded = {key for key, served in HANDLERS.items() if served.is_forwarded}
    waiting = {key for key, served in HANDLERS.items() if served.waits_for_metadata}

    assert between_nodes >= BETWEEN_NODES
    assert forwarded >= FORWARDED
    assert waiting >= WAITS_FOR_METADATA
    assert between_nodes.isdisjoint(forwarded | waiting)
    assert waiting.isdisjoint(forwarded), "the controller knows the cluster"
    assert waiting.isdisjoint({0, 1}), "what is written or fetched may be large"
    assert [key for key, served in HANDLERS.items() if served.answers_any_version] == [18]


def test_an_api_without_flags_is_answered_where_it_arrives() -> None:
    found = read_api(described(), api_key=99)

    assert found.versions == found.advertised == range(2, 4)
    assert not found.is_forwarded
    assert not found.waits_for_metadata
    assert not found.answers_any_version
    assert found.forward is None


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"FORWARED": True}, "no flag"),
        ({"API_KEY": 98}, "another API key"),
        ({"forward": print}, "not forwarded"),
    ],
)
def test_a_mistake_in_a_file_stops_the_start(content: dict[str, Any], reason: str) -> None:
    with pytest.raises(AssertionError, match=reason):
        read_api(described(**content), api_key=99)
