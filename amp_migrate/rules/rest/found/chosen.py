"""A variable that holds Apex's wrapper or torch's, by a flag: ``DDP = ApexDDP if args.apex else TorchDDP``."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.facts.paths import bottom, path
from amp_migrate.placement.backwards.freezing import frozen_later
from amp_migrate.rules.base import FileContext
from amp_migrate.rules.rest.found.device import device, stays
from amp_migrate.rules.rest.found.type_names import mentions, names_type
from amp_migrate.rules.rest.found.uses import Native, is_skipped, is_variable, origin


@dataclass(frozen=True, slots=True)
class Chosen:
    """A conditional expression between the two classes, and the argument that keeps apart what they did."""

    node: ast.IfExp
    native: ast.expr
    broadcast: str


def chosen(context: FileContext, site: Site, native: Native) -> Chosen | None:
    """Return the choice that a use is an arm of, or reads by its variable, where torch's class can stand in both arms.

    Buffers are sent as before: torch sends them, Apex never did. So the flag has to mean the same at each call.
    """
    tree = site.module.tree
    node = tree.parent(site.node)
    if not isinstance(node, ast.IfExp):
        node = _value(site)
    target = tree.parent(node) if isinstance(node, ast.IfExp) else None
    if not isinstance(node, ast.IfExp) or not isinstance(target, ast.Assign):
        return None
    arms = {s.node: s for s in context.of(Kind.OTHER)}
    apex, other = (node.body, node.orelse) if node.body in arms else (node.orelse, node.body)
    of_apex = arms.get(apex)
    if of_apex is None or not _imported(context, of_apex) or not _is(context, site, other, native):
        return None
    test, negated = _asked(node.test)
    flag, name = path(test), target.targets[0]
    if flag is None or len(target.targets) != 1 or not isinstance(name, ast.Name):
        return None
    if not _same_flag(context, test, node):
        return None
    reads = _reads(context, site, name)
    if reads is None or not all(_follows(context, arms, node, read) for read in reads):
        return None
    means_apex = (apex is node.body) is not negated
    return Chosen(node, other, f"not {flag}" if means_apex else f"bool({flag})")


def defaults(context: FileContext, site: Site, call: ast.Call, native: Native) -> list[str]:
    """Return what torch's class is given to do as Apex's did, where a call gives it nothing but the network.

    A call that torch's class reaches as well, by an import in the other arm of a test, is for that as it was.
    """
    arm = _arm(context, site, call, native)
    if arm is None:
        return [
            f"device_ids=[{device(context.project, site.module, call)}]",
            "broadcast_buffers=False",
        ]
    test, negated = _asked(arm.test)
    flag = path(test)
    if flag is None or not _same_flag(context, test, call.func):
        return []
    means_apex = (_holds(site, arm.body)) is not negated
    return [f"broadcast_buffers={f'not {flag}' if means_apex else f'bool({flag})'}"]


def _arm(context: FileContext, site: Site, call: ast.Call, native: Native) -> ast.If | None:
    """Return the test that chooses which class a name is imported as, where a call stands behind both imports."""
    alias, tree = origin(site), site.module.tree
    test = tree.holder(tree.statement(alias)) if alias is not None else None
    if alias is None or not isinstance(test, ast.If) or test in tree.ancestors(call):
        return None
    other = test.orelse if _holds(site, test.body) else test.body
    names = {
        f"{stmt.module}.{a.name}": a.asname or a.name
        for stmt in other
        if isinstance(stmt, ast.ImportFrom)
        for a in stmt.names
    }
    known = (names.get(dotted) for dotted in (native.dotted, *native.also))
    return test if (alias.asname or alias.name) in known else None


def _holds(site: Site, block: list[ast.stmt]) -> bool:
    """Tell whether the import of a use stands in a block."""
    alias = origin(site)
    return alias is not None and site.module.tree.statement(alias) in block


def _asked(test: ast.expr) -> tuple[ast.expr, bool]:
    """Return the flag that a test asks for, and whether it asks for its contrary."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand, True
    return test, False


def _value(site: Site) -> ast.expr | None:
    """Return what the variable of a use is assigned, the only time that it is."""
    return site.module.scopes.only_value(site.node) if isinstance(site.node, ast.Name) else None


def _imported(context: FileContext, site: Site) -> bool:
    alias = origin(site)
    if alias is None or is_variable(context, site) or is_skipped(site):
        return False
    return site.module.tree.enclosing(alias, ast.Try) is None


def _is(context: FileContext, site: Site, node: ast.expr, native: Native) -> bool:
    meanings = context.project.lookup.expression(site.module, node)
    return len(meanings) == 1 and meanings[0] in (native.dotted, *native.also)


def _reads(context: FileContext, site: Site, name: ast.Name) -> list[ast.Name] | None:
    """Return the reads of a variable that is bound once, in its own file; None where others may read it."""
    module = site.module
    owner = module.scopes.owner(name)
    if owner is None or isinstance(owner, ast.ClassDef):
        return None
    if module.scopes.bindings(owner, name.id) != [name]:
        return None
    if isinstance(owner, ast.Module) and any(
        where is not module or not isinstance(node, ast.Name)
        for where, node in mentions(context, module, name.id)
    ):
        return None
    return site.module.scopes.reads(owner, name.id)


def _follows(
    context: FileContext, arms: dict[ast.expr | ast.stmt, Site], choice: ast.IfExp, read: ast.Name
) -> bool:
    """Tell whether a read only names the type, or wraps a model and gives nothing else, under the same flag."""
    module = context.module
    if read not in arms or is_skipped(arms[read]):
        return False
    call = module.tree.call_of(read)
    if call is None:
        return names_type(context, module, read)
    plain = len(call.args) == 1 and not call.keywords and not isinstance(call.args[0], ast.Starred)
    if not plain or frozen_later(context.project, module, call):
        return False
    return _same_flag(context, _asked(choice.test)[0], call)


def _same_flag(context: FileContext, test: ast.expr, place: ast.expr) -> bool:
    """Tell whether a variable or an attribute as ``args.apex`` is the same where the class is chosen and at another place."""
    module, root = context.module, test
    if isinstance(test, ast.Attribute):
        if not stays(context.project, module, test.attr) or _is_property(context, test.attr):
            return False
    root = bottom(root)
    if not isinstance(root, ast.Name):
        return False
    scopes, owner = module.scopes, module.scopes.owner(root)
    if owner is None or not scopes.sees(scopes.scope_of(place), root):
        return False
    bindings = module.scopes.bindings(owner, root.id)
    only = bindings[0] if len(bindings) == 1 else None
    if isinstance(only, ast.arg) or isinstance(test, ast.Attribute):
        return only is not None and not isinstance(only, ast.alias)
    in_loop = only is not None and any(
        isinstance(up, ast.For | ast.While) for up in module.tree.ancestors(only)
    )
    return isinstance(only, ast.Name) and not in_loop


def _is_property(context: FileContext, name: str) -> bool:
    """Tell whether a function of the project has the name of an attribute, and may compute it anew each time."""
    return any(node.name == name for _, node in context.project.nodes(ast.FunctionDef))
