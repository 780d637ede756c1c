"""Uses of `amp` that nothing in their file binds, and that can only mean Apex: its import was forgotten there, or hides."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from amp_migrate.apex.apart import elements, optimizer_expressions
from amp_migrate.apex.sites import Kind, Site
from amp_migrate.apex.strangers import Stranger, names_nothing
from amp_migrate.facts.paths import bottom, root
from amp_migrate.facts.stand_ins import ALIAS
from amp_migrate.facts.tree import Tree
from amp_migrate.placement.finding.build import Index
from amp_migrate.project import Module, Project, build

Name = tuple[str, str]


def indexed(trees: Mapping[str, Tree], supply: bool, known: Project | None = None) -> Index:
    """Return the Apex sites of a project; `supply` takes the names whose import was forgotten for what they mean.

    `known` is the project of the trees where it was built already.
    """
    own = {(path, ALIAS): "apex.amp" for path, tree in trees.items() if ALIAS in tree.text}
    index = Index(known or build(trees, meant=own))
    names = forgotten(index) if supply else {}
    return Index(build(trees, meant=names | own)) if names else index


def forgotten(index: Index) -> dict[Name, str]:
    """Return what names that nothing binds mean beyond doubt, Apex or its amp, by the path of their file and the name.

    Every read of the name in the file is a call of amp, or for Apex itself of something else in it, and every optimizer
    there is one that an `amp.initialize` of the project got, or one that can be nothing else.
    """
    inits = [
        (site.module, node)
        for site in index.sites
        if site.kind is Kind.INITIALIZE
        for node in optimizer_expressions(site)
    ]
    found: dict[tuple[Module, str], list[Stranger]] = {}
    for stranger in index.strangers:
        if names_nothing(stranger.module, bottom(stranger.call.func)):
            found.setdefault((stranger.module, stranger.root), []).append(stranger)
    for uses in found.values():
        inits += [(u.module, node) for u in uses if _initializes(u) for node in _optimizers(u)]
    return {
        (module.path, name): name if name == "apex" else f"apex.{name}"
        for (module, name), uses in found.items()
        if _are_all(module, name, uses) and _serve(index.project, uses, inits)
    }


def is_forgotten(site: Site) -> bool:
    """Tell whether a use of Apex is a call on a name that nothing in its file binds, not even ``import *``."""
    func = site.node.func if isinstance(site.node, ast.Call) else site.node
    if not isinstance(func, ast.Attribute) or site.module.scopes.stars or is_described(site):
        return False
    return names_nothing(site.module, bottom(func))


def is_described(site: Site) -> bool:
    """Tell whether a use stands for one of an older interface."""
    return root(site.node.func if isinstance(site.node, ast.Call) else site.node) == ALIAS


def _are_all(module: Module, name: str, uses: list[Stranger]) -> bool:
    called = {bottom(stranger.call.func) for stranger in uses}
    whole = name == "apex" and any(map(_initializes, uses))
    return all(
        node in called or (whole and isinstance(module.tree.parent(node), ast.Attribute))
        for node in module.tree.nodes(ast.Name)
        if node.id == name and names_nothing(module, node)
    )


def _initializes(use: Stranger) -> bool:
    """Tell whether a call can only be the `amp.initialize` of Apex."""
    return use.name == "initialize" and use.receiver == "apex.amp"


def _serve(project: Project, uses: list[Stranger], inits: list[tuple[Module, ast.expr]]) -> bool:
    """Tell whether the uses scale, and all their optimizers were initialized by Apex."""
    if not any(use.name == "scale_loss" for use in uses):
        return False
    if any(use.name == "initialize" and not _initializes(use) for use in uses):
        return False
    return all(
        any(project.values.same(use.module, node, module, got) for module, got in inits)
        for use in uses
        for node in _optimizers(use)
    )


def _optimizers(use: Stranger) -> list[ast.expr]:
    """Return the optimizers that a call of amp names."""
    place = {"initialize": 1, "scale_loss": 1, "master_params": 0}.get(use.name)
    if place is None:
        return []
    named = [k.value for k in use.call.keywords if k.arg in ("optimizers", "optimizer")]
    return [e for node in [*use.call.args[place : place + 1], *named] for e in elements(node)]
