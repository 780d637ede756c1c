"""Every place where a project uses Apex, and what kind of use it is."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial

from amp_migrate.apex import passthrough
from amp_migrate.apex.listed import listed
from amp_migrate.apex.unread import is_only_told, is_unread
from amp_migrate.facts.paths import bottom
from amp_migrate.plan.model import Place
from amp_migrate.project import Function, Module, Project
from amp_migrate.source.span import Span
from amp_migrate.values.several import one_of_several

_STATE = "_amp_state"
MARKS = ("_lazy_init_maybe_master_weights", "_amp_stash", "_amp_lazy_init", "_prepare_amp_backward")
"""What Apex calls its own attributes and methods of the optimizers that it initializes."""


class Kind(enum.Enum):
    """The uses of Apex that the tool tells apart."""

    IMPORT = "import"
    INITIALIZE = "amp.initialize"
    SCALE_LOSS = "amp.scale_loss"
    MASTER_PARAMS = "amp.master_params"
    STATE_DICT = "amp.state_dict"
    LOAD_STATE_DICT = "amp.load_state_dict"
    LOSS_SCALE = "loss scale of amp._amp_state"
    UNREAD = "a LossScaler that nothing reads"
    DISABLE_CASTS = "amp.disable_casts"
    REGISTER = "amp.register_*_function"
    DECORATOR = "amp.*_function"
    LISTED = "amp.lists"
    HANDED_ON = "Apex in a function that only calls it"
    VALUE = "amp as a value"
    OTHER_AMP = "amp"
    OTHER = "apex"


AMP_CALLS = {
    "initialize": Kind.INITIALIZE,
    "scale_loss": Kind.SCALE_LOSS,
    "master_params": Kind.MASTER_PARAMS,
    "state_dict": Kind.STATE_DICT,
    "load_state_dict": Kind.LOAD_STATE_DICT,
    "disable_casts": Kind.DISABLE_CASTS,
    "register_half_function": Kind.REGISTER,
    "register_float_function": Kind.REGISTER,
    "register_promote_function": Kind.REGISTER,
    "half_function": Kind.DECORATOR,
    "float_function": Kind.DECORATOR,
    "promote_function": Kind.DECORATOR,
}


SCALE_LOSS = "apex.amp.scale_loss"
HANDED_ON = frozenset({"apex", "apex.amp", SCALE_LOSS})
"""What of Apex may travel as a value: a GradScaler goes along in its place."""


@dataclass(frozen=True, eq=False, slots=True)
class Site:
    """One use of Apex: `node` is the call where the kind is a call, else the expression or statement."""

    kind: Kind
    module: Module
    function: Function
    node: ast.expr | ast.stmt
    name: str

    @property
    def span(self) -> Span:
        """Where it stands."""
        return self.module.tree.span(self.node)

    @property
    def place(self) -> Place:
        """Where it stands, with its file."""
        return Place(self.module.path, self.span)

    @property
    def at(self) -> tuple[Module, ast.AST]:
        """Its file, and the node that a message points at."""
        return self.module, self.node

    @property
    def statement(self) -> ast.stmt:
        """The innermost statement that holds it."""
        return self.module.tree.statement(self.node)

    @property
    def call(self) -> ast.Call:
        """The node of a site that is a call."""
        if not isinstance(self.node, ast.Call):
            raise TypeError(f"{self.kind} is no call")
        return self.node


def sites(project: Project, module: Module) -> Iterator[Site]:
    """Yield the Apex sites of a module in source order."""
    found = list(_imports(project, module))
    found += _expressions(project, module)
    yield from sorted(found, key=lambda site: site.span)


def is_apex(name: str) -> bool:
    """Tell whether a dotted name is Apex or something in it."""
    return name == "apex" or name.startswith("apex.")


def _imports(project: Project, module: Module) -> Iterator[Site]:
    if project.holds_apex:
        return
    for node in module.tree.nodes(ast.Import, ast.ImportFrom):
        name = None
        if isinstance(node, ast.Import):
            name = next((a.name for a in node.names if is_apex(a.name)), None)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and is_apex(node.module or ""):
            name = node.module
        if name is None and isinstance(node, ast.ImportFrom):
            name = _reexported(project, module, node)
        if name:
            yield Site(Kind.IMPORT, module, project.function_of(module, node), node, name)


def _reexported(project: Project, module: Module, node: ast.ImportFrom) -> str | None:
    """Return the Apex module that a module of the project hands on: ``from .precision import amp``."""
    names = {alias.asname or alias.name for alias in node.names}
    for use in module.tree.nodes(ast.Name):
        if use.id in names and isinstance(use.ctx, ast.Load):
            name = project.apex(module, use)
            if name in ("apex", "apex.amp"):
                return name
    return None


def _expressions(project: Project, module: Module) -> Iterator[Site]:
    tree = module.tree
    named = cache(partial(_apex_name, project, module))
    for node in tree.nodes(ast.Name, ast.Attribute):
        if not isinstance(node.ctx, ast.Load):
            continue
        parent = tree.parent(node)
        if isinstance(parent, ast.Attribute) and named(parent) and not _is_written(parent):
            continue
        name = named(node)
        if name is None and (call := tree.call_of(node)) is not None:
            name = passthrough.target(project, call)
        if name is None or _is_visited(project, module, node):
            continue
        yield _site(project, module, node, name)


def _is_written(node: ast.Attribute) -> bool:
    """Tell whether an attribute is set or deleted, so that the use of Apex is what it belongs to."""
    return not isinstance(node.ctx, ast.Load)


def _is_visited(project: Project, module: Module, node: ast.expr) -> bool:
    """Tell whether a use is of a name that holds other objects than `amp` as well."""
    name = bottom(node)
    if not isinstance(name, ast.Name) or _apex_name(project, module, name) is None:
        return False
    return one_of_several(project.values, module, name)


def _apex_name(project: Project, module: Module, node: ast.expr) -> str | None:
    name = project.apex(module, node)
    return name if name is not None and is_apex(name) else None


def _site(project: Project, module: Module, node: ast.expr, name: str) -> Site:
    tree = module.tree
    function = project.function_of(module, node)
    if passthrough.is_passthrough(project, function):
        return Site(Kind.HANDED_ON, module, function, node, name)
    call = tree.call_of(node)
    tail = name.removeprefix("apex.amp.") if name.startswith("apex.amp.") else ""
    kind = AMP_CALLS.get(tail)
    if kind is not None and call is not None:
        return Site(kind, module, function, call, name)
    if name in HANDED_ON:
        return Site(Kind.VALUE, module, function, node, name)
    if call is not None and isinstance(tree.parent(call), ast.Expr) and listed(name, call):
        return Site(Kind.LISTED, module, function, call, name)
    if kind is Kind.DECORATOR:
        return Site(kind, module, function, node, name)
    if tail.startswith(_STATE):
        return Site(Kind.LOSS_SCALE, module, function, _widest(tree.parents, node), name)
    if name == "apex.amp.scaler.LossScaler" and call is not None:
        if is_unread(project, module, call):
            return Site(Kind.UNREAD, module, function, call, name)
    if name.startswith("apex.amp."):
        if is_only_told(project, module, node):
            return Site(Kind.UNREAD, module, function, node, name)
    if name.startswith("apex.amp"):
        return Site(Kind.OTHER_AMP, module, function, node, name)
    return Site(Kind.OTHER, module, function, node, name)


def _widest(parents: dict[ast.AST, ast.AST], node: ast.expr) -> ast.expr:
    """Climb from `amp._amp_state` to the whole `amp._amp_state.loss_scalers[0].loss_scale()`."""
    while True:
        up = parents.get(node)
        if isinstance(up, ast.Attribute) or (isinstance(up, ast.Subscript) and up.value is node):
            node = up
        elif isinstance(up, ast.Call) and up.func is node and isinstance(node, ast.Attribute):
            if node.attr not in ("loss_scale",):
                return node
            node = up
        else:
            return node


def amp_expression(site: Site) -> ast.expr | None:
    """Return the part of a site that is `amp` itself, or a function of it by another name."""
    node: ast.AST = site.node
    if isinstance(node, ast.Call):
        node = node.func
        if site.kind is Kind.SCALE_LOSS and _last(node) != site.name.rpartition(".")[2]:
            return node
    if site.kind is Kind.VALUE:
        return node if isinstance(node, ast.expr) else None
    if site.kind is Kind.LOSS_SCALE:
        while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
            if isinstance(node, ast.Attribute) and node.attr == _STATE:
                return node.value
            node = node.func if isinstance(node, ast.Call) else node.value
        return None
    return node.value if isinstance(node, ast.Attribute) else None


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def private(site: Site) -> tuple[str, ...]:
    """Return the way from ``_amp_state`` to a private part of Apex: ``("loss_scalers", "[0]", "loss_scale", "()")``."""
    way: list[str] = []
    node: ast.AST = site.node
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        if isinstance(node, ast.Attribute):
            if node.attr == _STATE:
                break
            way.append(node.attr)
        else:
            way.append(f"[{ast.unparse(node.slice)}]" if isinstance(node, ast.Subscript) else "()")
        node = node.value if not isinstance(node, ast.Call) else node.func
    return tuple(reversed(way)) if _STATE in site.name.split(".") else ()
