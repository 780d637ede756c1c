"""Whether a loop gives one object again in every round, as a generator of batches that hands its optimizer along."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.closure import spread
from amp_migrate.facts.paths import stored
from amp_migrate.project import Function, Module, Project
from amp_migrate.training.beliefs import RUNS_FIRST
from amp_migrate.training.bindings import is_generator, meant, returned
from amp_migrate.training.origins.meant import held
from amp_migrate.values.wrappers import itself

_Loop = ast.For | ast.AsyncFor | ast.comprehension
_Made = ast.GeneratorExp | ast.ListComp
_GIVES_AGAIN = frozenset({"itertools.cycle", "itertools.repeat"})
_GOES_THROUGH = ("__iter__", "__next__")
_ARGUMENTS_SIDE_BY_SIDE = frozenset({"zip", "itertools.zip_longest"})


def visits(project: Project, module: Module, loop: _Loop, name: str) -> bool:
    """Tell whether a loop binds a name to another object in each round, as far as it is seen what it goes over."""
    where = _place(loop.target, name)
    return where is not None and not _Rounds(project).repeat(module, loop.iter, where)


def _place(target: ast.expr, name: str) -> tuple[int, ...] | None:
    """Return the indices that lead to a name in the target of a loop: ``(1, 0)`` for `b` of ``a, (b, c)``."""
    if isinstance(target, ast.Name):
        return () if target.id == name else None
    if isinstance(target, ast.Tuple | ast.List):
        for k, part in enumerate(target.elts):
            below = _place(part, name)
            if below is not None:
                return (k, *below)
    return () if name in stored(target) else None


class _Rounds:
    """Asks of what loops go over whether it gives the same object again."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._asked: set[ast.AST] = set()

    def repeat(self, module: Module, over: ast.expr, where: tuple[int, ...]) -> bool:
        """Tell whether an iterable gives one object in several rounds, at a place of what it gives."""
        if over in self._asked:
            return False
        self._asked.add(over)
        repeats = self._repeats(module, over, where)
        self._asked.discard(over)
        return repeats

    def _repeats(self, module: Module, over: ast.expr, where: tuple[int, ...]) -> bool:
        if isinstance(over, _Made):
            loops: list[_Loop] = [*over.generators]
            return self._stays(module, over.elt, where, loops)
        if isinstance(over, ast.List | ast.Tuple):
            taken = [part.value for part in over.elts if isinstance(part, ast.Starred)]
            return any(self.repeat(module, part, where) for part in taken)
        if isinstance(over, ast.BinOp):
            return isinstance(over.op, ast.Mult)
        if isinstance(over, ast.Call):
            return self._called(module, over, where)
        if isinstance(over, ast.Name | ast.Attribute | ast.IfExp | ast.BoolOp):
            values = [v for v in held(self._project, module, over) if v is not None]
            return any(self.repeat(self._project.module_of(v), v, where) for v in values)
        return False

    def _called(self, module: Module, call: ast.Call, where: tuple[int, ...]) -> bool:
        name = meant(self._project, module, call.func)
        if name in _GIVES_AGAIN:
            return True
        if name in _ARGUMENTS_SIDE_BY_SIDE and where and where[0] < len(call.args):
            return self.repeat(module, call.args[where[0]], where[1:])
        if name == "enumerate" and where[:1] == (1,) and call.args:
            return self.repeat(module, call.args[0], where[1:])
        if name is not None and name not in RUNS_FIRST and call.args:
            return self.repeat(module, call.args[0], where)
        found = self._project.callees(call)
        for cls in self._project.constructed(call):
            found = [*found, *(m for n in _GOES_THROUGH if (m := cls.method(n)) is not None)]
        lambdas = [v for v in held(self._project, module, call.func) if isinstance(v, ast.Lambda)]
        return any(self._gives(function, where) for function in found) or any(
            self.repeat(self._project.module_of(made), made.body, where) for made in lambdas
        )

    def _gives(self, function: Function, where: tuple[int, ...]) -> bool:
        """Tell whether what is made by a function to be gone through may give one object again."""
        if is_generator(function):
            return self._yields(function, where)
        if function.cls is not None and function.name == "__next__":
            return True
        return any(self.repeat(function.module, given, where) for given in returned(function))

    def _yields(self, function: Function, where: tuple[int, ...]) -> bool:
        """Tell whether a generator may yield one object again: in a loop that does not go over such objects."""
        module = function.module
        for node in module.tree.nodes(ast.Yield, ast.YieldFrom):
            if node.value is None or module.tree.function(node) is not function.node:
                continue
            if isinstance(node, ast.YieldFrom):
                if self.repeat(module, node.value, where):
                    return True
                continue
            around = [
                up
                for up in module.tree.ancestors(node)
                if isinstance(up, ast.For | ast.AsyncFor | ast.While)
            ]
            own = [up for up in around if module.tree.function(up) is function.node]
            if own and self._stays(
                module, node.value, where, [x for x in own if isinstance(x, _Loop)]
            ):
                return True
        return False

    def _stays(
        self, module: Module, given: ast.expr, where: tuple[int, ...], loops: list[_Loop]
    ) -> bool:
        """Tell whether what is given in loops at a place is the same object in several of their rounds."""
        while where and isinstance(given, ast.Tuple | ast.List) and where[0] < len(given.elts):
            given, where = given.elts[where[0]], where[1:]
        made = itself(given)
        if isinstance(made, ast.Call) and self._makes(module, made):
            return False
        names = _made_of(module, given)
        changing = {
            name
            for loop in loops
            for name in names & stored(loop.target)
            if not self.repeat(module, loop.iter, _place(loop.target, name) or ())
        }
        return not changing

    def _makes(self, module: Module, call: ast.Call) -> bool:
        """Tell whether a call makes an object each time, or has a library do so."""
        made = self._project.constructed(call)
        return bool(made) or self._project.external(module, call.func) is not None


def _made_of(module: Module, given: ast.AST) -> set[str]:
    """Return the variables that an expression is made of, through what these are bound to."""

    def onward(node: ast.AST) -> Iterator[ast.AST]:
        yield from ast.iter_child_nodes(node)
        bound = module.scopes.bound(node) if isinstance(node, ast.Name) else ()
        yield from (taken for b in bound if (taken := _taken(module, b)) is not None)

    return {node.id for node in spread([given], onward) if isinstance(node, ast.Name)}


def _taken(module: Module, binding: ast.AST) -> ast.expr | None:
    """Return what an assignment binds a name to, whole or taken apart."""
    up = module.tree.statement(binding)
    return up.value if isinstance(up, ast.Assign | ast.AnnAssign | ast.AugAssign) else None
