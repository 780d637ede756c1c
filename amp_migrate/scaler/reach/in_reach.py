"""What a function can reach the scaler through: its object, an object that it holds, a global."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from amp_migrate.facts.paths import is_attribute_of, path, variables
from amp_migrate.facts.scopes import ScopeNode, targets_of
from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.project.reach import on_own
from amp_migrate.project.relatives import family
from amp_migrate.project.rounds import may_follow, points_of
from amp_migrate.scaler.reach.foreign import may_be_foreign
from amp_migrate.scaler.routes.carriers import Carriers
from amp_migrate.training.origins.behind import may_be_bare, may_be_wrapped


def stored_beside(carriers: Carriers, function: Function) -> bool:
    """Tell whether another method of the class uses the `amp` that is stored on its objects."""
    if function.cls is None or not function.takes_receiver or function.is_class:
        return False
    if function.name == "__init__":
        return False
    methods = {m for cls in family(function.cls) for m in cls.methods.values()}
    beside = methods & carriers.paths.keys()
    return bool(carriers.stored) and any(
        carriers.paths[m] == m.parameters.names[0] for m in beside if m.parameters.names
    )


def held(project: Project, keepers: set[Class], function: Function, at: ast.AST) -> str | None:
    """Return an object in reach of a node of a function whose class keeps the scaler: ``self.trainer``.

    Objects that make none may stand there too, where a base is common to them all.
    """
    if not keepers:
        return None
    bases = {base for keeper in keepers for base in keeper.mro()}
    functions = [function]
    if function.cls is not None and function.receiver is not None and not function.is_class:
        functions += [m for cls in function.cls.mro() for m in cls.methods.values()]
    for i, method in enumerate(functions):
        module = method.module
        for node in method.all_nodes:
            if not isinstance(node, ast.Name | ast.Attribute):
                continue
            dotted = path(node)
            if dotted is None or dotted in method.receivers:
                continue
            if i and not is_attribute_of((method.receiver or "",), node):
                continue
            if not i and not _is_seen_from(module, method.scope, node):
                continue
            if not i and not _is_bound_before(project, function, node, at):
                continue
            bare = may_be_bare(project, module, node)
            if may_be_wrapped(project, module, node) or (bare and i):
                continue
            classes = objects(project, module, node)
            if not keepers.intersection(classes) or not all(bases & set(c.mro()) for c in classes):
                continue
            if may_be_foreign(project, module, node):
                continue
            if bare and dotted.rpartition(".")[2] == "module":
                return _unwrapped(dotted)
            if not bare and _is_set(project, module, node):
                return f"{function.receiver}.{dotted.partition('.')[2]}" if i else dotted
    return None


def given(project: Project, function: Function) -> Iterator[tuple[str, Class]]:
    """Yield the parameters of a function that are objects of one class of the project, with the class."""
    module = function.module
    own = function.parameters.names[1 if function.takes_receiver else 0 :]
    for name in own:
        reads = (n for n in function.all_nodes if isinstance(n, ast.Name) and n.id == name)
        node = next((n for n in reads if _is_seen_from(module, function.scope, n)), None)
        if node is None or any(
            not isinstance(b, ast.arg) for b in module.scopes.bindings(function.scope, name)
        ):
            continue
        classes = objects(project, module, node)
        if len(classes) == 1 and not may_be_foreign(project, module, node):
            yield name, classes[0]


def _is_seen_from(module: Module, scope: ScopeNode, node: ast.AST) -> bool:
    """Tell whether an expression starts with a variable that a scope sees, not with one of a function within."""
    name = next(part for part in ast.walk(node) if isinstance(part, ast.Name))
    return module.scopes.sees(scope, name)


def _is_bound_before(project: Project, function: Function, node: ast.AST, at: ast.AST) -> bool:
    """Tell whether the variable with which an expression starts may have its value already where a node runs."""
    name = next(part for part in ast.walk(node) if isinstance(part, ast.Name))
    bindings = function.module.scopes.bindings(function.scope, name.id)
    if not bindings or any(isinstance(binding, ast.arg) for binding in bindings):
        return True
    starts = [b for b in bindings if points_of(project, function, b)]
    follows = partial(may_follow, project, function, then=at, exceptions=True)
    return not starts or any(map(follows, starts))


def _unwrapped(dotted: str) -> str:
    """Return how ``x.module`` is read where `x` may have no wrapper."""
    whole = dotted.rpartition(".")[0]
    return f'getattr({whole}, "module", {whole})'


def objects(project: Project, module: Module, node: ast.expr) -> list[Class]:
    """Return the classes of the objects that an expression may hold, if only as it is declared where it is given."""
    found = project.instance_classes(module, node)
    given = module.tree.parent(node)
    if found or not isinstance(given, ast.keyword) or given.arg is None:
        return found
    call = module.tree.parent(given)
    owners = project.constructed(call) if isinstance(call, ast.Call) else []
    declared = [_declared(project, owner, given.arg) for owner in owners]
    return [cls for cls in declared if cls is not None] if all(declared) else []


def _is_set(project: Project, module: Module, node: ast.AST) -> bool:
    """Tell whether an attribute that its class only declares is given wherever an object is made."""
    if not isinstance(node, ast.Attribute):
        return True
    owners = set(project.instance_classes(module, node.value))
    bare = {cls for cls in owners if _is_bare(cls, node.attr)}
    made = (c for c, targets in project.calls.reached.items() if bare & {t.cls for t in targets})
    return all(node.attr in {keyword.arg for keyword in call.keywords} for call in made)


def _is_bare(cls: Class, name: str) -> bool:
    """Tell whether a class declares an attribute without a value, and assigns it nowhere.

    What a decorator or a base elsewhere makes of its annotations, such as a dataclass, is not asked.
    """
    if cls.node.decorator_list or cls.externals():
        return False
    for node in (node for owner in cls.mro() for node in ast.walk(owner.node)):
        valued = not isinstance(node, ast.AnnAssign) or node.value is not None
        if valued and name in map(path, targets_of(node)):
            return False
        if isinstance(node, ast.Attribute) and node.attr == name:
            if isinstance(node.ctx, ast.Store):
                return False
    return True


def _declared(project: Project, owner: Class, name: str) -> Class | None:
    """Return the class that an attribute of the objects of another is annotated with."""
    for cls in owner.mro():
        for stmt in cls.node.body:
            if isinstance(stmt, ast.AnnAssign) and path(stmt.target) == name:
                meaning = project.resolve(cls.module, stmt.annotation)
                return meaning if isinstance(meaning, Class) else None
    return None


def is_global(function: Function, node: ast.AST) -> bool:
    """Tell whether a function reads the other objects as globals, and so the scaler too."""
    names = variables(node)
    return not names & set(function.parameters.names)


def on_self(project: Project, function: Function, node: ast.AST) -> bool:
    """Tell whether what the scaler serves at `node` is kept on the object rather than passed in.

    So in a method that only other methods of its object call: ``self.save()``.
    """
    roots = variables(node)
    if not function.parameters.names or function.parameters.names[0] in roots:
        return bool(function.parameters.names)
    calls = project.callers(function)
    return bool(calls) and all(map(on_own, calls))
