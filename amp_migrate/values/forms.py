"""Forms of expressions that mean something by themselves: named tuples, values of mappings, a module, the class of an object."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from amp_migrate.facts.paths import path, tail
from amp_migrate.facts.scopes import assigned
from amp_migrate.modules.lookup import Lookup, Meaning
from amp_migrate.modules.model import Class, Module

_OPTIMIZES = frozenset({"step", "zero_grad"})
_TAKES_OPTIMIZER = frozenset({"master_params", "scale_loss", "unscale_"})


def fields(lookup: Lookup, module: Module, func: ast.expr) -> list[str]:
    """Return the attributes of the named tuples that a name of the file makes: ``P = namedtuple("P", ["x", "y"])``."""
    made = module.scopes.only_value(func)
    if not isinstance(made, ast.Call):
        return []
    if "collections.namedtuple" not in lookup.expression(module, made.func):
        return []
    return named_fields(made)


def named_fields(made: ast.Call) -> list[str]:
    """Return the fields that a call of ``namedtuple`` names; nothing where one of them is not written out."""
    if len(made.args) != 2:
        return []
    names = made.args[1]
    if isinstance(names, ast.Constant) and isinstance(names.value, str):
        return names.value.replace(",", " ").split()
    parts = names.elts if isinstance(names, ast.List | ast.Tuple) else []
    found = [part.value for part in parts if isinstance(part, ast.Constant)]
    return [str(name) for name in found] if len(found) == len(parts) else []


def is_module_itself(node: ast.expr) -> bool:
    """Tell whether an expression is ``sys.modules[__name__]``."""
    if not isinstance(node, ast.Subscript) or path(node.value) != "sys.modules":
        return False
    return isinstance(node.slice, ast.Name) and node.slice.id == "__name__"


def class_asked(module: Module, node: ast.expr) -> Class | ast.expr | None:
    """Return the class whose receiver a name of a class method is, or the object whose class ``type(self)`` is."""
    if isinstance(node, ast.Attribute) and node.attr == "__class__":
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
        return node.args[0] if module.scopes.builtin(node.func) == "type" else None
    scope = module.scopes.owner(node) if isinstance(node, ast.Name) else None
    function = module.functions.get(scope) if scope is not None else None
    if function is None or not function.is_class or not function.is_receiver(node):
        return None
    return function.cls


def is_values(node: ast.expr) -> bool:
    """Tell whether an expression is ``mapping.values()``, which gives the values in the order of the keys."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "values"
        and not node.args
    )


def stands_in_turn(module: Module, target: ast.expr, value: ast.expr) -> bool:
    """Tell whether a variable is another name of one optimizer, and elsewhere of another one that is no part of it."""
    others = module.scopes.bound(target) if isinstance(target, ast.Name) else []
    if not isinstance(target, ast.Name) or len(others) < 2:
        return False
    own = spelt(value)
    if own is None or _is_part(own, target.id):
        return False
    reads = module.scopes.reads(module.scopes.owner(target), target.id)
    if not any(_optimizes(module, read) for read in reads):
        return False
    bound = (assigned(module.tree, b) for b in others if b is not target)
    texts = (spelt(given) for given in bound if given is not None)
    return any(t and not _is_part(t, own) and not _is_part(own, t) for t in texts)


def _optimizes(module: Module, name: ast.Name) -> bool:
    """Tell whether a variable is used there as an optimizer is."""
    up = module.tree.parent(name)
    if isinstance(up, ast.Attribute):
        return up.attr in _OPTIMIZES
    return isinstance(up, ast.Call) and tail(up) in _OPTIMIZES | _TAKES_OPTIMIZER


def spelt(node: ast.expr) -> str | None:
    """Return how an object is spelt that has a name: a path, or an item under a constant key."""
    held = node
    while isinstance(held, ast.Attribute | ast.Subscript):
        if isinstance(held, ast.Subscript) and not isinstance(held.slice, ast.Constant):
            return None
        held = held.value
    return ast.unparse(node) if isinstance(held, ast.Name) else None


def _is_part(text: str, whole: str) -> bool:
    return text == whole or text.startswith((f"{whole}.", f"{whole}["))


def below(meanings: Iterable[Meaning]) -> tuple[Class, ...]:
    """Return the classes that are derived straight from those that a name means."""
    return tuple(sub for cls in meanings if isinstance(cls, Class) for sub in cls.children)
