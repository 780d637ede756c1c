"""A Jupyter notebook as one text: its code cells joined, and split back without touching the rest."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from amp_migrate.source.file import Newlines, Place, UnreadableSource, plain
from amp_migrate.source.magics import LEFTOVER, Masked, NotPython, mask
from amp_migrate.source.span import Span

_MARKER = re.compile(r"^[ \t]*# %% \[cell \d+\]$", re.MULTILINE)
_SPACE = re.compile(r"[ \t\n\r]*")
_value_at = json.JSONDecoder().raw_decode


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of Python: its number among all cells from 1, and where its source stands in the JSON."""

    number: int
    start: int
    end: int
    newlines: Newlines
    masked: Masked


@dataclass(frozen=True, slots=True)
class NotebookCodec:
    """The JSON text of a notebook and its cells of Python; `starts` are their lines in the text."""

    mark: bytes
    document: str
    cells: tuple[Cell, ...]
    starts: tuple[int, ...]

    def encode(self, text: str) -> bytes:
        """Return the notebook with the cells of `text`; other cells and all else keep their bytes.

        Raises ValueError where an edit reaches over the border of a cell.
        """
        parts = _split(text)
        if len(parts) != len(self.cells):
            raise ValueError("an edit would join two cells")
        done, at = [], 0
        for cell, part in zip(self.cells, parts, strict=True):
            if part == cell.masked.text:
                continue
            source = cell.newlines.apply(cell.masked.restore(part))
            done += [self.document[at : cell.start], _rendered(source, self.document, cell)]
            at = cell.end
        return self.mark + "".join([*done, self.document[at:]]).encode()

    def place(self, span: Span) -> Place:
        """Return the cell of a span of the text, and its lines counted from the start of the cell."""
        index = bisect_right(self.starts, span.line) - 1
        first = self.starts[index]
        cell, line, end_line = self.cells[index], span.line - first + 1, span.end_line - first + 1
        return Place(
            cell.number, line, end_line, (self._row(cell, line), self._row(cell, end_line))
        )

    def _row(self, cell: Cell, line: int) -> int:
        """Return the line of the document in which a line of a cell stands."""
        at = cell.start
        for item in _items(self.document, at) if self.document[at] == "[" else ():
            at = item
            line -= json.loads(self.document[item : _value_at(self.document, item)[1]]).count("\n")
            if line < 1:
                break
        return self.document.count("\n", 0, at) + 1


def decode_notebook(name: str, data: bytes) -> tuple[str, NotebookCodec]:
    """Return the code of a notebook as one text, and how to encode it again.

    Raises `UnreadableSource` where the file is no notebook, or a cell that mentions Apex is no Python.
    """
    mark = data[:3] if data.startswith(b"\xef\xbb\xbf") else b""
    try:
        document = data[len(mark) :].decode()
        content = json.loads(document)
    except ValueError as error:
        raise UnreadableSource(name, f"is not a valid notebook: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("cells"), list):
        raise UnreadableSource(name, "is not a notebook of format 4: it has no list of cells")
    if not _is_python(content):
        return "", NotebookCodec(mark, document, (), (1,))
    cells = tuple(_cells(name, document))
    parts = [cell.masked.text for cell in cells]
    starts, line = [], 1
    for part in parts:
        starts.append(line)
        line += part.count("\n") + 2
    markers = [f"\n# %% [cell {cell.number}]\n" for cell in cells[1:]]
    text = "".join(mark + part for mark, part in zip(["", *markers], parts, strict=False))
    return text, NotebookCodec(mark, document, cells, tuple(starts))


def misplaced_cell(before: str, after: str) -> str | None:
    """Return why `after` cannot be split into the cells of `before`; None where it can."""
    if _MARKER.findall(before) == _MARKER.findall(after):
        return None
    return "would change code across the border of two cells"


def _is_python(content: dict[str, object]) -> bool:
    metadata = content.get("metadata")
    if not isinstance(metadata, dict):
        return True
    for table, key in (("kernelspec", "language"), ("language_info", "name")):
        entry = metadata.get(table)
        if isinstance(entry, dict) and isinstance(entry.get(key), str):
            return "python" in entry[key].lower()
    return True


def _split(text: str) -> list[str]:
    """Return the cells of a joined text; a cell that lost all its lines is empty."""
    parts: list[list[str]] = [[]]
    for line in text.split("\n"):
        if _MARKER.match(line):
            parts.append([])
        else:
            parts[-1].append(line)
    return ["\n".join(part) for part in parts]


def _cells(name: str, document: str) -> Iterator[Cell]:
    at = dict(_members(document, _space(document, 0)))["cells"]
    for number, start in enumerate(_items(document, at), 1):
        cell, _ = _value_at(document, start)
        if not isinstance(cell, dict) or not _is_source(cell.get("source")):
            raise UnreadableSource(name, f"is not a valid notebook: cell {number} has no source")
        if cell.get("cell_type") != "code":
            continue
        place = dict(_members(document, start))["source"]
        source = cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
        text = plain(source)
        if _MARKER.search(text) or LEFTOVER.search(text):
            raise UnreadableSource(name, f"cell {number} holds a line the tool marks cells with")
        try:
            masked = mask(text)
        except NotPython as error:
            raise UnreadableSource(name, f"cell {number} {error}") from error
        if masked is not None:
            yield Cell(number, place, _value_at(document, place)[1], Newlines.of(source), masked)


def _is_source(value: object) -> bool:
    if isinstance(value, list):
        return all(isinstance(line, str) for line in value)
    return isinstance(value, str)


def _rendered(source: str, document: str, cell: Cell) -> str:
    """Return `source` as JSON, in the layout the source of the cell had."""
    ascii_only = document.isascii()
    if document[cell.start] != "[":
        return json.dumps(source, ensure_ascii=ascii_only)
    spans = [(at, _value_at(document, at)[1]) for at in _items(document, cell.start)]
    own = {json.loads(document[start:end]): document[start:end] for start, end in spans}
    lines = re.findall(r"[^\n]*\n|[^\n]+", source)
    if not lines or not spans:
        return json.dumps(lines, ensure_ascii=ascii_only)
    opening, closing = document[cell.start : spans[0][0]], document[spans[-1][1] : cell.end]
    between = document[spans[0][1] : spans[1][0]] if len(spans) > 1 else "," + opening[1:]
    values = [own.get(line) or json.dumps(line, ensure_ascii=ascii_only) for line in lines]
    return opening + between.join(values) + closing


def _space(document: str, at: int) -> int:
    match = _SPACE.match(document, at)
    return match.end() if match else at


def _items(document: str, at: int) -> Iterator[int]:
    """Yield where each value of the JSON array at `at` starts."""
    at = _space(document, at + 1)
    while document[at] != "]":
        yield at
        at = _space(document, _value_at(document, at)[1])
        if document[at] == ",":
            at = _space(document, at + 1)


def _members(document: str, at: int) -> Iterator[tuple[str, int]]:
    """Yield each key of the JSON object at `at`, and where its value starts."""
    at = _space(document, at + 1)
    while document[at] != "}":
        key, at = _value_at(document, at)
        at = _space(document, _space(document, at) + 1)
        yield key, at
        at = _space(document, _value_at(document, at)[1])
        if document[at] == ",":
            at = _space(document, at + 1)
