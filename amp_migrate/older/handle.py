"""`amp.init` and its handle, the interface of 2018, written as `amp.initialize` with O1."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from amp_migrate.facts.constants import is_true
from amp_migrate.facts.paths import path, root, tail
from amp_migrate.facts.stand_ins import ALIAS
from amp_migrate.older.alone import cast_by, casts_again
from amp_migrate.older.found import Found, Groups
from amp_migrate.older.made_behind import initialize_where_made
from amp_migrate.older.sheet import Sheet, Sheets, lines_of
from amp_migrate.older.words import HANDLE, Words
from amp_migrate.older.wraps import Wrap, initialized, named, networks_of
from amp_migrate.plan.cannot import Unwritable
from amp_migrate.project import Module

_PARAMETERS = ("enabled", "loss_scale", "enable_caching", "verbose", "allow_banned")
_WRAP = ("optimizer", "num_loss")
_NATIVE = frozenset(
    {
        "step", "zero_grad", "param_groups", "state_dict", "load_state_dict", "add_param_group", "state",
    }
)  # fmt: skip
_HERE = "delete this use of the handle, then run again"


@dataclass(eq=False)
class Handle:
    """A call of `amp.init`, the optimizers that its handle wraps, and the names of both."""

    module: Module
    call: ast.Call
    handles: Groups
    wraps: list[Wrap] = field(default_factory=list)
    wrapped: Groups = frozenset()
    networks: Groups = frozenset()
    sheets: Sheets = field(default_factory=Sheets)

    @property
    def words(self) -> Words:
        """How it is spoken of."""
        return HANDLE

    @property
    def places(self) -> list[tuple[str, int]]:
        """The line of the call, then those that wrap an optimizer."""
        own = [(self.module, self.call), *((w.module, w.call) for w in self.wraps)]
        return lines_of(own)

    def describe(self, found: Found) -> dict[Module, Sheet]:
        """Return its files with it written as today's amp. Raises `Unwritable`."""
        self.sheets = Sheets()
        enabled = _enabled(self)
        if not self.wraps:
            _alone(self, found, enabled)
            return self.sheets
        _optimizers(self, found)
        _handle(self, found)
        for wrap in self.wraps:
            _refuse_out_of_reach(self, wrap, enabled)
            more = (
                f"enabled={self.sheets[self.module].text(enabled)}, " if enabled is not None else ""
            )
            sheet = self.sheets[wrap.module]
            networks = networks_of(self.networks, found, wrap)
            sheet.put(wrap.statement, initialized(sheet, wrap, networks, f'{more}opt_level="O1"'))
            losses = wrap.given.get("num_loss")
            if losses is not None and not (isinstance(losses, ast.Constant) and losses.value == 1):
                message = (
                    "one GradScaler scales all losses, where Apex had a scale for each of num_loss"
                )
                sheet.say(wrap.call, message, migrated=False, code="AMP102")
        return self.sheets


def _alone(handle: Handle, found: Found, enabled: ast.expr | None) -> None:
    """Write a handle that wraps nothing as the initialize of networks that only run, or drop it behind one that trains."""
    sheet = handle.sheets[handle.module]
    if enabled is None and casts_again(sheet, handle.call, handle.handles, found):
        sheet.say(handle.call, "amp.initialize casts already, and this goes", code="AMP102")
        sheet.drop(sheet.tree.statement(handle.call))
        return
    networks = cast_by(sheet, handle.call, handle.handles, found)
    if not networks:
        initialize_where_made(sheet, handle.call, enabled, found)
        return
    more = f"enabled={sheet.text(enabled)}, " if enabled is not None else ""
    target = ", ".join(networks)
    given = target if len(networks) == 1 else f"[{target}]"
    text = f'{target} = {ALIAS}.initialize({given}, {more}opt_level="O1")'
    sheet.put(sheet.tree.statement(handle.call), text)


def handles(found: Found) -> list[Handle]:
    """Return the calls of `amp.init` with what their handles wrap."""
    result = [
        Handle(module, call, found.group(module, call))
        for module, call in found.project.nodes(ast.Call)
        if tail(call) == "init" and found.project.apex(module, call.func) == "apex.amp.init"
    ]
    for module, call in found.method_calls("wrap_optimizer") if result else ():
        assert isinstance(call.func, ast.Attribute)
        groups = found.groups(module, call.func.value)
        for handle in result:
            if groups & handle.handles:
                _wrapped(handle, module, call, found)
    return result


def _wrapped(handle: Handle, module: Module, call: ast.Call, found: Found) -> None:
    given = dict(zip(_WRAP, call.args, strict=False))
    given |= {k.arg: k.value for k in call.keywords if k.arg is not None}
    wrap = Wrap(module, call, module.tree.statement(call), given, "optimizer")
    handle.wraps.append(wrap)
    handle.wrapped |= found.group(module, call)
    if "optimizer" in given:
        trains = {g for o in found.made_with(module, wrap.inner) for g in o.trains}
        handle.networks |= found.trained(module, wrap.inner) | trains


