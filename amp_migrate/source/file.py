"""A file as the tool sees it: bytes in, text to work on, bytes out."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from amp_migrate.source.span import Span
from amp_migrate.words import os_reason

_UTF16 = (b"\xff\xfe", b"\xfe\xff")


class SourceError(Exception):
    """A file that cannot be read or written: `path`, and one clear `reason`."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class UnreadableSource(SourceError):
    """The bytes are no text the tool can work on."""


class UnwritableSource(SourceError):
    """The file kept its old bytes."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a span stands in the file: for a notebook `cell` counts from 1 and lines from the cell.

    `in_file` are the first and the last line of the file itself.
    """

    cell: int | None
    line: int
    end_line: int
    in_file: tuple[int, int]


class Codec(Protocol):
    """How the text of a file becomes its bytes again."""

    def encode(self, text: str) -> bytes:
        """Return the bytes of the file with `text`; what did not change keeps its own bytes."""

    def place(self, span: Span) -> Place:
        """Return where `span` of the text stands in the file."""


@dataclass(frozen=True, slots=True)
class Source:
    """One file: its bytes, and its text with ``\\n`` newlines and no byte-order mark.

    `path` is relative to the working directory where it lies below it. The text of a notebook
    is its code cells, joined.
    """

    path: str
    data: bytes
    text: str
    codec: Codec

    @classmethod
    def read(cls, path: str | Path) -> Source:
        """Read a file. Raises `UnreadableSource`."""
        name = os.fspath(path)
        try:
            data = Path(name).read_bytes()
        except OSError as error:
            raise UnreadableSource(name, os_reason(error)) from error
        return cls.from_bytes(name, data)

    @classmethod
    def from_bytes(cls, name: str, data: bytes) -> Source:
        """Decode the bytes of a file; a name that ends in ``.ipynb`` is a notebook.

        Raises `UnreadableSource`.
        """
        if name.endswith(".ipynb"):
            from amp_migrate.source.notebook import decode_notebook

            text, notebook = decode_notebook(name, data)
            return cls(name, data, text, notebook)
        text, python = decode_python(name, data)
        return cls(name, data, text, python)

    def with_text(self, text: str) -> Source:
        """Return the same file with another text."""
        return replace(self, text=text)

    def encode(self, text: str) -> bytes:
        """Return the bytes of the file with `text` in place of its own text.

        Lines that did not change keep their own bytes. Raises `UnwritableSource` where the
        encoding of the file lacks a character.
        """
        if text == self.text:
            return self.data
        try:
            return self.codec.encode(text)
        except ValueError as error:
            raise UnwritableSource(self.path, str(error)) from error

    def place(self, span: Span) -> Place:
        """Return where `span` of the text stands in the file."""
        return self.codec.place(span)


@dataclass(frozen=True, slots=True)
class Newlines:
    """The lines of a text with ``\\n`` newlines, and the newline each had in the file."""

    lines: tuple[str, ...]
    ends: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Newlines:
        """Read the newlines of a text as it stands in the file."""
        lines = tuple(plain(text).split("\n"))
        if "\r" not in text:
            return cls(lines, ("\n",) * (len(lines) - 1))
        return cls(lines, tuple(re.findall("\r\n|\r|\n", text)))

    def apply(self, text: str) -> str:
        """Return `text` with the newlines of the file; new lines end like the line above them."""
        styles = set(self.ends)
        if len(styles) < 2:
            return text.replace("\n", self.ends[0]) if styles else text
        new = text.split("\n")
        ends = self._aligned(new)[:-1]
        return "".join(line + end for line, end in zip(new, [*ends, ""], strict=True))

    def _aligned(self, new: list[str]) -> list[str]:
        from amp_migrate.source.align import changes

        ends: list[str] = []
        own, at = (*self.ends, self.ends[-1]), 0
        for change in changes(self.lines, new):
            ends += own[at : change.start]
            ends += [own[max(change.start - 1, 0)]] * (change.new_end - change.new_start)
            at = change.end
        return ends + list(own[at:])


def plain(text: str) -> str:
    """Return `text` with ``\\n`` newlines."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


@dataclass(frozen=True, slots=True)
class PythonCodec:
    """Encoding, byte-order mark and newlines of a Python file."""

    encoding: str
    mark: bytes
    newlines: Newlines

    def encode(self, text: str) -> bytes:
        """Return the bytes of the file with `text`."""
        return self.mark + self.newlines.apply(text).encode(self.encoding)

    def place(self, span: Span) -> Place:
        """Return the lines of the text: they are those of the file."""
        return Place(None, span.line, span.end_line, (span.line, span.end_line))


def decode_python(name: str, data: bytes) -> tuple[str, PythonCodec]:
    """Return the text of a Python file, and how to encode it again. Raises `UnreadableSource`."""
    if data.startswith(_UTF16):
        raise UnreadableSource(name, "is UTF-16, which Python does not read")
    if b"\0" in data:
        raise UnreadableSource(name, "holds null bytes")
    encoding, mark = _detect(name, data)
    body = data[len(mark) :]
    try:
        decoded = body.decode(encoding)
        faithful = decoded.encode(encoding) == body
    except (UnicodeError, LookupError) as error:
        raise UnreadableSource(name, f"is not {encoding}: {error}") from error
    if not faithful:
        raise UnreadableSource(name, f"is {encoding}, which does not keep its bytes when written")
    return plain(decoded), PythonCodec(encoding, mark, Newlines.of(decoded))


def _detect(name: str, data: bytes) -> tuple[str, bytes]:
    import tokenize

    head = data[:4096].replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n", 2)[:2]
    lines = iter([line + b"\n" for line in head])
    try:
        encoding, _ = tokenize.detect_encoding(lambda: next(lines))
    except SyntaxError:
        encoding = _declared(name, head)
    if encoding == "utf-8-sig":
        return "utf-8", data[:3]
    return encoding, b""


def _declared(name: str, head: list[bytes]) -> str:
    """Explain why `tokenize` refused the head of a file; "utf-8" where the body will tell better."""
    cookie = next((line for line in head if b"coding" in line), None)
    if cookie is None:
        return "utf-8"
    shown = cookie.decode("ascii", "backslashreplace").strip()
    raise UnreadableSource(name, f"declares an encoding that cannot be used: {shown}")
