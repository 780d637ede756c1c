"""Parts of a network that its forward leaves out where a call says so, and that get no gradient then."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from amp_migrate.facts.below import every
from amp_migrate.facts.closure import closure
from amp_migrate.project import CallSite, Class, Function, Module, Project, programs
from amp_migrate.protocol.code.program import program_of
from amp_migrate.training.contexts import keeps_no_graph
from amp_migrate.training.forwards.outputs import comes_to_backward
from amp_migrate.values.objects import Instance, Made

_WEIGHTS = re.compile(
    r"torch\.nn\.(modules\.\w+\.)?(Linear|Bilinear|Conv\w+|Embedding\w*|LSTM|GRU|RNN|\w*BatchNorm\w*|LayerNorm|GroupNorm|"
    r"MultiheadAttention|Transformer\w*|Parameter|Sequential|ModuleList|ModuleDict)"
)


def left_out(
    project: Project, module: Module, call: ast.Call
) -> Iterator[tuple[Module, ast.AST, str]]:
    """Yield the passes with a backward that leave out a part of what a call wraps, with the name of that."""
    for wrapped in call.args[:1]:
        for cls in project.values.instance_classes(module, wrapped):
            forward = cls.method("forward")
            if forward is not None and forward.node is not None:
                yield from _of_forward(project, cls, forward)


def _of_forward(
    project: Project, cls: Class, forward: Function
) -> Iterator[tuple[Module, ast.AST, str]]:
    skipped: dict[tuple[str, bool], str] = {}
    for test in forward.own_nodes:
        if not isinstance(test, ast.If) or (asked := _asked(forward, test.test)) is None:
            continue
        name, truth = asked
        for arm, left in ((test.body, not truth), (test.orelse, truth)):
            for part in sorted(_only_there(project, cls, forward, name, left, arm)):
                skipped.setdefault((name, left), part)
    if not skipped:
        return
    losses = program_of(project).training.losses
    beside = programs.beside(project, cls.module.path)
    for near in project.connected_with([forward.module]):
        for call in near.tree.nodes(ast.Call):
            if forward not in project.methods(near, call.func, "forward"):
                continue
            if near.path not in beside:
                continue
            said = _said(project, near, call, forward)
            parts = [skipped[key] for key in said.items() if key in skipped]
            if not parts or keeps_no_graph(project, near, call):
                continue
            if comes_to_backward(project, losses, call):
                yield near, call, parts[0]


def _asked(forward: Function, test: ast.expr) -> tuple[str, bool] | None:
    """Return the parameter of a forward that a test asks for, and what it is where the test is true."""
    truth = True
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, truth = test.operand, not truth
    bound = forward.module.scopes.bound(test) if isinstance(test, ast.Name) else []
    if len(bound) != 1 or not isinstance(bound[0], ast.arg) or not isinstance(test, ast.Name):
        return None
    return (test.id, truth) if test.id in forward.parameters.names else None


def _said(project: Project, module: Module, call: ast.Call, forward: Function) -> dict[str, bool]:
    """Return what a call says of the parameters of a forward that are constants there, or left to their defaults."""
    if any(keyword.arg is None for keyword in call.keywords) or any(
        isinstance(given, ast.Starred) for given in call.args
    ):
        return {}
    site = CallSite(project.function_of(module, call), call, bound=True)
    values = {**forward.parameters.defaults, **project.arguments(site, forward)}
    return {
        name: bool(value.value) for name, value in values.items() if isinstance(value, ast.Constant)
    }


def _only_there(
    project: Project,
    cls: Class,
    forward: Function,
    name: str,
    left: bool,
    arm: Iterable[ast.stmt],
) -> Iterator[str]:
    """Yield the parts with weights that nothing names but an arm of a forward, and what runs where a parameter is not `left`."""
    assert forward.node is not None
    inside = {id(node) for stmt in arm for node in every(stmt)}
    for test in forward.own_nodes:
        if isinstance(test, ast.If) and (asked := _asked(forward, test.test)) is not None:
            if asked[0] == name:
                taken = test.orelse if asked[1] is left else test.body
                inside |= {id(node) for stmt in taken for node in every(stmt)}
    body = [node for stmt in forward.node.body for node in every(stmt)]
    there = [node for node in body if id(node) in inside]
    elsewhere = _named(project, cls, forward, (n for n in body if id(n) not in inside))
    for part in _named(project, cls, forward, there) - elsewhere:
        if _has_weights(project, cls, part):
            yield part


def _named(project: Project, cls: Class, function: Function, nodes: Iterable[ast.AST]) -> set[str]:
    """Return the attributes of its own object that some nodes of a method name, and what other methods of it that they run do."""
    nodes, found = list(nodes), set[str]()
    related = set(cls.mro())

    def called(of: Iterable[ast.AST]) -> Iterator[Function]:
        for node in of:
            if isinstance(node, ast.Call):
                yield from (f for f in project.callees(node) if f.cls in related)

    methods = closure(called(nodes), lambda here: called(here.all_nodes))
    for method, own in ((function, nodes), *((m, m.all_nodes) for m in methods)):
        found |= {
            node.attr
            for node in own
            if isinstance(node, ast.Attribute) and method.is_receiver(node.value)
        }
    return found


def _has_weights(project: Project, cls: Class, name: str) -> bool:
    """Tell whether an attribute of a network holds layers that have weights."""
    for base in cls.mro():
        for node in base.module.tree.attributes(name):
            function = project.function_of(base.module, node)
            if isinstance(node.ctx, ast.Store) and function.cls is base:
                for fact in project.values.facts(base.module, node):
                    if isinstance(fact, Made) and _WEIGHTS.fullmatch(fact.name):
                        return True
                    if isinstance(fact, Instance) and "torch.nn.Module" in fact.cls.externals():
                        return True
    return False