def _enabled(handle: Handle) -> ast.expr | None:
    """Return what turns the handle on; None where it always is."""
    given = named(handle.sheets[handle.module], handle.call, _PARAMETERS)
    scale = given.get("loss_scale")
    if scale is not None and not (isinstance(scale, ast.Constant) and scale.value == "dynamic"):
        raise Unwritable(
            handle.module,
            handle.call,
            "amp.init takes a loss scale here that optimizers which are wrapped do not use",
            "delete loss_scale, then run again",
        )
    enabled = given.get("enabled")
    always = is_true(enabled)
    return None if always else enabled


def _refuse_out_of_reach(handle: Handle, wrap: Wrap, enabled: ast.expr | None) -> None:
    """Refuse a condition that is not the same where the optimizer is wrapped."""
    if enabled is None or isinstance(enabled, ast.Constant):
        return
    scopes = handle.module.scopes
    name = next((n for n in ast.walk(enabled) if isinstance(n, ast.Name)), None)
    owner = scopes.owner(name) if name is not None else None
    same = wrap.module is handle.module and name is not None
    here = scopes.find(scopes.scope_of(wrap.call), name.id) if name is not None else None
    if not (same and path(enabled) is not None and owner is here and owner is not None):
        seen = False
    else:
        assert name is not None
        text = path(enabled)
        stores = [
            n
            for n in handle.module.tree.nodes(ast.Attribute, ast.Name)
            if not isinstance(n.ctx, ast.Load) and path(n) == text
        ]
        seen = len(stores) <= 1 and len(scopes.bindings(owner, name.id)) == 1
    if not seen:
        raise Unwritable(
            handle.module,
            enabled,
            "whether amp is on is decided here, and that cannot be read where the optimizer is wrapped",
            "wrap the optimizer in the same function, by a flag that does not change, then run again",
        )


def _optimizers(handle: Handle, found: Found) -> None:
    """Write what is done with the wrapped optimizers."""
    for module, node in found.project.nodes(ast.Attribute):
        if not found.groups(module, node.value) & handle.wrapped:
            continue
        called = module.tree.call_of(node)
        sheet = handle.sheets[module]
        if node.attr == "scale_loss" and called is not None:
            _refuse_no_item(module, called)
            loss = named(sheet, called, ("loss",)).get("loss")
            if loss is None:
                raise Unwritable(module, called, "no loss is given here", _HERE)
            text = f"{ALIAS}.scale_loss({sheet.text(loss)}, {sheet.text(node.value)})"
            sheet.put(called, text)
        elif node.attr == "_optimizer" and isinstance(node.ctx, ast.Load):
            sheet.put(node, sheet.text(node.value))
        elif node.attr == "step" and called is not None and (called.args or called.keywords):
            raise Unwritable(
                module,
                called,
                "a GradScaler cannot step with a closure",
                "write the passes of the closure in front of optimizer.step(), then run again",
            )
        elif node.attr not in _NATIVE:
            raise Unwritable(
                module,
                node,
                f"`{module.tree.segment(node)}` is known to the wrapped optimizer of Apex alone",
                "delete this use, then run again",
            )


def _refuse_no_item(module: Module, call: ast.Call) -> None:
    if not isinstance(module.tree.parent(call), ast.withitem):
        raise Unwritable(
            module,
            call,
            "the context of a scaled loss is made here and entered elsewhere",
            "write `with optimizer.scale_loss(loss) as scaled_loss:` here, then run again",
        )


def _handle(handle: Handle, found: Found) -> None:
    """Write what else is done with the handle, and drop it."""
    wraps = {wrap.call.func for wrap in handle.wraps}
    for module in found.project.modules.values():
        for node in module.tree.nodes(ast.Name, ast.Attribute):
            if isinstance(node.ctx, ast.Load) and found.groups(module, node) & handle.handles:
                _use(handle, module, node, wraps)
    sheet = handle.sheets[handle.module]
    statement = sheet.tree.statement(handle.call)
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is not handle.call:
        raise Unwritable(
            handle.module,
            handle.call,
            "the handle is not assigned to a name or an attribute",
            "assign it to one, then run again",
        )
    sheet.drop(statement)
    sheet.say(handle.call, "goes: the casts of native AMP are blocks of autocast", code="AMP102")


def _use(
    handle: Handle, module: Module, node: ast.Name | ast.Attribute, wraps: set[ast.expr]
) -> None:
    tree = module.tree
    up = tree.parent(node)
    called = tree.call_of(up) if isinstance(up, ast.Attribute) else None
    if isinstance(up, ast.Attribute) and called is not None:
        if up in wraps:
            return
        sheet = handle.sheets[module]
        statement = tree.statement(called)
        if up.attr == "_clear_cache" and isinstance(statement, ast.Expr):
            sheet.drop(statement)
            sheet.say(
                called, "goes: autocast drops its copies of the weights itself", code="AMP102"
            )
            return
        if up.attr == "_disable_casts" and isinstance(tree.parent(called), ast.withitem):
            sheet.put(called, f"{ALIAS}.disable_casts()")
            return
    if isinstance(up, ast.Attribute) and root(up) == root(node) and isinstance(up.ctx, ast.Load):
        message = f"`{tree.segment(up)}` has no counterpart in native AMP"
    else:
        message = "the handle of amp.init is used as a value here, and native AMP has none"
    raise Unwritable(module, node, message, _HERE)
