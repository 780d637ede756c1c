"""Where nodes stand and what their text is, held against LibCST's own answers."""

from __future__ import annotations

import libcst as cst
import pytest
from fixture_support import cases
from libcst.metadata import MetadataWrapper, PositionProvider

from amp_migrate.rewrite.ranges import ranges, written

_TEXTS = {
    "decorators and parentheses": "@wrap\ndef f(a, *, b=(1)):\n    return (\n        a\n    )\n",
    "carriage returns": "if x:\r\n    y = '''a\r\nb'''\r\n",
    "nothing": "",
    "no line end": "x = 1;  y = [2,\n 3]",
} | {case.name: text for case in cases()[::40] for text in list(case.before.values())[:1]}


@pytest.mark.parametrize("text", _TEXTS.values(), ids=_TEXTS)
def test_places_and_text(text: str) -> None:
    """Each node stands where LibCST says, in the same order, and the text is the module's code."""
    wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
    theirs = [
        (node, (at.start.line, at.start.column, at.end.line, at.end.column))
        for node, at in wrapper.resolve(PositionProvider).items()
    ]
    assert [(node, tuple(span)) for node, span in ranges(wrapper.module).items()] == theirs
    assert written(wrapper.module) == wrapper.module.code == text
