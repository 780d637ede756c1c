"""Whether an object that a library made may stand where one of the project does, by what is stored where."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import defs
from amp_migrate.facts.scopes import assigned
from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.project.reach import where_set
from amp_migrate.project.relatives import family
from amp_migrate.training.bindings import is_generator, returned
from amp_migrate.training.origins.reaching import reaching


def may_be_foreign(project: Project, module: Module, node: ast.expr) -> bool:
    """Tell whether what an expression holds may be made by a library, which has no GradScaler.

    A parameter is what its arguments are where the calls stand: a name may have been bound to its wrapper by then.
    """
    if not project.values.made_by(module, node):
        return False
    return _Following(project).may_be(project.function_of(module, node), node)


class _Following:
    def __init__(self, project: Project) -> None:
        self._project = project
        self._reaching = reaching(project)
        self._seen: set[ast.AST] = set()

    def may_be(self, function: Function, node: ast.AST | None) -> bool:
        """Tell whether a node of a function may hold an object of a library; what is asked already adds nothing."""
        if node in self._seen:
            return False
        if node is not None:
            self._seen.add(node)
        if isinstance(node, ast.Call):
            return not self._project.constructed(node) and self._is_returned(node)
        if isinstance(node, ast.arg):
            around = function.outward
            taking = next((f for f in around if node in f.own_nodes), around[-1])
            return self._is_given(taking, node.arg)
        if isinstance(node, ast.Attribute):
            return self._is_stored(node)
        if not isinstance(node, ast.Name):
            return True
        held = self._reaching.of(function, node)
        return not held or any(self.may_be(self._holder(function, value), value) for value in held)

    def _holder(self, function: Function, value: ast.AST | None) -> Function:
        return self._reaching.holder(function, value) if isinstance(value, ast.expr) else function

    def _is_returned(self, call: ast.Call) -> bool:
        """Tell whether a call, which makes no object of the project itself, may give one of a library."""
        callees = self._project.callees(call)
        return not callees or any(
            is_generator(callee) or any(self.may_be(callee, value) for value in returned(callee))
            for callee in callees
        )

    def _is_given(self, function: Function, name: str) -> bool:
        """Tell whether a call may give a parameter an object of a library."""
        received = self._project.received(function, name)
        return any(self.may_be(where, node) for _, where, node in received)

    def _is_stored(self, attribute: ast.Attribute) -> bool:
        """Tell whether an object of a library may be put into an attribute of the objects that may stand there."""
        project = self._project
        owners = set(project.instance_classes(project.module_of(attribute), attribute.value))
        related = {relative for owner in owners for relative in family(owner)}
        stored = [
            (module, node)
            for module, node in where_set(project, attribute.attr)
            if _may_meet(related, project.instance_classes(module, node.value))
        ]
        if not related or not stored or self._is_declared(attribute.attr):
            return True
        return any(
            self.may_be(project.function_of(module, node), assigned(module.tree, node))
            for module, node in stored
        )

    def _is_declared(self, name: str) -> bool:
        """Tell whether the body of a class gives its objects an attribute, which a decorator may let a call set."""
        bodies = [stmt for _, cls in self._project.nodes(ast.ClassDef) for stmt in cls.body]
        return any(name in defs(s) for s in bodies if isinstance(s, ast.Assign | ast.AnnAssign))


def _may_meet(related: set[Class], others: list[Class]) -> bool:
    """Tell whether an object of some classes, or one of an unknown class, may be of a related one."""
    return not others or not related.isdisjoint(others)
