"""What needs no casts at the ends of a region, and the gradients that are taken within it."""

from __future__ import annotations

import ast
from dataclasses import replace

from amp_migrate.autocast.slicing.earlier import Barrier
from amp_migrate.autocast.slicing.finished import fp32_inputs
from amp_migrate.facts.paths import called_alone, calls_anything, defs, path, uses
from amp_migrate.project import Project
from amp_migrate.project.order import position
from amp_migrate.training.forwards.forwards import Forward, Forwards
from amp_migrate.training.gradients.taken import Taken, taken_in
from amp_migrate.training.region import Region, calls_in

_SCALES = (ast.Mult, ast.Div)
_ENDS = (ast.Return, ast.Continue, ast.Break, ast.Pass)


def shortened(forwards: Forwards, region: Region) -> Region:
    """Return a region without what needs no casts at its ends.

    At its end that is the logging, the multiplications of the loss that follow it, other names of it, and other values; at its beginning what
    makes the input.
    """
    statements = region.statements()
    last = len(statements)
    for i in range(len(statements) - 1, 0, -1):
        plain = _reports(forwards, region, statements[i]) or _renames(statements[i])
        if plain or _is_apart(forwards, region, i):
            last = i
        elif not _scales(statements[i]):
            break
    first = 0
    while first < last - 1 and _is_plain(forwards, region, statements[first]):
        first += 1
    return replace(region, first=statements[first], last=statements[last - 1])


def lengthened(project: Project, region: Region, barrier: Barrier) -> Region:
    """Return a region with what computes in fp32 of it right behind it, up to a `barrier`: ``F.softmax(output, dim=1)``."""
    tree = region.module.tree
    known = {name for stmt in region.statements() for name in defs(stmt)}
    block, last = tree.block(region.last), region.last
    for stmt in block[position(tree, last) + 1 :]:
        if not isinstance(stmt, ast.Assign) or barrier(region.module, stmt):
            break
        if not any(uses(node) & known for node in fp32_inputs(project, region.module, stmt)):
            break
        known |= defs(stmt)
        last = stmt
    return replace(region, last=last)


def parted(
    project: Project, forwards: Forwards, region: Region
) -> tuple[list[Region], list[Taken]]:
    """Return the parts of a region before and behind the gradients that are taken in it, as for a penalty on them, and these.

    Apex ran no backward pass with casts. Where networks run in several parts the region is one: they share the copies of their
    weights in fp16, as under Apex.
    """
    parts: list[list[ast.stmt]] = [[]]
    between: list[Taken] = []
    for stmt in region.statements():
        taken = taken_in(project, forwards.indifferent, region.function, stmt)
        if taken is None:
            parts[-1].append(stmt)
        else:
            parts.append([])
            between.append(taken)
    found = [
        replace(region, first=part[0], last=part[-1])
        for part in parts
        if not all(_is_plain(forwards, region, stmt) for stmt in part)
    ]
    running = [part for part in found if _runs_network(project, forwards, part)]
    return ([region], []) if not between or len(running) > 1 else (found, between)


def _runs_network(project: Project, forwards: Forwards, region: Region) -> bool:
    """Tell whether a region may run a network: a function of torch is none."""
    return any(
        forwards.call(module, call) in (Forward.UNKNOWN, Forward.NETWORK)
        and not (project.external(module, call.func) or "").startswith("torch.")
        for module, call in calls_in([region])
    )


def _is_plain(forwards: Forwards, region: Region, stmt: ast.stmt) -> bool:
    """Tell whether a statement assigns what no cast changes."""
    return isinstance(stmt, ast.Assign) and forwards.indifferent.part(region.function, stmt)


def _is_apart(forwards: Forwards, region: Region, i: int) -> bool:
    """Tell whether a statement computes something else, without casts, of nothing that the region computes before it."""
    stmt = region.statements()[i]
    if not _is_plain(forwards, region, stmt):
        return False
    computed = {name for before in region.statements()[:i] for name in defs(before)}
    return not uses(stmt) & computed


def _renames(stmt: ast.stmt) -> bool:
    """Tell whether a statement only gives what is there another name, or puts it beside other things: ``args = (loss, optimizer)``."""
    if not isinstance(stmt, ast.Assign) or not isinstance(stmt.targets[0], ast.Name):
        return False
    value = stmt.value
    parts = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
    named = (path(part.value if isinstance(part, ast.Subscript) else part) for part in parts)
    return not isinstance(value, ast.Subscript) and not calls_anything(stmt) and all(named)


def _scales(stmt: ast.stmt) -> bool:
    """Tell whether a statement only multiplies or divides: ``loss = loss / k``, under a test or not."""
    if isinstance(stmt, ast.If):
        return not calls_anything(stmt.test) and all(map(_scales, [*stmt.body, *stmt.orelse]))
    if isinstance(stmt, ast.AugAssign):
        return isinstance(stmt.op, _SCALES) and not calls_anything(stmt.value)
    return (
        isinstance(stmt, ast.Assign)
        and isinstance(stmt.value, ast.BinOp)
        and isinstance(stmt.value.op, _SCALES)
        and not calls_anything(stmt.value)
    )


def _reports(forwards: Forwards, region: Region, stmt: ast.stmt) -> bool:
    """Tell whether a statement only says what came of it: it keeps nothing, or a number that ``item()`` takes."""
    if isinstance(stmt, _ENDS):
        return forwards.strength(region.module, stmt) < Forward.CRITERION
    if isinstance(stmt, ast.If):
        computed = forwards.strength(region.module, stmt.test) >= Forward.CRITERION
        told = (_reports(forwards, region, part) for part in [*stmt.body, *stmt.orelse])
        return not computed and all(told)
    if isinstance(stmt, ast.Assign):
        value = stmt.value
        return (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Attribute)
            and value.func.attr == "item"
            and not calls_anything(value.func.value)
        )
    call = called_alone(stmt)
    if call is None:
        return False
    return forwards.strength(region.module, stmt) is Forward.NONE or _is_printed(call)


def _is_printed(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "print"
