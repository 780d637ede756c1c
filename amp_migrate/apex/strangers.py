"""Calls that look like Apex on a name that nothing ties to it: ``amp.scale_loss(...)`` without an import."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.facts.below import every
from amp_migrate.facts.paths import bottom, path
from amp_migrate.facts.scopes import global_name
from amp_migrate.plan.cannot import Cannot, place_of
from amp_migrate.project import Module, Project
from amp_migrate.project.programs import files_of

_OF_AMP = frozenset({"initialize", "scale_loss", "master_params", "state_dict", "load_state_dict"})
_OF_APEX_ALONE = frozenset({"scale_loss", "master_params"})
_BINDERS = frozenset({"exec", "eval", "setattr", "globals", "locals", "vars"})


class Stranger(NamedTuple):
    """A call ``receiver.name(...)``; `unbound`: nothing in the file binds the receiver's root, so that it raises NameError."""

    module: Module
    call: ast.Call
    receiver: str
    name: str
    unbound: bool

    @property
    def root(self) -> str:
        """The name that the receiver begins with."""
        return self.receiver.partition(".")[0]


def strangers(project: Project, sites: Iterable[Site]) -> list[Stranger]:
    """Return the calls of a project that look like Apex and are none of its sites."""
    known = {part for site in sites for part in every(site.node)}
    found = [
        stranger
        for module in project.modules.values()
        for stranger in _of(project, module)
        if stranger.call not in known
    ]
    unbound = {stranger.root for stranger in found if stranger.unbound}
    published = {
        node.attr
        for module in (project.modules.values() if unbound else ())
        for node in module.tree.attributes(*unbound)
        if isinstance(node.ctx, ast.Store) and _is_module(project, module, node.value)
    }
    return [s for s in found if not (s.unbound and s.root in published)]


def refuse_reached(project: Project, found: Iterable[Stranger], sites: Iterable[Site]) -> None:
    """Raise `Cannot` where amp is stored in an attribute that something which looks like Apex may read unseen."""
    unseen = [s for s in found if "." in s.receiver and not s.unbound]
    for site in sites if unseen else ():
        parent = site.module.tree.parent(site.node)
        if site.kind is not Kind.VALUE or not isinstance(parent, ast.Assign):
            continue
        names = {target.attr for target in parent.targets if isinstance(target, ast.Attribute)}
        near = files_of(project, site.module)
        for stranger in unseen:
            if stranger.receiver.rpartition(".")[2] in names and stranger.module.path in near:
                where = place_of(stranger.module, stranger.call)
                raise Cannot(
                    "AMP909",
                    *site.at,
                    f"amp is stored here, and `{stranger.receiver}` ({where}) may be it",
                    f"import amp there in place of `{stranger.receiver}`, then run again",
                    (where,),
                )


def _of(project: Project, module: Module) -> Iterator[Stranger]:
    for call in module.tree.nodes(ast.Call):
        func = call.func
        if not isinstance(func, ast.Attribute) or func.attr not in _OF_AMP:
            continue
        receiver = path(func.value)
        if receiver is None or receiver.rpartition(".")[2] != "amp":
            continue
        unbound = receiver in ("amp", "apex.amp") and _is_unbound(module, bottom(func.value))
        alone = func.attr in _OF_APEX_ALONE or _sets_level(call)
        if unbound or (alone and _is_unknown(project, module, func)):
            yield Stranger(module, call, receiver, func.attr, unbound)


def _sets_level(call: ast.Call) -> bool:
    """Tell whether a call can only be an `amp.initialize`."""
    return any(k.arg == "opt_level" for k in call.keywords)


def _is_module(project: Project, module: Module, node: ast.expr) -> bool:
    """Tell whether an attribute of a module is set from outside: ``train.amp = amp``."""
    if path(node) is None:
        return False
    external = project.external(module, node) or ""
    return isinstance(project.resolve(module, node), Module) or external == "builtins"


def _is_unbound(module: Module, name: ast.expr) -> bool:
    """Tell whether no scope binds a name, and nothing that could bind it unseen stands in the file."""
    if not names_nothing(module, name):
        return False
    called = {
        n.func.id
        for n in module.tree.nodes(ast.Call)
        if isinstance(n.func, ast.Name) and not _is_constant_lookup(module, n)
    }
    return not module.scopes.stars and not called & _BINDERS


def names_nothing(module: Module, node: ast.AST) -> bool:
    """Tell whether no statement of a file binds a name; ``import *`` may."""
    if not isinstance(node, ast.Name):
        return False
    owner = module.scopes.owner(node)
    return owner is None or not module.scopes.bindings(owner, node.id)


def _is_constant_lookup(module: Module, call: ast.Call) -> bool:
    """Tell whether ``globals()`` only gives or takes one name that is written out."""
    up = module.tree.parent(call)
    return isinstance(up, ast.Subscript) and global_name(up) is not None


def _is_unknown(project: Project, module: Module, func: ast.Attribute) -> bool:
    """Tell whether nothing is known of what a call is made on."""
    meaning = project.resolve(module, func)
    if names_nothing(module, bottom(func.value)):
        return meaning is None or isinstance(meaning, str)
    if meaning is not None or project.external(module, func.value):
        return False
    return not project.instance_classes(module, func.value)
