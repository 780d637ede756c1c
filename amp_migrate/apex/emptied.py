"""An attribute that is None until amp is stored in it: it holds a disabled GradScaler from the start instead."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from amp_migrate.apex.sites import HANDED_ON, Site
from amp_migrate.facts.constants import is_none, string
from amp_migrate.facts.paths import path
from amp_migrate.facts.scopes import targets_of
from amp_migrate.facts.tree import Tree
from amp_migrate.plan.cannot import Cannot
from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.project.once import once
from amp_migrate.project.reach import where_read
from amp_migrate.project.relatives import family

_USES = (ast.Attribute, ast.If, ast.IfExp, ast.BoolOp, ast.UnaryOp, ast.Assert, ast.While)


@dataclass(frozen=True, eq=False, slots=True)
class Empty:
    """``self.amp = None`` in the constructor of the class whose objects get amp, which may set others beside."""

    function: Function
    statement: ast.Assign | ast.AnnAssign
    target: ast.expr
    value: ast.expr

    @property
    def owner(self) -> Class:
        """The class that defines the constructor."""
        if self.function.cls is None:
            raise ValueError("a constructor stands in a class")
        return self.function.cls

    @property
    def is_alone(self) -> bool:
        """Whether the statement sets nothing else."""
        return self.statement.value is self.value and self.target in targets_of(self.statement)


def emptied(project: Project, site: Site, target: ast.Attribute) -> list[Empty]:
    """Return the constructors that set an attribute to None which amp is stored in.

    Raises `Cannot` where something else may ask what the attribute holds.
    """
    found = [
        Empty(project.function_of(module, node), node, part, value)
        for module, node in _assignments(project)
        for part, value in parts_of(node)
        if is_none(value) and isinstance(part, ast.Attribute) and part.attr == target.attr
    ]
    owners = _owners(project, site, target)
    found = [e for e in found if not _is_of_another(project, e.function, e.target, owners)]
    if not found:
        return []
    owner = found[0].function.cls
    if (
        owner is not None
        and all(_in_constructor(empty, family(owner), site) for empty in found)
        and _is_object_of(project, site, target, family(owner))
        and _only_asked(project, target.attr, found, owners, family(owner))
    ):
        return found
    raise asked_otherwise(found[0].function.module, found[0].statement, found[0].target)


def _assignments(project: Project) -> Iterator[tuple[Module, ast.Assign | ast.AnnAssign]]:
    yield from project.nodes(ast.Assign)
    yield from project.nodes(ast.AnnAssign)


def parts_of(node: ast.Assign | ast.AnnAssign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what an assignment sets with what each part gets, as far as both sides are written out."""
    queue = [(target, node.value) for target in targets_of(node)]
    for target, value in queue:
        if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
            if len(target.elts) == len(value.elts):
                queue += zip(target.elts, value.elts, strict=True)
        elif value is not None:
            yield target, value


def asked_otherwise(module: Module, node: ast.AST, attribute: ast.expr) -> Cannot:
    """Return why a program is left that asks what an attribute with amp or None holds."""
    name = ast.unparse(attribute)
    return Cannot(
        "AMP909",
        module,
        node,
        f"`{name}` holds amp or None, and the program asks which of the two in ways that cannot all be followed",
        f"keep a flag for AMP in place of `{name}` and import amp where it is used, then run again",
    )


@once
def may_be_none(project: Project) -> frozenset[str]:
    """Return the names of the attributes that are None somewhere in a project, or get what a caller gives as None."""
    found: set[str] = set()
    for module, node in _assignments(project):
        in_class = isinstance(module.tree.holder(node), ast.ClassDef)
        for target, value in parts_of(node):
            name = target.attr if isinstance(target, ast.Attribute) else ""
            name = target.id if in_class and isinstance(target, ast.Name) else name
            function = project.function_of(module, node)
            if name and name not in found and _gives_none(project, function, value, set()):
                found.add(name)
    for _, call in project.nodes(ast.Call):
        if path(call.func) == "setattr" and len(call.args) == 3 and is_none(call.args[2]):
            found |= {string(call.args[1]) or ""}
    return frozenset(found)


def _gives_none(
    project: Project, function: Function, value: ast.expr, seen: set[tuple[Function, str]]
) -> bool:
    """Tell whether an expression may be a None that its function or a caller writes."""
    if isinstance(value, ast.IfExp):
        ways = (value.body, value.orelse)
        return any(_gives_none(project, function, way, seen) for way in ways)
    if not isinstance(value, ast.Name):
        return is_none(value)
    name = value.id
    if name not in function.parameters.names or (function, name) in seen:
        return False
    seen.add((function, name))
    default = function.parameters.defaults.get(name)
    given = ((where, node or default) for _, where, node in project.received(function, name))
    return any(v is not None and _gives_none(project, f, v, seen) for f, v in given)


def only_used(project: Project, attr: str) -> bool:
    """Tell whether every read of an attribute of some name uses what it holds: ``self.amp.scale_loss``."""
    reads = [
        module.tree.parents[node]
        for module, node in where_read(project, attr)
        if project.external(module, node) in (None, *HANDED_ON)
    ]
    return all(isinstance(up, ast.Attribute) for up in reads) and attr not in may_be_none(project)


