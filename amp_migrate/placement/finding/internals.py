"""How a program uses what is private to Apex: `amp._amp_state.loss_scalers`, `optimizer._amp_stash`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.apex.sites import MARKS, Kind, Site, private
from amp_migrate.facts.constants import number
from amp_migrate.facts.paths import root, walk
from amp_migrate.flow.condition import speller
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.plan.cannot import Cannot, spoken
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.order import dominates, inside, position
from amp_migrate.project.reach import reachable, run_around
from amp_migrate.training.origins.meant import meant

_SCALE = (("loss_scale",), ("_loss_scale",), ("loss_scale", "()"))
_TUNED = ("_scale_seq_len", "_min_loss_scale", "_max_loss_scale")
_STOPS = ("handle", "_deactivate")


def read(site: Site) -> str | None:
    """Return "get" or "set" for a use of the loss scale, "stop" where casts end; None for any other private use."""
    parent, call = site.module.tree.parent(site.node), site.module.tree.call_of(site.node)
    stops = call is not None and not call.args
    if stops and isinstance(site.statement, ast.Expr) and private(site) == _STOPS:
        return "stop"
    if _of_scaler(site) not in _SCALE:
        return None
    if isinstance(parent, ast.Assign) and site.node in parent.targets:
        return "set" if len(parent.targets) == 1 else None
    if isinstance(parent, ast.AugAssign):
        return None
    return "get"


def initial_scale(unit: Unit, site: Site) -> str | None:
    """Return the value that an assignment straight after an initialize gives the loss scale."""
    if read(site) != "set":
        return None
    return _set_behind(unit, site)


def tuned(site: Site) -> str | None:
    """Return the setting of the loss scaler that a use reads or sets: "_scale_seq_len"; None for any other use."""
    asked = _of_scaler(site)
    parent = site.module.tree.parent(site.node)
    if len(asked) != 1 or asked[0] not in _TUNED or isinstance(parent, ast.AugAssign):
        return None
    several = isinstance(parent, ast.Assign) and len(parent.targets) > 1
    return None if several and site.node in getattr(parent, "targets", ()) else asked[0]


def _of_scaler(site: Site) -> tuple[str, ...]:
    """Return what a use asks one loss scaler of Apex for."""
    way = private(site)
    return way[2:] if way[:1] == ("loss_scalers",) and way[1:2] and way[1][0] == "[" else ()


def initial_setting(unit: Unit, site: Site) -> tuple[str, ast.expr] | None:
    """Return a setting of the loss scaler that an assignment straight after an initialize gives, and its value."""
    name, stmt = tuned(site), site.statement
    if name is None or not isinstance(stmt, ast.Assign) or site.node not in stmt.targets:
        return None
    known = name == "_scale_seq_len" or number(stmt.value) is not None
    return (name, stmt.value) if known and _set_behind(unit, site) is not None else None


def spelt_setting(project: Project, module: Module, name: str, value: ast.expr) -> str:
    """Return a setting as a GradScaler takes it: torch raises for an interval that is no int, up to which Apex counted as well."""
    text = speller(module.tree)(value)
    if name != "_scale_seq_len":
        return text
    known = number(value)
    if known is not None and known.is_integer():
        return text if _are_whole([value]) else str(int(known))
    return text if _are_whole(list(meant(project, module, value))) else f"int({text})"


def _are_whole(values: list[ast.expr | None]) -> bool:
    """Tell whether expressions are made of whole numbers alone, none of which is divided."""
    parts = [part for value in values if value is not None for part in ast.walk(value)]
    constants = [part.value for part in parts if isinstance(part, ast.Constant)]
    of_numbers = all(isinstance(p, ast.Constant | ast.BinOp | ast.operator) for p in parts)
    divided = any(isinstance(part, ast.Div) for part in parts)
    whole = all(type(constant) is int for constant in constants)
    return bool(parts) and None not in values and of_numbers and whole and not divided


def _set_behind(unit: Unit, site: Site) -> str | None:
    """Return what an assignment in the block of an initialize, behind it, gives."""
    stmt = site.statement
    tree = site.module.tree
    for init in unit.of(Kind.INITIALIZE):
        if init.module is site.module and init.function is site.function:
            block = tree.block(stmt)
            close = tree.block(init.statement) is block
            if close and dominates(tree, init.statement, stmt) and isinstance(stmt, ast.Assign):
                between = block[position(tree, init.statement) + 1 : position(tree, stmt)]
                return None if _moves_scale(unit, site, between) else tree.segment(stmt.value)
    return None


def _moves_scale(unit: Unit, site: Site, stmts: list[ast.stmt]) -> bool:
    """Tell whether some statements load a state of Apex, scale a loss, or save what the loss scale is by then."""
    moving = [
        other
        for other in unit.of(Kind.LOAD_STATE_DICT, Kind.SCALE_LOSS, Kind.STATE_DICT)
        if other is not site
    ]
    holders = {other.function for other in moving}
    tree, nodes = site.module.tree, [node for stmt in stmts for node in walk(stmt)]
    run = (f for n in nodes if isinstance(n, ast.Call) for f in unit.project.callees(n))
    here = [other.node for other in moving if other.module is site.module]
    return any(inside(tree, node, stmt) for node in here for stmt in stmts) or any(
        not holders.isdisjoint(reachable(unit.project, function)) for function in run
    )


def refuse_moved_by_hand(unit: Unit) -> None:
    """Refuse a step that checks the gradients and moves Apex's loss scale itself."""
    for site in unit.of(Kind.LOSS_SCALE):
        if _of_scaler(site)[:1] == ("update_scale",) or _moves_by_a_name(site):
            raise Cannot(
                "AMP909",
                *site.at,
                f"{spoken(site.function)} checks gradients and moves Apex's loss scale, which is the work of the GradScaler",
                "leave the check and the scale to amp.scale_loss and optimizer.step() (DistributedDataParallel "
                "averages gradients over the processes), then run again",
            )


