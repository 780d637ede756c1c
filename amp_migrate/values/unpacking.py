"""Collections that are written out and unpacked into calls: ``parts = (model, amp)``, then ``train(*parts)``."""

from __future__ import annotations

import ast

from amp_migrate.facts.scopes import Scopes

_LASTING = ast.alias | ast.arg | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def unpacked(scopes: Scopes, star: ast.expr) -> list[ast.expr]:
    """Return the items of what a call unpacks, where they are written out and nothing else gets hold of them."""
    held = scopes.only_value(star) if isinstance(star, ast.Name) else star
    if not isinstance(held, ast.Tuple | ast.List) or unpackings(scopes, held) is None:
        return []
    return [] if any(isinstance(item, ast.Starred) for item in held.elts) else held.elts


def unpackings(scopes: Scopes, held: ast.Tuple | ast.List) -> list[ast.Call] | None:
    """Return the calls that unpack a collection as it is written out; None where it may go elsewhere."""
    tree = scopes.tree
    up = tree.parent(held)
    places: list[ast.expr] = [held]
    if isinstance(up, ast.Assign | ast.AnnAssign):
        target = up.targets[0] if isinstance(up, ast.Assign) else up.target
        if not isinstance(target, ast.Name) or scopes.only_value(target) is not held:
            return None
        if isinstance(up, ast.Assign) and len(up.targets) > 1:
            return None
        owner = scopes.owner(target)
        places = [name for name in scopes.spelt(owner, target.id) if name is not target]
    calls: list[ast.Call] = []
    for place in places:
        star = tree.parent(place)
        call = tree.parent(star) if isinstance(star, ast.Starred) else None
        if not isinstance(call, ast.Call):
            return None
        calls.append(call)
    return calls


def lasts(scopes: Scopes, item: ast.expr) -> bool:
    """Tell whether an item is the same wherever its text is read: a constant, or what is named once."""
    bound = scopes.bound(item) if isinstance(item, ast.Name) else []
    return isinstance(item, ast.Constant) or (len(bound) == 1 and isinstance(bound[0], _LASTING))
