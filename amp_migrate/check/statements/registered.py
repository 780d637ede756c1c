"""Whether functions that Apex cast the arguments of are cast still: where Apex is not initialized any more, it casts none."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from amp_migrate.check.apex.assumed import Initialize
from amp_migrate.check.events.claims import REGISTERS, Claims
from amp_migrate.check.events.sides import Key, Side, key
from amp_migrate.check.events.traces import Difference, Label, Step
from amp_migrate.project import Module
from amp_migrate.project.programs import files_of
from amp_migrate.protocol.faults import Place, Trouble

_CASTING = frozenset(
    f"apex.amp.{prefix}{kind}_function"
    for prefix in ("", "register_")
    for kind in ("float", "half", "promote")
)
_INITIALIZE = "apex.amp.initialize"
_IDLE = "stays with Apex, which casts nothing in a program that does not initialize it any more:"


def idle(
    old: Side, new: Side, every: Sequence[Initialize], claims: Claims
) -> Iterator[tuple[Key, Difference]]:
    """Yield what has Apex cast arguments in files that stay as they are, where a program that runs them leaves Apex."""
    casting = [pair for pair in _casting(old) if _stays(new, pair[0])]
    left = [item.function.module for item in every if casting and not _is_kept(new, item)]
    run = {path for home in dict.fromkeys(left) for path in files_of(old.project, home)}
    for module, node in casting:
        place = Place(module.path, node.lineno)
        if module.path in run and not claims.say(REGISTERS, place):
            label = Label(f"`{ast.unparse(node)}` {_IDLE}")
            difference = Difference((Step(label, place, place),), Trouble.HELD_BACK)
            yield key(old.project.function_of(module, node)), difference


def _casting(side: Side) -> Iterator[tuple[Module, ast.expr]]:
    """Yield what names a function of Apex that casts the arguments of others."""
    project = side.project
    for module, node in project.nodes(ast.Attribute, ast.Name):
        if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            if project.apex(module, node) in _CASTING:
                yield module, node


def _stays(new: Side, module: Module) -> bool:
    known = new.project.modules.get(module.path)
    return known is not None and known.tree.text == module.tree.text


def _is_kept(new: Side, item: Initialize) -> bool:
    """Tell whether the function of an initialize has one still, or never turned casts on."""
    return item.on is None or any(
        new.project.apex(function.module, call.func) == _INITIALIZE
        for function in new.functions.get(key(item.function), ())
        for call in function.calls
    )
