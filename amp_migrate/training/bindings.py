"""Where the values of names come from within one module: what they are bound to, and what hands out parameters."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from amp_migrate.facts.below import every, with_parts
from amp_migrate.facts.paths import YIELDS, argument, arguments_of, is_super, tail, walk
from amp_migrate.facts.scopes import assigned
from amp_migrate.project import Function, Module, Project
from amp_migrate.training.beliefs import RUNS_FIRST

_TESTS = (ast.BoolOp, ast.Compare, ast.UnaryOp, ast.Name, ast.Attribute, ast.Subscript)
_INITIALIZE = frozenset({"apex.amp.initialize", "apex.amp.frontend.initialize"})


def bound_value(module: Module, binding: ast.AST) -> ast.expr | None:
    """Return what a name is bound to: an assigned value, what a loop goes over, or the context that gives it."""
    value = assigned(module.tree, binding)
    if value is not None:
        return value
    up = _taker(module, binding)
    if isinstance(up, ast.withitem) and isinstance(up.context_expr, ast.Call):
        return up.context_expr
    return (
        _gone_over(up, binding)
        if isinstance(up, ast.For | ast.AsyncFor | ast.comprehension)
        else None
    )


def _gone_over(loop: ast.For | ast.AsyncFor | ast.comprehension, binding: ast.AST) -> ast.expr:
    """Return what a name of a loop comes out of: its own part of ``zip(a, b)``."""
    over, target = loop.iter, loop.target
    if isinstance(over, ast.Call) and isinstance(target, ast.Tuple) and tail(over) == "zip":
        if len(target.elts) == len(over.args):
            for part, given in zip(target.elts, over.args, strict=True):
                if binding in ast.walk(part):
                    return given
    return over


def puts_back(module: Module, binding: ast.AST) -> bool:
    """Tell whether a name gets the value that it held before out of a tuple: ``a, b = pair`` behind ``pair = (a, b)``."""
    display = module.tree.parent(binding)
    statement = module.tree.parent(display) if isinstance(display, ast.Tuple) else None
    if not isinstance(binding, ast.Name) or not isinstance(statement, ast.Assign):
        return False
    assert isinstance(display, ast.Tuple)
    held = statement.value
    made = module.scopes.only_value(held) if isinstance(held, ast.Name) else None
    if not isinstance(made, ast.Tuple) or len(made.elts) != len(display.elts):
        return False
    kept = made.elts[display.elts.index(binding)]
    scopes = module.scopes
    return (
        isinstance(kept, ast.Name)
        and kept.id == binding.id
        and scopes.owner(kept) is scopes.owner(binding)
        and not any(isinstance(e, ast.Starred) for e in (*made.elts, *display.elts))
    )


def values_of(module: Module, name: ast.Name) -> Iterator[ast.expr]:
    """Yield what a variable is bound to anywhere, as far as the text names a value."""
    for binding in module.scopes.bound(name):
        value = bound_value(module, binding)
        if value is not None:
            yield value


def operands(module: Module, node: ast.BinOp | ast.AugAssign) -> list[ast.expr]:
    """Return what an operator works on; for what ``x @= y`` assigns anew, what that is bound to elsewhere."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    target = node.target
    held = list(values_of(module, target)) if isinstance(target, ast.Name) else []
    if not held:
        text = ast.unparse(target)
        assigns = module.tree.nodes(ast.Assign)
        held = [a.value for a in assigns if text in map(ast.unparse, a.targets)]
    return [*(value for value in held if value is not node.value), node.value]


