"""Networks and inputs that a program puts into fp16 itself: with today's amp they stay in fp32."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from amp_migrate.facts.paths import all_given, path, same
from amp_migrate.facts.stand_ins import ALIAS
from amp_migrate.facts.tree import Tree
from amp_migrate.older.found import Found, Groups
from amp_migrate.older.fp16.anew import made_anew
from amp_migrate.older.sheet import Sheet, Sheets
from amp_migrate.plan.cannot import Unwritable
from amp_migrate.project import Module

_PREFIXES = {"network_to_half": "`1.`", "FP16Model": "`network.`"}
_RENAMED = (
    "names in the state dict of this network have no {} in front of them now, which {} put there: checkpoints of before, which "
    "hold fp16 weights, have to lose it before they are loaded"
)
_TYPES = frozenset({"torch.half", "torch.float16", "torch.HalfTensor", "torch.cuda.HalfTensor"})
_TO_HALF = frozenset({"network_to_half", "FP16Model", "convert_network", "BN_convert_float"})


class Called(Protocol):
    """What is made by a call."""

    module: Module
    call: ast.Call


@dataclass(frozen=True)
class Half:
    """A call that gives a network, or an input of one, in fp16: `inner` is what it is called on, `name` what it calls."""

    module: Module
    call: ast.Call
    inner: ast.expr
    name: str
    groups: Groups


def halves(found: Found) -> Iterator[Half]:
    """Yield the calls that put a network into fp16."""
    for module, node, name in found.fp16_uses():
        call = module.tree.call_of(node)
        if name in _TO_HALF and call is not None:
            for inner in all_given(call)[:1]:
                yield Half(module, call, inner, name, _groups(found, module, call, inner))
    for method in ("half", "to", "type"):
        for module, call in found.method_calls(method):
            assert isinstance(call.func, ast.Attribute)
            given = all_given(call)
            if not given if method == "half" else _is_half(given):
                inner = call.func.value
                name = "cuda" if given and "cuda" in ast.unparse(given[0]) else "half"
                yield Half(module, call, inner, name, _groups(found, module, call, inner))


def _groups(found: Found, module: Module, call: ast.Call, inner: ast.expr) -> Groups:
    return found.groups(module, inner) | found.groups(module, call)


def _is_half(given: list[ast.expr]) -> bool:
    """Tell whether the only argument of a call is the type of fp16."""
    named = path(given[0]) if len(given) == 1 else None
    return named in _TYPES or (
        len(given) == 1 and isinstance(given[0], ast.Constant) and given[0].value in _TYPES
    )


def write_halves(found: Found, networks: Groups, sheets: Sheets, at: Called, named: str) -> None:
    """Leave some networks and what they are given in fp32; refuse, at a call, networks that nothing puts into fp16."""
    every = list(halves(found))
    own = [half for half in every if half.groups & networks]
    if not own:
        raise Unwritable(
            at.module,
            at.call,
            f"it is not seen where {named} becomes fp16",
            "put the network into fp16 where it is made, as by network_to_half(model), then run again",
        )
    _write_networks(own, found, sheets)
    _write_inputs(every, networks, found, sheets)


def _write_networks(own: list[Half], found: Found, sheets: Sheets) -> None:
    """Leave some networks in fp32. Raises `Unwritable` where a program reaches into what `network_to_half` gave."""
    for half in sorted(own, key=_depth, reverse=True):  # inner calls before those around them
        sheet = sheets[half.module]
        if half.name in _PREFIXES:
            _refuse_parts(half, found)
        _initialize(half, sheet) if _is_apart(half, found) else _leave_out(half, sheet)
        sheet.say(half.call, _said(half))
        prefix = _PREFIXES.get(half.name)
        if prefix is not None and _is_saved(half, found):
            sheet.say(half.call, _RENAMED.format(prefix, half.name), migrated=False, code="AMP108")


def _write_inputs(every: list[Half], networks: Groups, found: Found, sheets: Sheets) -> None:
    """Leave inputs of some networks in fp32, as autocast casts them itself."""
    for half in every:
        if half.name not in ("half", "cuda") or half.groups & networks:
            continue
        if _feeds(half, networks, found):
            sheet = sheets[half.module]
            _leave_out(half, sheet)
            sheet.say(
                half.call,
                f"{'becomes `.cuda()`' if half.name == 'cuda' else 'goes'}: autocast casts the inputs of the layers that run in fp16",
            )


def _depth(half: Half) -> int:
    return sum(1 for _ in half.module.tree.ancestors(half.call))


def _is_apart(half: Half, found: Found) -> bool:
    """Tell whether a statement puts a network into fp16 that is made anew, and that no FP16_Optimizer trains."""
    statement = half.module.tree.statement(half.call)
    alone = isinstance(statement, ast.Expr) and statement.value is half.call
    return alone and half.name == "half" and made_anew(found, half.module, half.inner)


def _initialize(half: Half, sheet: Sheet) -> None:
    network = sheet.text(half.inner)
    sheet.put(
        sheet.tree.statement(half.call),
        f'{network} = {ALIAS}.initialize({network}, opt_level="O2")',
    )


def _leave_out(half: Half, sheet: Sheet) -> None:
    tree = sheet.tree
    statement = tree.statement(half.call)
    stays = sheet.text(half.inner)
    if half.name == "cuda":
        sheet.put(half.call, f"{stays}.cuda()")
        return
    if isinstance(statement, ast.Expr) and statement.value is half.call:
        if path(half.inner) is not None:
            sheet.drop(statement)
            return
    if isinstance(statement, ast.Assign) and statement.value is half.call:
        if len(statement.targets) == 1 and same(statement.targets[0], half.inner):
            sheet.drop(statement)
            return
    sheet.put(half.call, stays if _binds(half.inner) else f"({stays})")


def _binds(node: ast.expr) -> bool:
    return isinstance(node, ast.Call | ast.Name | ast.Attribute | ast.Subscript)


def _said(half: Half) -> str:
    if half.name == "cuda":
        return "becomes `.cuda()`: under autocast the weights stay fp32"
    if half.name == "BN_convert_float":
        return "goes: under autocast batch normalization has fp32 weights anyway"
    return "goes: under autocast the weights stay fp32"


def _is_saved(half: Half, found: Found) -> bool:
    return any(
        isinstance(call.func, ast.Attribute) and found.groups(module, call.func.value) & half.groups
        for method in ("state_dict", "load_state_dict")
        for module, call in found.method_calls(method)
    )


def _refuse_parts(half: Half, found: Found) -> None:
    """Refuse a program that reaches into what stands around the network: ``model[1]``, ``model.network``."""
    for module in found.project.modules.values():
        parts: list[ast.Subscript | ast.Attribute] = [*module.tree.nodes(ast.Subscript)]
        if half.name == "FP16Model":
            parts += module.tree.attributes("network")
        for node in parts:
            if found.groups(module, node.value) & half.groups:
                raise Unwritable(
                    module,
                    node,
                    f"`{module.tree.segment(node)}` reaches into what {half.name} made around the network",
                    "keep the network itself in a variable and use that here, then run again",
                )


def _feeds(half: Half, networks: Groups, found: Found) -> bool:
    """Tell whether an input in fp16 goes into a network, where it is made or by its name."""
    tree: Tree = half.module.tree
    up = tree.user(half.call)
    if isinstance(up, ast.Call) and half.call is not up.func:
        return bool(found.groups(half.module, up.func) & networks)
    if (
        not isinstance(up, ast.Assign)
        or len(up.targets) != 1
        or not same(up.targets[0], half.inner)
    ):
        return False
    scope = tree.scope(half.call)
    return any(
        found.groups(half.module, call.func) & networks
        and any(same(a, half.inner) for a in all_given(call))
        for call in tree.nodes(ast.Call)
        if tree.scope(call) is scope
    )
