"""ApiVersions: the first question of every client, answered whatever its version."""

from __future__ import annotations

from typing import Any

from tests.golden.cases.registry import case
from tests.golden.talk import Talk

VERSIONS = (0, 1, 2, 3, 4)
SOFTWARE: dict[str, Any] = {"client_software_name": "golden", "client_software_version": "1.0"}


@case("ApiVersions", *VERSIONS)
def asked(talk: Talk, version: int) -> None:
    """The APIs and versions, and from version 3 on the features."""
    talk.ask("ApiVersions", version, **(SOFTWARE if version >= 3 else {}))


@case("ApiVersions", 6, 99, -1)
def unknown(talk: Talk, version: int) -> None:
    """An unknown version is answered in the form of version 0 with what is supported."""
    data = talk.header(18, version, flexible=True) + b"\x02a\x02b\x00"
    talk.throw(f"ApiVersions v{version}", data, answer_as=("ApiVersions", 0))


@case("ApiVersions", 3, 4)
def software_name_that_is_invalid(talk: Talk, version: int) -> None:
    """Client software names have a pattern."""
    software: dict[str, Any] = {
        "client_software_name": "no spaces",
        "client_software_version": "1.0",
    }
    talk.ask("ApiVersions", version, **software)


@case("ApiVersions", 3, 4)
def software_name_that_is_empty(talk: Talk, version: int) -> None:
    """A client that does not say what it is."""
    talk.ask("ApiVersions", version, client_software_name="", client_software_version="")


@case("ApiVersions", 3)
def software_version_that_is_invalid(talk: Talk, version: int) -> None:
    """Client software versions have the same pattern."""
    software: dict[str, Any] = {"client_software_name": "golden", "client_software_version": "1 0"}
    talk.ask("ApiVersions", version, **software)


@case("ApiVersions", 3)
def software_name_that_ends_badly(talk: Talk, version: int) -> None:
    """Names begin and end with a letter or digit."""
    for name in ("-golden", "golden.", "gol..den", "g"):
        software: dict[str, Any] = {"client_software_name": name, "client_software_version": "1.0"}
        talk.ask("ApiVersions", version, **software)


@case("ApiVersions")
def asked_again(talk: Talk) -> None:
    """It may be asked at any time and more than once."""
    talk.ask("ApiVersions", 0)
    talk.ask("ApiVersions", 3, **SOFTWARE)
    talk.ask("ApiVersions", 0)


@case("ApiVersions")
def with_unknown_tagged_fields(talk: Talk) -> None:
    """Tagged fields that nobody knows are skipped, in the header and in the body."""
    header = talk.header(18, 3, flexible=False) + b"\x01\x4d\x02hi"
    body = b"\x07golden\x041.0\x01\x63\x03abc"
    talk.throw("tags 77 and 99", header + body, answer_as=("ApiVersions", 3))


@case("ApiVersions")
def with_trailing_bytes(talk: Talk) -> None:
    """Bytes after the end of a request."""
    data = talk.encoded("ApiVersions", 0) + b"more"
    talk.throw("four bytes too many", data, answer_as=("ApiVersions", 0))


@case("ApiVersions")
def truncated(talk: Talk) -> None:
    """A flexible request that ends in the middle of a name."""
    data = talk.encoded("ApiVersions", 3, **SOFTWARE)[:-8]
    talk.throw("eight bytes too few", data, answer_as=("ApiVersions", 3))