def asked(project: Project, empty: Empty) -> Iterator[tuple[Function, ast.expr, bool]]:
    """Yield the tests of an attribute that is None without AMP: the test, and whether it asks for AMP."""
    target = empty.target
    relatives = family(empty.owner)
    if not isinstance(target, ast.Attribute):
        return
    for module, node in where_read(project, target.attr):
        found = test_of(module.tree, node)
        function = project.function_of(module, node)
        if found is not None and _is_of(project, function, node, relatives):
            yield function, *found


def test_of(tree: Tree, node: ast.expr) -> tuple[ast.expr, bool] | None:
    """Return the test that asks whether an expression holds amp, and whether it asks for that; None for no test."""
    up = tree.parents[node]
    if isinstance(up, ast.Compare):
        return (up, isinstance(up.ops[0], ast.IsNot)) if _is_none_test(up) else None
    asks = isinstance(up, ast.If | ast.IfExp | ast.While | ast.Assert) and up.test is node
    joins = isinstance(up, ast.BoolOp) or (
        isinstance(up, ast.UnaryOp) and isinstance(up.op, ast.Not)
    )
    return (node, True) if asks or joins else None


def _in_constructor(empty: Empty, relatives: list[Class], site: Site) -> bool:
    body = empty.function.scope.body
    return (
        empty.function.name == "__init__"
        and empty.function.cls in relatives
        and len(targets_of(empty.statement)) == 1
        and _on_self(empty.function, empty.target)
        and (empty.statement in body or _is_other_way(empty, body, site))
    )


def _is_other_way(empty: Empty, body: list[ast.stmt], site: Site) -> bool:
    """Tell whether a test of the constructor itself chooses between None and amp: ``if fp16: ... else: self.amp = None``."""
    tree = empty.function.module.tree
    test = tree.holder(empty.statement)
    if not isinstance(test, ast.If) or test not in body or site.function is not empty.function:
        return False
    sides = (test.body, test.orelse)
    one = next(side for side in sides if empty.statement in side)
    other = next(side for side in sides if side is not one)
    return any(stmt is site.statement or stmt in tree.ancestors(site.node) for stmt in other)


def _on_self(function: Function, node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and function.is_receiver(node.value)


def _owners(project: Project, site: Site, target: ast.Attribute) -> list[Class]:
    """Return the classes of the object in which amp is stored, as far as they are known."""
    if site.function.cls is not None and _on_self(site.function, target):
        return [site.function.cls]
    return list(project.instance_classes(site.module, target.value))


def _is_object_of(
    project: Project, site: Site, target: ast.Attribute, relatives: list[Class]
) -> bool:
    classes = _owners(project, site, target)
    return bool(classes) and all(cls in relatives for cls in classes)


def _is_of_another(
    project: Project, function: Function, node: ast.expr, owners: Iterable[Class]
) -> bool:
    """Tell whether an attribute is one of an object whose class is no relative of some classes."""
    own, related = function.cls, {relative for owner in owners for relative in family(owner)}
    return bool(related) and own is not None and own not in related and _on_self(function, node)


def _is_of(
    project: Project, function: Function, node: ast.Attribute, relatives: list[Class]
) -> bool:
    """Tell whether an attribute is one of an object of some classes, in their methods or of what holds one."""
    if function.cls in relatives and _on_self(function, node):
        return True
    classes = project.instance_classes(function.module, node.value)
    held = path(node.value) is not None and bool(classes)
    return held and all(cls in relatives for cls in classes)


def _only_asked(
    project: Project, attr: str, found: list[Empty], owners: list[Class], relatives: list[Class]
) -> bool:
    """Tell whether the attribute is only used for amp, tested, or handed on, where its object surely is one of the class."""
    empties = {empty.target for empty in found}
    for module in project.modules.values():
        if any(by_name(call, attr) for call in module.tree.nodes(ast.Call)):
            return False
        for node in module.tree.attributes(attr):
            up = module.tree.parents[node]
            function = project.function_of(module, node)
            if _is_of_another(project, function, node, owners):
                continue
            if not isinstance(node.ctx, ast.Load):
                if not gets_amp(project, module, node) and node not in empties:
                    return False
            elif not (
                _is_of(project, function, node, relatives)
                and (isinstance(up, _USES) or _is_none_test(up) or is_run(project, module, node))
            ):
                return False
    return True


def gets_amp(project: Project, module: Module, node: ast.Attribute) -> bool:
    """Tell whether the attribute is given amp there."""
    up = module.tree.parent(node)
    return isinstance(up, ast.Assign) and project.external(module, up.value) in HANDED_ON


def is_run(project: Project, module: Module, node: ast.Attribute) -> bool:
    """Tell whether the attribute is called, or an argument of functions in sight, which get the scaler instead."""
    call = module.tree.user(node)
    return isinstance(call, ast.Call) and (call.func is node or bool(project.callees(call)))


def by_name(call: ast.Call, attr: str) -> bool:
    """Tell whether a call reaches an attribute by its name: ``getattr(model, "amp", None)``."""
    return path(call.func) in ("getattr", "hasattr", "setattr", "delattr") and any(
        isinstance(arg, ast.Constant) and arg.value == attr for arg in call.args[1:2]
    )


def _is_none_test(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Compare)
        and len(node.ops) == 1
        and isinstance(node.ops[0], ast.Is | ast.IsNot)
        and isinstance(node.comparators[0], ast.Constant)
        and node.comparators[0].value is None
    )
