"""Columns are as wide as they must be, and nothing is shown as a dash."""

from __future__ import annotations

from tidelog.cli.text_columns import cell, columns


def test_columns_line_up_without_spaces_at_the_end() -> None:
    text = columns(("topic", "isr"), [("a-long-name", (1, 2)), ("b", ())])
    assert text.splitlines() == ["topic        isr", "a-long-name  1,2", "b            -"]


def test_cells() -> None:
    assert [cell(each) for each in (None, "", (), 0, [1, 2], "x")] == [
        "-",
        "-",
        "-",
        "0",
        "1,2",
        "x",
    ]