def spelt_out(module: Module, node: ast.expr, within: frozenset[str] = frozenset()) -> ast.expr:
    """Return an expression with what its variables are tested for, where they are bound once; not those it stands `within`."""
    known: dict[ast.AST, ast.expr] = {}
    for part in every(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and part.id not in within:
            value = module.scopes.only_value(part)
            if isinstance(value, _TESTS):
                known[part] = spelt_out(module, value, within | {part.id})
    return with_parts(node, known) if known else node


def unpacked(project: Project, module: Module, binding: ast.AST) -> list[ast.expr]:
    """Return what a name of ``a, b = f()`` may be bound to: its part of what `f` returns, or the call where that is not seen."""
    display = module.tree.parent(binding)
    statement = module.tree.parent(display) if isinstance(display, ast.Tuple) else None
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
        return []
    assert isinstance(display, ast.Tuple)
    place = next(i for i, part in enumerate(display.elts) if part is binding)
    found = list(_parts(project, module, statement.value, place, len(display.elts), set()))
    backs = [back for f in project.callees(statement.value) for back in returned(f)]
    raises = backs and all(isinstance(v, ast.Tuple) and not _is_spread(v) for v in backs)
    return found or ([] if raises else [statement.value])


def _is_spread(display: ast.Tuple | ast.List) -> bool:
    return any(isinstance(item, ast.Starred) for item in display.elts)


def _parts(
    project: Project, module: Module, value: ast.expr, place: int, count: int, seen: set[Function]
) -> Iterator[ast.expr]:
    """Yield what stands at a place of `count` that a value gives, through functions that hand on what others return."""
    if isinstance(value, ast.Tuple) and (len(value.elts) == count or not _is_spread(value)):
        yield from value.elts[place : place + 1] if len(value.elts) == count else ()
        return  # to take apart one of another length raises
    if isinstance(value, ast.IfExp):
        for way in (value.body, value.orelse):
            yield from _parts(project, module, way, place, count, seen)
        return
    if not isinstance(value, ast.Call):
        yield value
        return
    if project.apex(module, value.func) in _INITIALIZE and count == 2:
        yield from _initialized(value, place)
        return
    callees = project.callees(value)
    given = [(f.module, back) for f in callees if f not in seen for back in returned(f)]
    seen.update(callees)
    for where, back in given:
        yield from _parts(project, where, back, place, count, seen)
    if not callees:
        yield value


def _initialized(call: ast.Call, place: int) -> list[ast.expr]:
    """Return the argument that ``amp.initialize`` gives back at a place of its results: models, or optimizers."""
    name = ("models", "optimizers")[place]
    named = [item.value for item in call.keywords if item.arg == name]
    plain = not any(isinstance(given, ast.Starred) for given in call.args[: place + 1])
    return named or (call.args[place : place + 1] if plain else []) or [call]


def wholes(project: Project, function: Function, name: ast.Name) -> list[ast.expr]:
    """Return what a function takes apart anywhere to bind a name."""
    module = function.module
    bindings = module.scopes.bindings(function.scope, name.id)
    taken = (taken_apart(project, module, binding) for binding in bindings)
    return [whole for whole in taken if whole is not None]


def taken_apart(project: Project, module: Module, binding: ast.AST) -> ast.expr | None:
    """Return what an assignment takes apart where it binds a name, at any depth: of ``a, (b, c) = x, given`` for `b` it is `given`."""
    up = _taker(module, binding)
    apart = isinstance(module.tree.parent(binding), ast.Tuple | ast.List)
    if not apart or not isinstance(up, ast.Assign):
        return None
    return own_part(project, module, binding, up.value)


def own_part(project: Project, module: Module, target: ast.AST, value: ast.expr) -> ast.expr:
    """Return the part of a value that a target of an assignment takes, as far as displays and ``amp.initialize`` show it."""
    places: list[int] = []
    up = module.tree.parent(target)
    while isinstance(up, ast.Tuple | ast.List):
        if _is_spread(up):
            return value
        places.append(next(i for i, item in enumerate(up.elts) if item is target))
        target, up = up, module.tree.parent(up)
    for place in reversed(places):
        inner = _item(project, module, value, place)
        if inner is None:
            return value
        value = inner
    return value


def _item(project: Project, module: Module, value: ast.expr, place: int) -> ast.expr | None:
    """Return what stands at a place of a value; None where that does not show."""
    if isinstance(value, ast.Name):
        value = module.scopes.only_value(value) or value
    if isinstance(value, ast.Call) and project.apex(module, value.func) in _INITIALIZE:
        both = argument(value, "optimizers", 1) is not None and place < 2
        found = _initialized(value, place) if both else []
        return found[0] if found and found[0] is not value else None
    if isinstance(value, ast.Tuple | ast.List) and place < len(value.elts):
        return None if _is_spread(value) else value.elts[place]
    return None


def _taker(module: Module, binding: ast.AST) -> ast.AST | None:
    """Return what binds a name, through the displays that take a value apart."""
    up: ast.AST | None = binding
    while isinstance(up, ast.Name | ast.Tuple | ast.List | ast.Starred):
        up = module.tree.parent(up)
    return up


def meant(project: Project, module: Module, func: ast.expr) -> str | None:
    """Return the dotted name of a function of a library, or the name of one that Python has built in."""
    name = project.external(module, func)
    if name is not None or not isinstance(func, ast.Name) or not hasattr(builtins, func.id):
        return name
    bound = module.scopes.bound(func)
    return None if bound else func.id


def run_first(project: Project, module: Module, call: ast.Call) -> ast.expr | None:
    """Return the first argument of a call that runs it: of ``map`` and its like."""
    return call.args[0] if call.args and meant(project, module, call.func) in RUNS_FIRST else None


def base_made(function: Function, call: ast.Call) -> str | None:
    """Return the class of a library whose constructor ``super().__init__(...)`` runs, where it is the only one."""
    func = call.func
    if function.cls is None or not isinstance(func, ast.Attribute) or func.attr != "__init__":
        return None
    known = [name for name in function.cls.externals() if name != "object"]
    return known[0] if len(known) == 1 and is_super(func.value) else None


def named(function: Function, name: str) -> ast.Name | ast.arg | None:
    """Return a mention of a variable in a function, or its parameter of that name."""
    for node in walk(function.scope):
        if isinstance(node, ast.Name) and node.id == name:
            return node
    parameters = arguments_of(function.node.args) if function.node is not None else []
    return next((p for p in parameters if p.arg == name), None)


def is_generator(function: Function) -> bool:
    """Tell whether the body of a function runs only where its result is gone through."""
    return any(isinstance(node, YIELDS) for node in function.own_nodes)


def generators(
    project: Project, call: ast.Call, seen: frozenset[Function] = frozenset()
) -> list[tuple[ast.Call, Function]]:
    """Return the generators that a call makes, or functions that return them, each with the call that names it.

    There are none where the call may give something else.
    """
    found: list[tuple[ast.Call, Function]] = []
    for callee in project.callees(call):
        if is_generator(callee):
            found.append((call, callee))
            continue
        ends = [] if callee in seen else returned(callee)
        made = [
            generators(project, e, seen | {callee}) if isinstance(e, ast.Call) else [] for e in ends
        ]
        if not made or not all(made):
            return []
        found += [pair for pairs in made for pair in pairs]
    return found


def returned(function: Function) -> list[ast.expr]:
    """Return the expressions that a function returns or yields."""
    given = function.module.tree.given.get(function.node, []) if function.node is not None else []
    return list(given)


def is_one_variable(project: Project, name: str, one: Function, other: Function) -> bool:
    """Tell whether a name is the same variable in two functions, of one around both or of their file, or the same file."""
    module = one.module
    if other.module is module and (
        module.scopes.find(one.scope, name) is module.scopes.find(other.scope, name)
    ):
        return True
    found = project.lookup.seen_from(module, one.scope, name)
    same = found == project.lookup.seen_from(other.module, other.scope, name)
    return same and len(found) == 1 and isinstance(found[0], Module)
