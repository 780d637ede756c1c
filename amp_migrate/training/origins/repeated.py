"""Whether a loop gives one object again in every round, as a generator of batches that hands its optimizer along."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import stored
from amp_migrate.project import Function, Module, Project
from amp_migrate.training.beliefs import RUNS_FIRST
from amp_migrate.training.bindings import bound_value, is_generator, meant

_Loop = ast.For | ast.AsyncFor | ast.comprehension
_Made = ast.GeneratorExp | ast.ListComp
_GIVES_AGAIN = frozenset({"itertools.cycle", "itertools.repeat"})
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
        if isinstance(over, ast.BinOp):
            return isinstance(over.op, ast.Mult)
        if isinstance(over, ast.Call):
            return self._called(module, over, where)
        if isinstance(over, ast.Name):
            bound = module.scopes.bound(over)
            values = [
                bound_value(module, b)
                for b in bound
                if isinstance(module.tree.parent(b), ast.Assign)
            ]
            return any(v is not None and self.repeat(module, v, where) for v in values)
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
        return any(
            self._yields(function, where)
            for function in self._project.callees(call)
            if is_generator(function)
        )

    def _yields(self, function: Function, where: tuple[int, ...]) -> bool:
        """Tell whether a generator may yield one object again: in a loop that does not go over such objects."""
        module = function.module
        for node in module.tree.nodes(ast.Yield):
            if node.value is None or module.tree.function(node) is not function.node:
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
        names = _made_of(module, given)
        changing = {
            name
            for loop in loops
            for name in names & stored(loop.target)
            if not self.repeat(module, loop.iter, _place(loop.target, name) or ())
        }
        return not changing


def _made_of(module: Module, given: ast.expr) -> set[str]:
    """Return the variables that an expression is made of, through what these are bound to."""
    found: set[str] = set()
    waiting: list[ast.AST] = [given]
    while waiting:
        for node in ast.walk(waiting.pop()):
            if not isinstance(node, ast.Name) or node.id in found:
                continue
            found.add(node.id)
            bound = module.scopes.bound(node)
            waiting += [taken for b in bound if (taken := _taken(module, b)) is not None]
    return found


def _taken(module: Module, binding: ast.AST) -> ast.expr | None:
    """Return what an assignment binds a name to, whole or taken apart."""
    up = module.tree.statement(binding)
    return up.value if isinstance(up, ast.Assign | ast.AnnAssign | ast.AugAssign) else None
