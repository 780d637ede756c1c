"""Writes loops over epochs in another way: flattened with the batches, as a function that calls itself."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass
from random import Random

import libcst as cst

from generated.refactor.code.blocks import whole
from generated.refactor.code.names import bound, declared, needed, read
from generated.refactor.control.places import (
    Place,
    bound_before,
    loads,
    own_jumps,
    simple,
    somewhere,
)
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_ROUNDS = ("train_epochs", "run_epoch", "do_rounds", "go", "recurse", "one_pass")


@dataclass(frozen=True)
class _Epochs:
    """A loop over a range, which has one loop over batches in it: their targets, and what stands around."""

    epoch: str
    count: str
    before: list[cst.BaseStatement]
    inner: cst.For
    after: list[cst.BaseStatement]


def _range(place: Place, node: cst.For) -> tuple[str, str] | None:
    """Return the name and the end of a loop over a range from 0."""
    call = node.iter
    if not isinstance(node.target, cst.Name) or not isinstance(call, cst.Call) or node.orelse:
        return None
    if not isinstance(call.func, cst.Name) or call.func.value != "range" or len(call.args) != 1:
        return None
    end = place.source(call.args[0].value)
    fixed = simple(end) and not read(call.args[0].value) & (bound(node.body) | {node.target.value})
    if not fixed or call.args[0].star or node.asynchronous:
        return None
    return node.target.value, end


def _epochs(place: Place) -> _Epochs | None:
    node = place.statement
    if not isinstance(node, cst.For) or not isinstance(node.body, cst.IndentedBlock):
        return None
    outer = _range(place, node)
    body = list(node.body.body)
    loops = [k for k, s in enumerate(body) if isinstance(s, cst.For | cst.While)]
    if outer is None or len(loops) != 1 or place.at_class_level or node.body.header.comment:
        return None
    inner = body[loops[0]]
    if not isinstance(inner, cst.For) or inner.orelse or inner.asynchronous:
        return None
    jumps = own_jumps(body, place) | ({"break"} & own_jumps(inner.body.body, place))
    if jumps or not isinstance(inner.body, cst.IndentedBlock) or inner.body.header.comment:
        return None
    return _Epochs(*outer, body[: loops[0]], inner, body[loops[0] + 1 :])


def _flattened(place: Place, rng: Random) -> Project | None:
    """Turn a loop over epochs and one over batches into one over steps, or over their product."""
    found = _epochs(place)
    if found is None:
        return None
    index, target, over = _items(place, found.inner)
    if not simple(over) or not isinstance(cst.parse_expression(over), cst.Name | cst.Attribute):
        return None
    if read(cst.parse_expression(over)) & bound(place.statement.body):  # type: ignore[attr-defined]
        return None
    if "yield" in place.project.text or "__iter__" in place.project.text:
        return None
    if not found.before and not found.after and _is_list(place) and rng.random() < 0.6:
        return _product(place, found)
    return _divided(place, found, (index, target, over), rng)


def _items(place: Place, inner: cst.For) -> tuple[str, str, str]:
    """Return the index of a loop, or nothing, its items, and what it goes over."""
    call, target = inner.iter, inner.target
    if isinstance(call, cst.Call) and place.source(call.func) == "enumerate":
        pair = isinstance(target, cst.Tuple) and len(target.elements) == 2
        if pair and len(call.args) == 1 and isinstance(target.elements[0].value, cst.Name):  # type: ignore[attr-defined]
            item = target.elements[1].value  # type: ignore[attr-defined]
            item = item.with_changes(lpar=(), rpar=()) if isinstance(item, cst.Tuple) else item
            index = place.source(target.elements[0].value)  # type: ignore[attr-defined]
            return index, place.source(item), place.source(call.args[0].value)
    return "", place.source(target), place.source(call)


def _is_list(place: Place) -> bool:
    """Tell whether going over the batches once and keeping them is as good as every epoch anew."""
    text = place.project.text
    return not any(word in text for word in ("DataLoader", "__getitem__", "shuffle"))


def _product(place: Place, found: _Epochs) -> Project | None:
    inner = found.inner
    target = place.source(inner.target)
    if isinstance(inner.target, cst.Tuple) and not inner.target.lpar:
        target = f"({target})"
    head = f"for {found.epoch}, {target} in itertools.product(range({found.count}), {place.source(inner.iter)}):\n"
    text = place.lead() + place.lead(inner).lstrip("\n") + head
    return place.replaced(
        text + place.indented(place.suite(inner.body)), imports="import itertools"
    )


def _divided(
    place: Place, found: _Epochs, items: tuple[str, str, str], rng: Random
) -> Project | None:
    index, target, over = items
    inner = found.inner
    if found.after and "continue" in own_jumps(inner.body.body, place):
        return None
    if index in bound(inner.body) or found.epoch in bound(place.statement.body):  # type: ignore[attr-defined]
        return None
    step = place.name(rng, "step", "global_step", "iteration", "position", "total_steps")
    index = index or place.name(rng, "batch_index", "within", "offset", "place")
    source = place.name(rng, "iterator", "batches", "stream")
    epoch, size = found.epoch, f"len({over})"
    reads = loads(place.source(place.scope))[epoch]
    split = f"{epoch}, {index} = divmod({step}, {size})\n"
    if not reads:
        split = f"{index} = {step} % {size}\n"
    start = place.source(found.before).lstrip("\n") + f"{source} = iter({over})\n"
    head = f"if {index} == 0:\n{place.indented(start)}{target} = next({source})\n"
    end = ""
    if found.after:
        last = place.source(found.after).lstrip("\n")
        end = f"if {index} == {size} - 1:\n{place.indented(last)}"
    body = place.source(inner.body.body) + place.source(inner.body.footer)  # type: ignore[attr-defined]
    count = f"({found.count})" if " " in found.count else found.count
    loop = f"for {step} in range({count} * {size}):\n"
    whole = loop + place.indented(split + head + body + end)
    first = sorted(
        (needed([*inner.body.body, *found.after]) & bound(found.before)) - bound_before(place)
    )
    none = f"{' = '.join([*first, source])} = None\n"
    return place.replaced(place.lead() + none + whole)


def _recursive(place: Place, rng: Random) -> Project | None:
    """Turn a loop over epochs into a function within, which runs one and calls itself for the next."""
    node, function = place.statement, place.block.function
    if not isinstance(node, cst.For) or function is None:
        return None
    outer = _range(place, node)
    if outer is None or own_jumps(node.body.body, place):
        return None
    epoch, count = outer
    body = place.suite(node.body)
    scope = ast.parse(place.source(place.scope))
    if not whole(node.body.body) or "super()" in body or declared(function.body):
        return None
    everywhere, own = loads(place.source(place.scope)), loads(place.source(node))
    names = bound(node.body)
    if epoch in names or (everywhere[epoch] != own[epoch] and epoch != "_"):
        return None
    epoch = place.name(rng, "epoch", "number", "done") if epoch == "_" else epoch
    shared = {n for n in names if everywhere[n] != own[n]} | (names & needed(node.body.body))
    everything, here = _stores(scope), _stores(ast.parse(place.source(node)))
    if any(everything[n] == here[n] for n in shared) or (shared and not _direct(place)):
        return None
    name = place.name(rng, *_ROUNDS)
    nonlocal_ = f"nonlocal {', '.join(sorted(shared))}\n" if shared else ""
    one = place.indented
    if rng.random() < 0.5:
        stop = f"if {epoch} >= {count}:\n{one('return')}\n"
        inner = f"{nonlocal_}{stop}{body}{name}({epoch} + 1)\n"
    else:
        again = one(f"{body}{name}({epoch} + 1)\n")
        inner = f"{nonlocal_}if {epoch} < {count}:\n{again}"
    lead = place.lead() if place.lead().startswith("\n") or not place.index else "\n" + place.lead()
    return place.replaced(f"{lead}def {name}({epoch}):\n{one(inner)}\n{name}(0)\n")


_SCOPES = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)


def _stores(tree: ast.AST) -> Counter[str]:
    """Count how often code binds each name in its own scope, parameters among them."""
    found: Counter[str] = Counter()
    whole_scope = tree.body[0] if isinstance(tree, ast.Module) and len(tree.body) == 1 else tree
    stack = list(ast.iter_child_nodes(whole_scope))
    for node in stack:
        if isinstance(node, ast.arg):
            found[node.arg] += 1
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found[node.id] += 1
        if not isinstance(node, _SCOPES):
            stack += ast.iter_child_nodes(node)
    return found


def _direct(place: Place) -> bool:
    """Tell whether the function itself binds names, beside the loop, and no function within it."""
    function = place.block.function
    return function is not None and not any(
        isinstance(node, cst.FunctionDef) for node in function.body.body
    )


REFACTORINGS = (
    Refactoring(
        "a loop over epochs and its batches become one", "control", somewhere(_flattened, cst.For)
    ),
    Refactoring(
        "a loop over epochs becomes a recursion", "control", somewhere(_recursive, cst.For)
    ),
)
