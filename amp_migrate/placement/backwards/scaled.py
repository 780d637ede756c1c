"""The anatomy of one ``with amp.scale_loss(loss, optimizer) as scaled_loss:`` block."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from amp_migrate.apex.sites import Site
from amp_migrate.apex.unpacked.asked import is_partly_unread
from amp_migrate.apex.unpacked.entries import entries
from amp_migrate.apex.unpacked.writes import Entries
from amp_migrate.facts.paths import mentions, path, tail
from amp_migrate.facts.scopes import assigned
from amp_migrate.modules.binding import bind
from amp_migrate.placement.backwards.handed import closed_over, is_bound, is_handed, reached
from amp_migrate.plan.cannot import Cannot
from amp_migrate.project import Module, Project
from amp_migrate.project.order import key
from amp_migrate.training.contexts import scaling_calls
from amp_migrate.training.steps import backward_of, takes_gradients


@dataclass(frozen=True, eq=False, slots=True)
class ScaleLoss:
    """A scale_loss block: its loss and optimizer expressions, the name it binds, and its backward calls.

    `item` is its place among the items of `node`. Where an ExitStack enters it, `entered` is that statement, the
    first in the body of `node`. `handed` are the uses that hand the scaled loss on, and `reached` the backward
    passes elsewhere that may run on it then; `keeps_name` tells whether more is done with it than `backward` and logging.
    """

    site: Site
    node: ast.With
    item: int
    entered: ast.Assign | ast.AnnAssign | None
    loss: ast.expr
    optimizers: ast.expr | None
    alias: str
    loss_id: ast.expr | None
    delayed: ast.expr | None
    unchecked: ast.expr | None
    backwards: tuple[ast.Call, ...]
    handed: tuple[ast.Name, ...]
    reached: tuple[ast.Call, ...]
    keeps_name: bool

    @property
    def bound(self) -> ast.AST | None:
        """The name that the block binds to the scaled loss."""
        if isinstance(self.entered, ast.AnnAssign):
            return self.entered.target
        if self.entered is not None:
            return self.entered.targets[0]
        return self.node.items[self.item].optional_vars

    @property
    def body(self) -> list[ast.stmt]:
        """The statements that run while the block is entered."""
        return [stmt for stmt in self.node.body if stmt is not self.entered]

    @property
    def uses(self) -> list[ast.Name]:
        """The uses of the scaled loss in its block."""
        return _uses(self.body, self.alias)

    @property
    def yielded(self) -> bool:
        """Whether the block is that of a context manager, which hands the scaled loss out."""
        parent = self.site.module.tree.parent
        return any(isinstance(parent(use), ast.Yield) for use in self.handed)

    @property
    def written_once(self) -> ast.Name | None:
        """The only use of the scaled loss, where it is handed on as the first thing in the block."""
        uses = self.uses
        first = len(uses) == 1 and uses[0] in self.handed and not self.keeps_name
        return uses[0] if first and uses[0] in set(ast.walk(self.body[0])) else None

    @property
    def named(self) -> bool:
        """Whether the scaled loss keeps its name, as more is done with it than `backward` and logging."""
        if self.keeps_name:
            return True
        return bool(self.handed) and self.written_once is None

    @property
    def measure(self) -> ast.expr:
        """What the loss is a share or a multiple of: ``loss`` of ``loss / accumulate``."""
        loss = self.loss
        while isinstance(loss, ast.BinOp) and isinstance(loss.op, ast.Div | ast.Mult):
            numbered = isinstance(loss.op, ast.Mult) and isinstance(loss.left, ast.Constant)
            loss = loss.right if numbered else loss.left
        return loss

    def optimizer_list(self) -> tuple[ast.expr, ...]:
        """Return the optimizers as written, the elements of a list display one by one."""
        if self.optimizers is None:
            return ()
        if isinstance(self.optimizers, ast.List | ast.Tuple):
            return tuple(self.optimizers.elts)
        return (self.optimizers,)


def read(project: Project, site: Site) -> ScaleLoss:
    """Read a scale_loss site; raises `Cannot` where no statement shows when its block ends."""
    arguments = _arguments(project, site)
    if arguments is None or "loss" not in arguments:
        raise _odd(site, "the arguments of amp.scale_loss are unpacked here, and cannot be read")
    node, item, entered, alias = _entered(project, site) or _opened(project, site)
    backwards = tuple(_backwards(site.module, node, alias))
    _refuse_stored(site, node, alias, backwards)
    body = [stmt for stmt in node.body if stmt is not entered]
    uses = _uses(body, alias)
    given = tuple(u for u in uses if is_handed(project, site.module, u, bool(backwards)))
    run = (*reached(project, site.module, given), *closed_over(project, site, node, alias))
    bound = any(is_bound(site.module, use) for use in given)
    keeps_name = _keeps_name(project, site.module, node, alias)
    if not (backwards or run or bound or keeps_name):
        raise _odd(site, f"`{alias}.backward()` is not called in the block")
    return ScaleLoss(
        site,
        node,
        item,
        entered,
        arguments["loss"],
        arguments.get("optimizers"),
        alias,
        arguments.get("loss_id"),
        arguments.get("delay_unscale"),
        arguments.get("delay_overflow_check"),
        backwards,
        given,
        run,
        keeps_name,
    )


_Block = tuple[ast.With, int, ast.Assign | ast.AnnAssign | None, str]


def _opened(project: Project, site: Site) -> _Block:
    """Return the `with` of a site, the place among its items, and the name that it binds."""
    tree = site.module.tree
    item = tree.parent(site.call)
    node = tree.parent(item) if item is not None else None
    if not isinstance(item, ast.withitem) or not isinstance(node, ast.With):
        raise _odd(site, "amp.scale_loss does not stand in a `with`")
    alias = item.optional_vars
    if not isinstance(alias, ast.Name):
        raise _odd(site, "amp.scale_loss binds no plain name")
    place = node.items.index(item)
    calls = [i.context_expr for i in node.items if isinstance(i.context_expr, ast.Call)]
    if sum(call in scaling_calls(project) for call in calls) > 1:
        raise _odd(site, "two amp.scale_loss share one `with`")
    for later in node.items[place + 1 :]:
        if any(n.id == alias.id for n in ast.walk(later) if isinstance(n, ast.Name)):
            raise _odd(site, f"`{alias.id}` is used in the head of its own `with`")
    return node, place, None, alias.id


def _entered(project: Project, site: Site) -> _Block | None:
    """Return the block of ``scaled = stack.enter_context(amp.scale_loss(...))``, first in the `with` of the stack."""
    tree = site.module.tree
    call = tree.parent(site.call)
    entered = (
        tree.parent(call) if isinstance(call, ast.Call) and tail(call) == "enter_context" else None
    )
    if not isinstance(entered, ast.Assign | ast.AnnAssign) or not isinstance(call, ast.Call):
        return None
    targets = entered.targets if isinstance(entered, ast.Assign) else [entered.target]
    node, target = tree.parent(entered), targets[0]
    if not isinstance(node, ast.With) or node.body[0] is not entered or len(targets) > 1:
        return None
    for place, item in enumerate(node.items):
        made = item.context_expr
        if isinstance(made, ast.Call) and isinstance(call.func, ast.Attribute):
            stack = project.external(site.module, made.func) == "contextlib.ExitStack"
            named = path(item.optional_vars) if item.optional_vars is not None else None
            if stack and named and named == path(call.func.value) and isinstance(target, ast.Name):
                return node, place, entered, target.id
    return None


_NAMES = ("loss", "optimizers", "loss_id", "model", "delay_unscale", "delay_overflow_check")


def _arguments(project: Project, site: Site) -> dict[str, ast.expr] | None:
    call = site.call
    unpacked = [k.value for k in call.keywords if k.arg is None]
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    settings: Entries = {}
    for options in unpacked:
        empty = _is_empty(project, site, options) or is_partly_unread(project, site, options)
        known = {} if empty else _settings(project, site, options)
        if known is None:
            return None
        settings |= known
    named = dict(zip(_NAMES, call.args, strict=False))
    named |= {k.arg: k.value for k in call.keywords if k.arg is not None}
    return named | settings


def _settings(project: Project, site: Site, options: ast.expr) -> Entries | None:
    """Return what is unpacked, where that says by a constant alone which of several losses it is."""
    found = entries(project, site.module, options, site.call)
    if found is None or not found.keys() <= {"loss_id"}:
        return None
    return found if all(isinstance(value, ast.Constant) for value in found.values()) else None


def _is_empty(project: Project, site: Site, options: ast.expr) -> bool:
    """Tell whether what is unpacked is the ``**kwargs`` of a function that no call gives any, and that is only unpacked."""
    function, scopes = site.function, site.module.scopes
    if not isinstance(options, ast.Name) or options.id != function.parameters.kwarg:
        return False
    uses = scopes.spelt(scopes.owner(options), options.id)
    ups = [site.module.tree.parent(use) for use in uses]
    if not all(isinstance(up, ast.keyword) and up.arg is None for up in ups):
        return False
    calls = [bind(call, function) for call in project.calls_of(function)]
    given = any(call.keywords or call.double_stars for call in calls)
    return bool(calls) and not given and not project.escapes(function)


def _uses(body: list[ast.stmt], alias: str) -> list[ast.Name]:
    parts = (part for stmt in body for part in ast.walk(stmt))
    return [part for part in parts if isinstance(part, ast.Name) and part.id == alias]


def _backwards(module: Module, node: ast.With, alias: str) -> list[ast.Call]:
    """Return the backward passes of a block on the scaled loss, or on what is computed with it."""
    names = _derived(module, node, alias)
    found = [
        part
        for part in ast.walk(node)
        if isinstance(part, ast.Call)
        and (loss := backward_of(part)) is not None
        and _reads(loss, names)
    ]
    return sorted(found, key=key)


def _refuse_stored(site: Site, node: ast.With, alias: str, backwards: tuple[ast.Call, ...]) -> None:
    """Refuse a backward pass on what may hold something that is computed with the scaled loss, or something else."""
    names = _derived(site.module, node, alias)
    stores = [n for n in ast.walk(node) if isinstance(n, ast.Assign) and _reads(n.value, names)]
    held = {path(target) for stmt in stores for target in stmt.targets} - {None}
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            loss = path(call.func.value)
            if call.func.attr == "backward" and call not in backwards and loss in held:
                raise _odd(
                    site,
                    f"`{loss}` is computed with `{alias}` in the block, and has other values elsewhere",
                )


def _derived(module: Module, node: ast.With, alias: str) -> set[str]:
    """Return the name of the scaled loss, and those that only ever hold what a block computes with it."""
    names, more = {alias}, True
    stored = [n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    while more:
        more = False
        for target in (n for n in stored if n.id not in names):
            bindings = module.scopes.bound(target)
            values = [assigned(module.tree, b) if b in stored else None for b in bindings]
            if values and all(v is not None and _reads(v, names) for v in values):
                names.add(target.id)
                more = True
    return names


def _reads(node: ast.expr, names: set[str]) -> bool:
    return any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(node))


def _keeps_name(project: Project, module: Module, node: ast.With, alias: str) -> bool:
    """Tell whether the scaled loss is used for more than `backward` and logging, and so keeps its name."""
    return any(
        mentions(part, alias)
        for part in ast.walk(node)
        if isinstance(part, ast.BinOp)
        or (isinstance(part, ast.Call) and takes_gradients(project, module, part))
    )


def _odd(site: Site, message: str) -> Cannot:
    return Cannot(
        "AMP902",
        *site.at,
        message,
        "write `with amp.scale_loss(loss, optimizer) as scaled_loss:` with `scaled_loss.backward()` in it, then run again",
    )
