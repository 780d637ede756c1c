"""Bytes in, bytes out: what was not edited keeps its bytes, and a write is all or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amp_migrate.source.file import Source, UnreadableSource, UnwritableSource
from amp_migrate.source.span import Span


def source(data: bytes) -> Source:
    return Source.from_bytes("a.py", data)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"x = 1", id="no final newline"),
        pytest.param(b"x = 1\r\ny = 2\r\n", id="crlf"),
        pytest.param(b"x = 1\ry = 2\r", id="cr"),
        pytest.param(b"x = 1\r\ny = 2\nz = 3\r", id="mixed"),
        pytest.param(b"\xef\xbb\xbfx = 1\n", id="byte-order mark"),
        pytest.param(b"# coding: latin-1\ns = '\xe9'\n", id="latin-1"),
        pytest.param(b"#!/usr/bin/python\n# -*- coding: cp1252 -*-\ns = '\x80'\n", id="cp1252"),
        pytest.param("# coding: shift_jis\ns = 'テスト'\n".encode("shift_jis"), id="shift_jis"),
        pytest.param(b"x = 1\n\x0c\ndef f(): pass\n", id="form feed"),
        pytest.param("s = '\u2028\x85'\n".encode(), id="separators that are no newlines"),
    ],
)
def test_text_has_plain_newlines_and_encodes_to_the_same_bytes(data: bytes) -> None:
    """Reading and writing back changes nothing, whatever the variant."""
    read = source(data)

    assert "\r" not in read.text
    assert not read.text.startswith("\ufeff")
    assert read.codec.encode(read.text) == data


@given(st.text(alphabet="ab é\n\r\x0c", max_size=60))
def test_any_text_round_trips_through_the_codec(text: str) -> None:
    data = text.encode()

    assert source(data).codec.encode(source(data).text) == data


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (b"a\r\nb\r\n", "a\nnew\nb\n", b"a\r\nnew\r\nb\r\n"),
        (b"a\r\nb\nc\r\n", "a\nnew\nb\nc\n", b"a\r\nnew\r\nb\nc\r\n"),
        (b"a\nb\r\nc\n", "a\nb\nnew\nc\n", b"a\nb\r\nnew\r\nc\n"),
        (b"a\nb\r\nc", "b\nc\nd", b"b\r\nc\r\nd"),
        (b"a\nb\r\nc", "b\nc\n", b"b\r\nc\r\n"),
        (b"a\r\nb\n", "new\na\nb\n", b"new\r\na\r\nb\n"),
        (b"\xef\xbb\xbfa\r", "a\nb\n", b"\xef\xbb\xbfa\rb\r"),
        (
            b"# coding: latin-1\n'\xe9'\n",
            "# coding: latin-1\n'\xe9'\nx\n",
            b"# coding: latin-1\n'\xe9'\nx\n",
        ),
        (b"a", "a\nb", b"a\nb"),
    ],
)
def test_new_lines_end_like_the_line_above_and_old_ones_as_before(
    before: bytes, after: str, expected: bytes
) -> None:
    assert source(before).encode(after) == expected


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"x = '\xe9'\n", "is not utf-8"),
        (b"\xff\xfex\x00", "UTF-16"),
        (b"x = 1\x00\n", "null bytes"),
        (
            b"# coding: no-such-code\n",
            "declares an encoding that cannot be used: # coding: no-such",
        ),
        (b"# coding: rot13\n", "not rot13"),
        (b"\xef\xbb\xbf# coding: latin-1\n", "declares an encoding that cannot be used"),
        (b"# coding: utf-7\n+AGE-\n", "does not keep its bytes"),
    ],
)
def test_bytes_that_are_no_python_text_give_one_reason(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableSource) as caught:
        source(data)

    assert reason in caught.value.reason
    assert "\n" not in str(caught.value)


def test_cookie_counts_in_the_second_line_of_a_file_with_cr_newlines() -> None:
    """Python splits lines on a lone carriage return, so the cookie is found there too."""
    assert source(b"#!python\r# coding: latin-1\rs = '\xe9'\r").text.endswith("'é'\n")


def test_text_the_encoding_lacks_is_refused() -> None:
    with pytest.raises(UnwritableSource, match="latin-1"):
        source(b"# coding: latin-1\n").encode("# coding: latin-1\n'\u20ac'\n")


def test_missing_file_is_unreadable(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSource, match="no such file"):
        Source.read(tmp_path / "missing.py")


def test_places_of_a_python_file_are_its_own_lines() -> None:
    place = source(b"a\nb\n").place(Span(2, 0, 2, 1))

    assert (place.cell, place.line, place.end_line) == (None, 2, 2)
