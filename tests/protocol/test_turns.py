"""How often loops over what a dict holds turn."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from amp_migrate.facts.tree import Tree
from amp_migrate.project import build
from amp_migrate.protocol.code.program import program_of
from amp_migrate.protocol.code.turns import Turns

_FIRST = """
class Hook:
    pass
held = {"size": 3}
held["hooks"] = [Hook()]
"""
_MORE = {
    "nothing else": "",
    "another item": 'held["rest"] = [Hook(), Hook()]',
    "another dict with one": 'other = {"hooks": [Hook()]}',
}
_SEVERAL = {
    "put in": 'held["hooks"].append(Hook())',
    "by another name": 'hooks = held["hooks"]\nhooks.append(Hook())',
    "added": 'held["hooks"] += [Hook()]',
    "another list": 'held["hooks"] = [Hook(), Hook()]',
    "updated by a keyword": "held.update(hooks=[Hook(), Hook()])",
    "updated": "held.update(read())",
    "under a name that is not seen": "for key in read():\n    held[key] = []",
    "from a dict": 'held = {"hooks": [Hook(), Hook()]}',
}


def _once(more: str) -> bool:
    text = f'{_FIRST}{dedent(more)}\nfor hook in held["hooks"]:\n    hook()\n'
    project = build({"train.py": Tree("train.py", text)})
    module = next(iter(project.modules.values()))
    loop = list(module.tree.nodes(ast.For))[-1]
    return Turns(program_of(project)).once(module.top, loop)


@pytest.mark.parametrize("more", _MORE.values(), ids=_MORE)
def test_a_list_of_one_in_a_dict_is_gone_through_once(more: str) -> None:
    """A dict holds the list under a name that nothing else gives another list."""
    assert _once(more)


@pytest.mark.parametrize("more", _SEVERAL.values(), ids=_SEVERAL)
def test_a_list_in_a_dict_may_have_several(more: str) -> None:
    """Whatever may put more into the list, or another one in its place, counts."""
    assert not _once(more)