def _moves_by_a_name(site: Site) -> bool:
    """Tell whether a loss scaler is moved by the name that a statement gives it, which may hold others as well."""
    stmt = site.statement
    if not isinstance(stmt, ast.Assign) or stmt.value is not site.node:
        return False
    names = {t.id for t in stmt.targets if isinstance(t, ast.Name)}
    moving = (n for n in site.function.all_nodes if isinstance(n, ast.Attribute))
    return any(n.attr == "update_scale" and root(n) in names for n in moving)


def refuse_other_parts(unit: Unit) -> None:
    """Refuse uses of parts of Apex's state that native AMP does without: ``amp._amp_state.hard_override = True``."""
    for site in unit.of(Kind.LOSS_SCALE):
        way = private(site)
        part = next(iter(way), "loss_scalers")
        if part != "loss_scalers" and way != _STOPS and site.node not in unit.gone:
            raise Cannot(
                "AMP909",
                *site.at,
                f"`_amp_state.{part}` is private to Apex, and a GradScaler has nothing like it",
                "delete this use, then run again",
            )


def refuse_ritual(unit: Unit) -> None:
    """Refuse code that restores the master weights of O2 by hand."""
    for module, node in _private(unit, ast.Attribute):
        if isinstance(node, ast.Attribute) and node.attr in MARKS:
            raise Cannot(
                "AMP909",
                module,
                node,
                f"`{node.attr}` is what Apex adds to an optimizer for O2, and native AMP adds nothing",
                "delete the lines that restore master weights, as the weights themselves are fp32 now, then run again",
            )


def refuse_asked(unit: Unit) -> None:
    """Refuse ``hasattr(optimizer, "_amp_stash")``, which asks whether Apex is on, where the test stays."""
    for module, node in _private(unit, ast.Constant):
        if isinstance(node, ast.Constant) and node.value in MARKS and node not in unit.folded:
            raise Cannot(
                "AMP909",
                module,
                node,
                f"`{node.value}` is looked for to tell whether Apex is on, and native AMP leaves no such mark",
                "ask the flag that turns AMP on instead, then run again",
            )


def _private(unit: Unit, kind: type[ast.expr]) -> Iterator[tuple[Module, ast.expr]]:
    """Yield the nodes of a kind in the files of a unit, and in what its programs run of others that speak of Apex."""
    functions: set[Function] | None = None
    for module in unit.project.modules.values():
        if not any(word in module.tree.text for word in MARKS):
            continue
        own = module in unit.modules
        if not own and functions is None:
            functions = run_around(unit.project, *unit.functions)
        for node in module.tree.nodes(kind):
            if own or unit.project.function_of(module, node) in (functions or ()):
                yield module, node


def by_hand(site: Site) -> str:
    """Return what to do about a use of what is private to Apex and has no counterpart."""
    if site.name.endswith(".LossScaler"):
        return _loss_scaler(site)
    if site.name == "apex.amp.init":
        return (
            "write amp.initialize(model, optimizer, opt_level='O1') and amp.scale_loss(loss, optimizer) in place of "
            "amp.init, its wrap_optimizer and its scale_loss, then run again"
        )
    if not site.name.startswith("apex.amp._amp_state"):
        return "delete this use, then run again"
    used = {n.attr for n in ast.walk(site.statement) if isinstance(n, ast.Attribute)}
    if "_has_overflow" in used:
        return (
            "delete this and run again; then compare scaler.get_scale() before and after scaler.update(), which an "
            "overflow makes smaller"
        )
    if isinstance(site.statement, ast.For):
        return "write the body once, without the loop: one GradScaler scales all losses; then run again"
    return "delete this and run again; then use scaler.get_scale(), scaler.update(value) or scaler.state_dict() here"


def _loss_scaler(site: Site) -> str:
    tree = site.module.tree
    stmt = site.statement
    target = stmt.targets[0] if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1 else None
    if isinstance(target, ast.Attribute):
        read = tree.attributes(target.attr)
        if all(isinstance(n.ctx, ast.Store) for n in read):
            return f"delete the line, as nothing in this file reads `{tree.segment(target)}`, then run again"
    return (
        "scale by a number of your own, or use torch.cuda.amp.GradScaler(init_scale=S, "
        "growth_interval=2**31 - 1), then run again"
    )
