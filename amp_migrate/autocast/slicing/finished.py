"""What is computed in fp32 of the outputs of a network, behind the forward pass."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator

from amp_migrate.facts.paths import defs, path, uses, walk
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.once import kept, once
from amp_migrate.project.reach import reachable
from amp_migrate.training.beliefs import SHAPES
from amp_migrate.training.origins.meant import meant
from amp_migrate.training.types import wide

_PRODUCTS = frozenset({"addmm", "bmm", "einsum", "forward", "matmul", "mm"})


def finished(computed: Iterable[ast.stmt], apart: Iterable[list[ast.stmt]]) -> list[list[ast.stmt]]:
    """Return, of each run of statements behind another backward, the part that computes in fp32 with what `computed` wrote."""
    known = {name for stmt in computed for name in defs(stmt)}
    found = []
    for run in apart:
        cast = []
        for stmt in run:
            if uses(stmt) & known:
                cast += [stmt] if runs_in_fp32(stmt, known) else []
                known |= defs(stmt)
        if cast:
            found.append(run[run.index(cast[0]) : run.index(cast[-1]) + 1])
    return found


def runs_in_fp32(stmt: ast.stmt, known: set[str], sums: bool = True) -> bool:
    """Tell whether a statement computes what O1 and autocast run in fp32, as ``x.norm()`` or ``x ** 2``, of what is known.

    Without `sums`, those do not count: most are of what is right and wrong.
    """
    return any(_is_fp32(node, known, sums) for node in walk(stmt))


def _is_fp32(node: ast.AST, known: set[str], sums: bool) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return bool(uses(node.left) & known)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    name, receiver = node.func.attr, node.func.value
    owner = (path(receiver) or "").rpartition(".")[2]
    if name in wide.OF_FUNCTIONAL and owner not in ("F", "functional"):
        return False
    given = uses(receiver)
    if owner in ("torch", "F", "functional"):
        given = {used for argument in node.args for used in uses(argument)}
    if name not in wide.OF_TORCH | wide.OF_FUNCTIONAL:
        return False
    return (sums or name not in wide.SUMS) and bool(given & known)


def measures_in_fp32(project: Project, module: Module, stmt: ast.stmt, known: set[str]) -> bool:
    """Tell the same of all but sums, modules of torch among it: ``nn.Softmax(dim=1)(output)``."""
    given = fp32_inputs(project, module, stmt)
    return runs_in_fp32(stmt, known, sums=False) or any(uses(node) & known for node in given)


def fp32_calls(
    project: Project, module: Module, node: ast.AST
) -> list[tuple[ast.Call, list[ast.expr]]]:
    """Return the calls in a statement or expression that O1 and autocast run in fp32, but for sums, each with what it is given."""

    def found() -> Iterator[tuple[ast.Call, list[ast.expr]]]:
        for call in (n for n in walk(node) if isinstance(n, ast.Call)):
            if given := wide.computed(project, module, call):
                if not wide.is_sum(call):
                    yield call, given
            elif project.external(module, call.func) is None:
                if _runs_functional(project, module, call.func):
                    yield call, wide.tensors(call)

    return kept(project, (fp32_calls, node), lambda: [*found()])


def fp32_inputs(project: Project, module: Module, node: ast.AST) -> list[ast.expr]:
    """Return what those calls are given."""
    return [part for _, given in fp32_calls(project, module, node) for part in given]


def summed(project: Project, module: Module, node: ast.AST) -> list[ast.expr]:
    """Return what the sums and powers in a statement or expression are given, which mostly are of what is right and wrong."""

    def found() -> list[ast.expr]:
        parts = (n for n in walk(node) if isinstance(n, ast.BinOp) or wide.is_sum(n))
        return [given for part in parts for given in wide.computed(project, module, part)]

    return kept(project, (summed, node), found)


def _runs_functional(project: Project, module: Module, func: ast.expr) -> bool:
    """Tell whether what is called is a module of torch.nn that runs in fp32: ``nn.Softmax(dim=1)(output)``."""
    if isinstance(func, ast.Call):
        return wide.makes_one(project, module, func)
    if (path(func) or "").rpartition(".")[2] not in _keeping(project):
        return False
    return any(
        isinstance(value, ast.Call) and wide.makes_one(project, project.module_of(value), value)
        for value in meant(project, module, func)
    )


@once
def _keeping(project: Project) -> frozenset[str]:
    """Return the last parts of the names that hold such modules."""
    return frozenset(
        (path(target) or "").rpartition(".")[2]
        for module, stmt in project.nodes(ast.Assign)
        if isinstance(stmt.value, ast.Call) and wide.makes_one(project, module, stmt.value)
        for target in stmt.targets
    )


def only_draws(project: Project, function: Function) -> bool:
    """Tell whether a helper hands what it gets to other libraries, to draw or to store it, and casts nothing itself."""
    elsewhere = False
    for part in (n for f in reachable(project, function) for n in f.own_nodes):
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.MatMult | ast.Pow):
            return False
        if not isinstance(part, ast.Call):
            continue
        name = project.external(project.module_of(part), part.func)
        if name is None:
            if isinstance(part.func, ast.Attribute):
                if part.func.attr in wide.OF_TORCH | wide.OF_FUNCTIONAL | _PRODUCTS:
                    return False
            elif not project.callees(part) and not hasattr(builtins, _text(part.func)):
                return False
        elif name.startswith("torch."):
            return False
        else:
            elsewhere = True
    return elsewhere


def _text(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def only_reshapes(stmt: ast.stmt) -> bool:
    """Tell whether a test only takes a result apart: ``if isinstance(output, tuple): output = output[0]``."""
    if not isinstance(stmt, ast.If):
        return False
    parts = [*stmt.body, *stmt.orelse]
    methods = [
        getattr(n.func, "attr", "")
        for part in parts
        for n in ast.walk(part)
        if isinstance(n, ast.Call)
    ]
    plain = all(isinstance(s, ast.Assign | ast.AugAssign | ast.AnnAssign) for s in parts)
    return plain and SHAPES | {"mean"} >= set(methods)
