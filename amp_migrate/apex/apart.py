"""Which optimizers the sites of Apex name, and what trains those of other programs alone."""

from __future__ import annotations

import ast

from amp_migrate.apex.options import arguments
from amp_migrate.apex.sites import Kind, Site
from amp_migrate.facts.constants import is_none
from amp_migrate.project import Project


def elements(node: ast.expr | None) -> list[ast.expr]:
    """Return the elements of a list or tuple display; an expression alone for anything else."""
    if node is None or is_none(node):
        return []
    if isinstance(node, ast.List | ast.Tuple):
        return list(node.elts)
    return [node]


def optimizer_expressions(site: Site) -> list[ast.expr]:
    """Return the optimizers that an initialize or scale_loss names."""
    if site.kind is Kind.INITIALIZE:
        return elements(arguments(site.call)[0].get("optimizers"))
    if site.kind is Kind.SCALE_LOSS:
        named = {k.arg: k.value for k in site.call.keywords}
        node = site.call.args[1] if len(site.call.args) > 1 else named.get("optimizers")
        return elements(node)
    if site.kind is Kind.MASTER_PARAMS and site.call.args:
        return elements(site.call.args[0])
    return []


class Apart:
    """Tells whether a scale_loss that a program can reach only ever gets the optimizers of others."""

    def __init__(self, project: Project, members: list[Site]) -> None:
        self._project = project
        self._inits = {s: self._groups(s) for s in members if s.kind is Kind.INITIALIZE}
        scales = [self._groups(s) for s in members if s.kind is Kind.SCALE_LOSS]
        self._trained = {s for s, own in self._inits.items() if any(own & g for g in scales)}

    def trains_others(self, inits: list[Site], reached: list[Site]) -> bool:
        """Tell whether what is reached only scales for other initializes, while these have a scale_loss of their own.

        As a trainer of a library, which an engine runs that is given this program's own step instead.
        """
        own = {group for site in inits for group in self._inits[site]}
        if any(s.kind is not Kind.SCALE_LOSS for s in reached) or not self._trained.issuperset(
            inits
        ):
            return False
        others = {g for s, found in self._inits.items() if s not in inits for g in found}
        return all((g := self._groups(s)) & others and not g & own for s in reached)

    def _groups(self, site: Site) -> frozenset[int]:
        values = self._project.values
        found = [values.groups(site.module, node) for node in optimizer_expressions(site)]
        return frozenset().union(*found)
