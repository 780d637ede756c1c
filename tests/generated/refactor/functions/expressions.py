"""Takes an expression out of its statement, into a function or a lambda that returns it."""

from __future__ import annotations

import ast
from random import Random

import libcst as cst

from generated.refactor.code.blocks import Block, parsed, put
from generated.refactor.code.expressions import Spot, spots
from generated.refactor.code.names import code, declared, fresh, read, tree
from generated.refactor.code.scopes import (
    FRAME,
    MOST_INPUTS,
    before,
    in_order,
    module_variables,
    variables,
)
from generated.refactor.code.writing import above, blank_lines, function, gap, listed
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_STEMS = ("compute", "evaluated", "obtain", "make_part", "get_value", "prepare")


def _function(project: Project, rng: Random) -> Project | None:
    """Draw a call whose names are bound for certain; they become parameters."""
    for spot in spots(project, rng, _is_call, _outside_of_class_bodies):
        inputs = inputs_of(spot)
        if inputs is None or "self" in inputs or "cls" in inputs:
            continue
        name = fresh(project, rng, _STEMS)
        module = spot.place.module
        returned = "" if _is_whole(spot) and rng.random() < 0.6 else "return "
        (line,) = parsed(f"{returned}{_text(spot, module)}\n", module)
        helper = function(module, name, inputs, [line])
        changed = spot.replaced(cst.parse_expression(f"{name}({', '.join(inputs)})"))
        return project.changed(spot.place.path, above(changed, spot.place.outermost, [helper]))
    return None


def _passing(project: Project, rng: Random) -> Project | None:
    """Draw a call by keywords of a function of the module's imports; the helper hands all of them on."""
    for spot in spots(project, rng, _has_keywords):
        call, module = spot.node, spot.place.module
        assert isinstance(call, cst.Call)
        root = _root(call.func)
        if not root or root in local(spot) or _starred(call):
            continue
        positional = [a for a in call.args if a.keyword is None]
        count = rng.randint(0, min(2, len(positional)))
        stems = ("model", "optimizer") if "initialize" in code(call.func) else ("first", "second")
        named = list(stems[:count])
        if root in named:
            continue
        name = fresh(project, rng, _STEMS)
        rest = ["*args"] if count < len(positional) else []
        handed = [*named, *rest, "**kwargs"]
        text = listed(f"return {code(call.func)}(", handed, ")\n", 1)
        helper = function(module, name, handed, parsed(text, module))
        changed = spot.replaced(call.with_changes(func=cst.Name(name)))
        return project.changed(spot.place.path, above(changed, spot.place.outermost, [helper]))
    return None


def _lambda(project: Project, rng: Random) -> Project | None:
    """Draw a call; the lambda stands right above its statement, or above the loops around it."""
    for spot in spots(project, rng, _is_call, _outside_of_class_bodies):
        place = spot.place
        inputs = inputs_of(spot)
        if inputs is None or _changed_by_others(spot):
            continue
        module, block = place.module, place.block
        name = fresh(project, rng, _STEMS)
        given = [k for k in inputs if k != "self" and rng.random() < 0.4]
        head = f"{name} = lambda {', '.join(given)}".rstrip()
        text = f"{head}: {_text(spot, module)}\n"
        (line,) = parsed(text, module)
        call = cst.parse_expression(f"{name}({', '.join(given)})")
        if block.loops and rng.random() < 0.5:
            changed = hoisted(spot, call, line)
        else:
            changed = spot.replaced(call, [line])
        return project.changed(place.path, changed)
    return None


def hoisted(spot: Spot, call: cst.BaseExpression, line: cst.BaseStatement) -> cst.Module:
    """Return the module with the lambda above the outermost loop, whose variables it looks up when it is called."""
    place = spot.place
    loop = place.block.loops[0]
    where = place.block.inside.index(loop)
    around = place.block.inside[:where]
    new = place.run[0].deep_replace(spot.node, call)
    body = [*place.block.body[: place.start], new, *place.block.body[place.stop :]]
    changed = loop.with_deep_changes(place.block.home, body=body)
    assert isinstance(changed, cst.For | cst.While)
    outer = _block_of(place.module, around, loop)
    at = next(k for k, s in enumerate(outer.body) if s is loop)
    above_it = gap(line, blank_lines(loop))
    return put(place.module, outer, at, at + 1, [above_it, gap(changed, 0)])


def _block_of(module: cst.Module, around: tuple[cst.CSTNode, ...], node: cst.CSTNode) -> Block:
    from generated.refactor.code.blocks import blocks

    return next(b for b in blocks(module) if b.inside == around and any(s is node for s in b.body))


def _text(spot: Spot, module: cst.Module) -> str:
    return module.code_for_node(spot.node).replace(
        "\n" + module.default_indent * len(spot.place.block.inside), "\n"
    )


def _is_whole(spot: Spot) -> bool:
    """Tell whether an expression is a statement of its own."""
    line = spot.statement
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
    return isinstance(small, cst.Expr) and small.value is spot.node


def _is_call(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and not isinstance(node.func, cst.Call)


def _has_keywords(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and any(arg.keyword is not None for arg in node.args)


def _starred(call: cst.Call) -> bool:
    return any(arg.star for arg in call.args)


def _root(node: cst.CSTNode) -> str:
    while isinstance(node, cst.Attribute):
        node = node.value
    return node.value if isinstance(node, cst.Name) else ""


def _outside_of_class_bodies(block: Block) -> bool:
    return block.function is not None or not any(isinstance(n, cst.ClassDef) for n in block.inside)


def local(spot: Spot) -> set[str]:
    """Return the variables of the functions around a spot, and those of its module."""
    scopes = [node for node in spot.place.block.inside if isinstance(node, cst.FunctionDef)]
    own = set().union(*(variables(scope) for scope in scopes)) if scopes else set[str]()
    return own | module_variables(spot.place.module)


def inputs_of(spot: Spot) -> list[str] | None:
    """Return the variables that an expression reads; None where one may be unbound, or it needs its place."""
    place, names = spot.place, read(spot.node)
    scopes = [node for node in place.block.inside if isinstance(node, cst.FunctionDef)]
    if names & FRAME or any(isinstance(n, ast.NamedExpr) for n in ast.walk(tree(spot.node))):
        return None
    if any(declared(scope.body.body) & names for scope in scopes):
        return None
    sure = before(place.block, place.start)
    if scopes:
        own = set().union(*(variables(scope) for scope in scopes))
        unsure = names & variables(scopes[-1]) - sure
        if unsure:
            return None
    else:
        own = module_variables(place.module) & sure
    inputs = sorted(names & own, key=in_order([spot.node]))
    return inputs if len(inputs) <= MOST_INPUTS else None


def _changed_by_others(spot: Spot) -> bool:
    """Tell whether the statement is one of a class, where a lambda sees other names."""
    return any(isinstance(n, cst.ClassDef) for n in spot.place.block.inside[-1:])


REFACTORINGS = (
    Refactoring("an expression becomes a function", "functions", _function),
    Refactoring("a call goes through a helper that hands its keywords on", "functions", _passing),
    Refactoring("an expression becomes a lambda", "functions", _lambda),
)
