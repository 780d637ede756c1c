"""Notebooks: one text for the engine, and nothing but the edited cells changes in the file."""

from __future__ import annotations

import json

import pytest

from amp_migrate.source.file import Source, UnreadableSource, UnwritableSource
from amp_migrate.source.span import Span

CELLS = [
    ("markdown", "# Title with apex"),
    ("code", "%matplotlib inline\nimport torch\nfrom apex import amp"),
    ("code", "%%bash\npip install -v apex"),
    ("code", "if 1:\n    !nvidia-smi \\\n      --list\n    files = !ls\nx = '\\u00e9 %d' % 1"),
    ("code", "%%time\ny = x\ny?"),
    ("code", ""),
    ("code", "z = 'é'\n"),
]


def document(cells: list[tuple[str, str]], as_text: bool = False) -> dict[str, object]:
    def cell(kind: str, text: str) -> dict[str, object]:
        lines = text.splitlines(keepends=True)
        extra = {"outputs": [], "execution_count": None} if kind == "code" else {}
        return {"cell_type": kind, "metadata": {}, **extra, "source": text if as_text else lines}

    return {
        "cells": [cell(kind, text) for kind, text in cells],
        "metadata": {"kernelspec": {"language": "python", "name": "python3"}, "x": 1.0e-05},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def read(data: bytes) -> Source:
    return Source.from_bytes("a.ipynb", data)


LAYOUTS = {
    "jupyter": json.dumps(document(CELLS), indent=1, ensure_ascii=False) + "\n",
    "ascii": json.dumps(document(CELLS), indent=2) + "\n",
    "compact": json.dumps(document(CELLS), separators=(",", ":")),
    "one line": json.dumps(document(CELLS)),
    "tabs": json.dumps(document(CELLS), indent="\t", ensure_ascii=False),
    "sorted": json.dumps(document(CELLS), indent=1, sort_keys=True),
    "text": json.dumps(document(CELLS, as_text=True), indent=1) + "\n\n",
    "crlf": json.dumps(document(CELLS), indent=1).replace("\n", "\r\n"),
    "byte-order mark": "\ufeff" + json.dumps(document(CELLS), indent=1, ensure_ascii=False),
}


def test_text_is_the_python_of_the_cells_with_magics_hidden() -> None:
    text = read(LAYOUTS["jupyter"].encode()).text

    assert text.split("\n") == [
        '"magic:0"',
        "import torch",
        "from apex import amp",
        "# %% [cell 4]",
        "if 1:",
        '    "magic:0"',
        '      #"magic:1"',
        '    files = "magic:2"',
        "x = '\\u00e9 %d' % 1",
        "# %% [cell 5]",
        '"magic:0"',
        "y = x",
        '"magic:1"',
        "# %% [cell 6]",
        "",
        "# %% [cell 7]",
        "z = 'é'",
        "",
    ]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_text_encodes_to_the_same_bytes(layout: str) -> None:
    data = LAYOUTS[layout].encode()
    source = read(data)

    assert source.codec.encode(source.text) == data


@pytest.mark.parametrize("layout", LAYOUTS)
def test_edit_changes_one_cell_and_nothing_else(layout: str) -> None:
    """The file equals the one that the same writer would have made of the new cells."""
    source = read(LAYOUTS[layout].encode())
    new = source.text.replace("from apex import amp", "a = 1\nb = 'ü'").replace("y = x", "y = 2")

    written = source.encode(new).decode()

    cells = json.loads(written.removeprefix("\ufeff"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells]
    assert sources == [
        text.replace("from apex import amp", "a = 1\nb = 'ü'").replace("y = x", "y = 2")
        for _, text in CELLS
    ]
    old_lines, new_lines = LAYOUTS[layout].split("\n"), written.split("\n")
    if layout not in ("compact", "one line", "text"):
        assert [line for line in new_lines if line not in old_lines] == [
            line for line in new_lines if any(mark in line for mark in ("a = 1", "b = '", "y = 2"))
        ]


def test_reindented_magics_come_back_with_their_block() -> None:
    source = read(json.dumps(document([("code", "!ls \\\n  -l\nx = apex")]), indent=1).encode())

    written = source.encode('if 1:\n    "magic:0"\n      #"magic:1"\n    x = 1')

    cell = json.loads(written)["cells"][0]
    assert "".join(cell["source"]) == "if 1:\n    !ls \\\n      -l\n    x = 1"


@pytest.mark.parametrize(
    "cell", ["!ls \\", "!ls \\\n  -l \\", "!a \\\n  b\n!c \\", "!b \\\nx =\n!c\n"]
)
def test_magic_that_goes_on_behind_the_end_of_its_cell(cell: str) -> None:
    """The shell takes it as it is."""
    data = json.dumps(document([("code", f"import apex\n{cell}"), ("code", "x = 1")])).encode()
    source = read(data)

    assert source.codec.encode(source.text) == data
    changed = json.loads(source.encode(source.text.replace("import apex\n", "")))["cells"]
    assert ["".join(c["source"]) for c in changed] == [cell, "x = 1"]


def test_cell_that_lost_every_line_is_empty() -> None:
    cells = [("code", "import torch"), ("code", "from apex import amp"), ("code", "x = 1")]
    source = read(json.dumps(document(cells), indent=1).encode())

    written = source.encode(source.text.replace("from apex import amp\n", ""))

    assert json.loads(written)["cells"][1]["source"] == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a = 1\nb = 2", "an edit would join two cells"),
        ('a = 1\n"magic:0"\n"magic:0"\n# %% [cell 2]\nb = 2', "repeat or cut a magic"),
        ('a = 2\n# %% [cell 2]\n"magic:0"', "repeat or cut a magic"),
    ],
)
def test_edit_that_cannot_be_split_is_refused(text: str, reason: str) -> None:
    source = read(json.dumps(document([("code", "a = 1\n!ls"), ("code", "b = 2")])).encode())

    with pytest.raises(UnwritableSource, match=reason):
        source.encode(text)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"cells": [', "is not a valid notebook: Expecting"),
        (b"\xff\xfe", "is not a valid notebook"),
        (b"[]", "has no list of cells"),
        (b'{"worksheets": [], "nbformat": 3}', "is not a notebook of format 4"),
        (b'{"cells": [{"cell_type": "code"}]}', "cell 1 has no source"),
        (b'{"cells": [3]}', "cell 1 has no source"),
        (b'{"cells": [{"cell_type": "code", "source": [1]}]}', "cell 1 has no source"),
        (
            b'{"cells": [{"cell_type": "code", "source": "from apex import amp\\nprint x"}]}',
            "cell 1 does not parse: Missing parentheses",
        ),
        (
            b'{"cells": [{"cell_type": "code", "source": "%%writefile a.py\\nfrom apex import amp"}]}',
            "cell 1 writes a script that imports Apex",
        ),
        (
            b'{"cells": [{"cell_type": "code", "source": "# %% [cell 9]"}]}',
            "cell 1 holds a line the tool marks cells with",
        ),
    ],
)
def test_invalid_notebook_gives_one_line(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableSource) as caught:
        read(data)

    assert reason in caught.value.reason
    assert "\n" not in caught.value.reason


def test_cell_without_apex_that_does_not_parse_is_left_out() -> None:
    source = read(json.dumps(document([("code", "print x"), ("code", "y = 1")])).encode())

    assert source.text == "y = 1"


def test_notebook_of_another_language_has_no_text() -> None:
    data = b'{"cells": [{"cell_type": "code", "source": "apex <- 1"}], "metadata": {"language_info": {"name": "R"}}}'

    assert read(data).text == ""
    assert read(data).encode("") == data


def test_last_of_two_equal_keys_is_the_source() -> None:
    """JSON readers take the last one, so the edit must go there."""
    source = read(b'{"cells": [{"cell_type": "code", "source": "a", "source": "b"}]}')

    assert source.text == "b"
    assert source.encode("c") == b'{"cells": [{"cell_type": "code", "source": "a", "source": "c"}]}'


def test_places_are_cells_and_their_lines() -> None:
    source = read(LAYOUTS["jupyter"].encode())

    place = source.place(Span(8, 4, 9, 1))
    assert (place.cell, place.line, place.end_line) == (4, 4, 5)
    assert source.place(Span(3, 0, 3, 5)).cell == 2
