"""What is known, by the names on the other side of a call."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import partial

from amp_migrate.flow.assumption import NOTHING, Assumption
from amp_migrate.flow.terms import Operand
from amp_migrate.project import Function, Project

_SCOPES = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef)
_DEEPEST = 4  # an object that holds one of its kind would have names without end


def renamed(known: Assumption, names: Mapping[str, str], same: frozenset[str]) -> Assumption:
    """Return the facts whose operands all have a name on the other side of a call, by those names."""
    found = NOTHING
    for fact in known.facts:
        texts = {operand.text for operand in fact.term.operands}
        new = {text: _other_name(text, names, same) for text in texts}
        if all(text and text.count(".") < _DEEPEST for text in new.values()):
            operands = frozenset(
                Operand(str(new[o.text]), o.aspect, o.attribute) for o in fact.term.operands
            )
            found = found.with_fact(fact.term.respelt(operands, partial(_respelt, new)), fact.value)
    return found


def _respelt(names: Mapping[str, str | None], text: str) -> str:
    for old in sorted(names, key=len, reverse=True):
        text = re.sub(rf"(?<![\w.]){re.escape(old)}(?![\w.\[])", str(names[old]), text)
    return text


def same_names(project: Project, call: ast.Call, callee: Function) -> frozenset[str]:
    """Return the names that mean the same on both sides of a call: of the module, and of functions around."""
    module = project.module_of(call)
    if module is not callee.module:
        return frozenset()
    scopes = module.scopes
    here = scopes.scope_of(call)
    around = [callee.scope, *module.tree.ancestors(callee.scope)]
    names = {n for s in around if isinstance(s, _SCOPES) for n in scopes.names(s)}
    return frozenset(n for n in names if scopes.find(here, n) is scopes.find(callee.scope, n))


def _other_name(text: str, names: Mapping[str, str], same: frozenset[str]) -> str | None:
    for old, new in names.items():
        if text == old or text.startswith((f"{old}.", f"{old}[")):
            return new + text[len(old) :]
    return text if root_of(text) in same else None


def root_of(text: str) -> str:
    """Return the variable that a path begins with."""
    return re.split(r"[.\[]", text, maxsplit=1)[0]
