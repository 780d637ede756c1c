"""What `amp.initialize` is given, by itself or through dictionaries of keywords: ``amp.initialize(net, optimizer, **options)``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import argument, outward, tail
from amp_migrate.flow.assumption import Assumption
from amp_migrate.flow.refine import refine
from amp_migrate.flow.terms import term
from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.training.bindings import returned
from amp_migrate.training.origins.meant import meant
from amp_migrate.values.unwritten import is_out_of_sight

_DEFAULT_LEVEL = "O1"
SWITCHES: dict[str, str | bool] = {"enabled": True, "opt_level": _DEFAULT_LEVEL}
"""What switches Apex on, and how, with what holds where nothing is given."""
POSITIONS = {"loss_scale": 8, "min_loss_scale": 12, "max_loss_scale": 13}


def stated(project: Project, module: Module, call: ast.Call, name: str) -> list[ast.expr]:
    """Return what an argument for the loss scale may be, as far as dictionaries that hold it can be read."""
    direct = argument(call, name, POSITIONS[name])
    if direct is not None:
        return [direct]
    options = [k.value for k in call.keywords if k.arg is None]
    seen: set[ast.AST] = set()
    found = [value for node in options for value in _held(project, module, node, name, seen)]
    read = [ast.Subscript(node, ast.Constant(name), ast.Load()) for node in options]
    return [*found, *read] if found else []


def _held(
    project: Project, module: Module, node: ast.expr, name: str | None, seen: set[ast.AST]
) -> Iterator[ast.expr]:
    """Yield what a dictionary may hold under a name; without one, where it is written out, by itself."""
    if node in seen:
        return
    seen.add(node)
    if name is None and (isinstance(node, ast.Dict) or _makes(node)):
        yield node
    elif isinstance(node, ast.Dict):
        for entry, value in zip(node.keys, node.values, strict=True):
            if entry is None:
                yield from _held(project, module, value, name, seen)
            elif isinstance(entry, ast.Constant) and entry.value == name:
                yield value
    elif _makes(node):
        assert isinstance(node, ast.Call)
        yield from (k.value for k in node.keywords if k.arg == name)
    elif isinstance(node, ast.Call):
        for callee in project.callees(node):
            for given in returned(callee):
                yield from _held(project, callee.module, given, name, seen)
    elif isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        bound = (*_elsewhere(project, module, node), *_items(project, module, node))
        for found in (*meant(project, module, node), *bound):
            if found is not None:
                yield from _held(project, project.module_of(found), found, name, seen)
        yield from _put(project, module, node, name, seen)


def _makes(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and tail(node) == "dict"


def _elsewhere(project: Project, module: Module, node: ast.expr) -> Iterator[ast.expr]:
    """Yield what variables of other files, and those of classes, were assigned."""
    if isinstance(node, ast.Attribute):
        for base in project.lookup.expression(module, node.value):
            if isinstance(base, Module | Class):
                scope = base.tree.module if isinstance(base, Module) else base.node
                where = base if isinstance(base, Module) else base.module
                yield from where.scopes.values(scope, node.attr)
        for where in project.modules.values():
            for cls in where.tree.nodes(ast.ClassDef):
                yield from where.scopes.values(cls, node.attr)
    for alias in module.scopes.bound(node) if isinstance(node, ast.Name) else ():
        up = module.tree.parent(alias)
        source = project.lookup.source(module, up) if isinstance(up, ast.ImportFrom) else None
        if isinstance(alias, ast.alias) and isinstance(source, Module):
            yield from source.scopes.values(source.tree.module, alias.name)


def _items(project: Project, module: Module, node: ast.expr) -> Iterator[ast.expr]:
    """Yield what is assigned to an item that is read."""
    for where in project.modules.values() if isinstance(node, ast.Subscript) else ():
        for assign in where.tree.nodes(ast.Assign):
            for target in assign.targets:
                stored = isinstance(target, ast.Subscript)
                if stored and project.values.same(module, node, where, target):
                    yield assign.value


def _put(
    project: Project, module: Module, node: ast.expr, name: str | None, seen: set[ast.AST]
) -> Iterator[ast.expr]:
    """Yield what a dictionary is given under a name, as an item or by an update."""
    same = project.values.same
    for where in project.modules.values():
        for assign in where.tree.nodes(ast.Assign):
            for target in assign.targets:
                if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
                    if target.slice.value == name and same(module, node, where, target.value):
                        yield assign.value
        for call in where.tree.nodes(ast.Call):
            if isinstance(call.func, ast.Attribute) and call.func.attr == "update":
                if same(module, node, where, call.func.value):
                    yield from (k.value for k in call.keywords if k.arg == name)
                    for given in call.args:
                        yield from _held(project, where, given, name, seen)


def given(module: Module, call: ast.Call, name: str, place: int) -> ast.expr | None:
    """Return an argument of a call, by itself or in the one dictionary that a variable holds; None where it is not told."""
    found = argument(call, name, place)
    if found is not None:
        return found
    for keyword in call.keywords:
        if keyword.arg is None and isinstance(keyword.value, ast.Name):
            found = found or _written(module, keyword.value, name)
    return found


def asked(
    project: Project, module: Module, call: ast.Call, name: str = "opt_level"
) -> ast.Call | None:
    """Return what asks the one dictionary that a call unpacks for what Apex goes by, where no file writes it out."""
    found = [keyword.value for keyword in call.keywords if keyword.arg is None]
    if len(found) != 1 or not is_out_of_sight(
        project.values, project.modules.values(), module, found[0]
    ):
        return None
    if any(True for part in outward(found[0]) for _ in _held(project, module, part, None, set())):
        return None
    get = ast.Attribute(found[0], "get", ast.Load())
    default = [ast.Constant(SWITCHES[name])] if name in SWITCHES else []
    return ast.Call(get, [ast.Constant(name), *default], [])


def _written(module: Module, options: ast.Name, key: str) -> ast.expr | None:
    """Return what a variable holds under a key, where nothing else can be put there."""
    scopes = module.scopes
    held, bound = scopes.only_value(options), scopes.bound(options)
    if held is None:
        return None
    values = list(_entries(held).get(key, []))
    for node in scopes.spelt(scopes.owner(options), options.id):
        if node in bound:
            continue
        added = _added(module, node, bound[0])
        if added is None and not _keeps(module, node, key):
            return None
        values += [keyword.value for keyword in added or () if keyword.arg == key]
    return values[0] if len(values) == 1 else None


def _added(module: Module, node: ast.Name, bound: ast.AST) -> list[ast.keyword] | None:
    """Return what ``options.update(key=value)`` puts into a dictionary behind its display; None for any other use."""
    tree = module.tree
    call = tree.parent(tree.parent(node) or node)
    if not isinstance(call, ast.Call) or tail(call) != "update" or call.args:
        return None
    named = all(keyword.arg is not None for keyword in call.keywords)
    beside = isinstance(tree.parent(call), ast.Expr) and tree.block(tree.statement(call)) is (
        tree.block(tree.statement(bound))
    )
    return call.keywords if named and beside and tree.parent(node) is call.func else None


def _keeps(module: Module, node: ast.Name, key: str) -> bool:
    """Tell whether a use of a dictionary leaves what it holds under a key: it is unpacked, or an item of another key."""
    up = module.tree.parent(node)
    if isinstance(up, ast.keyword):
        return up.arg is None
    if not isinstance(up, ast.Subscript) or not isinstance(up.slice, ast.Constant):
        return False
    return isinstance(up.ctx, ast.Load) or up.slice.value != key


def _entries(held: ast.expr) -> dict[object, list[ast.expr]]:
    """Return what a dictionary that is written out holds; a key that is there twice has both values."""
    found: dict[object, list[ast.expr]] = {}
    if isinstance(held, ast.Dict) and all(isinstance(k, ast.Constant) for k in held.keys):
        for entry, value in zip(held.keys, held.values, strict=True):
            assert isinstance(entry, ast.Constant)
            found.setdefault(entry.value, []).append(value)
    elif isinstance(held, ast.Call) and tail(held) == "dict" and not held.args:
        for keyword in held.keywords if all(k.arg is not None for k in held.keywords) else ():
            found.setdefault(keyword.arg, []).append(keyword.value)
    return found


def choice_of(function: Function, level: ast.expr | None) -> ast.IfExp | None:
    """Return the choice of a level that a test makes from O0 and one that casts, also kept in a variable."""
    local = isinstance(level, ast.Name) and function.module.scopes.is_local(level)
    value = function.module.scopes.only_value(level) if level is not None and local else level
    return value if isinstance(value, ast.IfExp) and off_arm(value) is not None else None


def off_arm(choice: ast.IfExp) -> ast.expr | None:
    """Return the arm of a choice from two levels that is O0, where the other one casts."""
    arms = [choice.body, choice.orelse]
    off = [arm for arm in arms if isinstance(arm, ast.Constant) and arm.value == "O0"]
    return off[0] if len(off) == 1 and all(isinstance(a, ast.Constant) for a in arms) else None


def switched(
    on: Assumption | None, node: ast.expr | None, wanted: bool | None
) -> tuple[Assumption | None, list[Assumption]]:
    """Return what holds with AMP on, and the ways of it being off, given an argument that decides."""
    if node is None or on is None:
        return on, []
    if isinstance(node, ast.Constant):
        return (None, [on]) if node.value in ("O0", False) else (on, [])
    spelled = term(node)
    if wanted is not None:
        missed, held = refine(on, node, False), refine(on, node, True)
        return held, [missed] if missed is not None and spelled is not None else []
    if isinstance(node, ast.IfExp):
        off_by = node.body is off_arm(node)
        missed, held = refine(on, node.test, off_by), refine(on, node.test, not off_by)
        return held, [missed] if missed is not None and term(node.test) is not None else []
    if spelled is None:
        return on, []
    off = refine(on, ast.Compare(node, [ast.Eq()], [ast.Constant("O0")]), True)
    level = refine(on, ast.Compare(node, [ast.Eq()], [ast.Constant(_DEFAULT_LEVEL)]), True)
    return on if level is None else level, [] if off is None else [off]


def casts_nothing(call: ast.Call, level: ast.expr | None) -> bool:
    """Tell whether a level casts the models that it is given alone, and there are none."""
    models = argument(call, "models", 0)
    patches = not isinstance(level, ast.Constant) or level.value not in ("O2", "O3")
    return not patches and isinstance(models, ast.List) and not models.elts
