"""What is decided about one unit, and what follows from it for the others."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from types import ModuleType
from typing import NamedTuple

from amp_migrate.apex.sites import Site
from amp_migrate.availability.installed import imports_apex
from amp_migrate.dual.cut import Cut
from amp_migrate.facts.tree import Tree
from amp_migrate.plan.model import Decision, Finding
from amp_migrate.project import Module
from amp_migrate.rules.guards import amp101_imports, amp114_native_beside
from amp_migrate.rules.guards.amp114_native_beside import cut
from amp_migrate.settings import MIGRATION
from amp_migrate.source.mentions import imports_by_name


class Answer(NamedTuple):
    """What is decided about a unit of `sites`: the nodes that are `gone` with it, None where it is left for a `reason`."""

    decisions: list[Decision]
    gone: set[ast.AST] | None
    reason: str
    sites: list[Site]


def brings_along(rule: ModuleType, decisions: list[Decision]) -> bool:
    """Tell whether a rule is used without the migration: its import goes with what other rules rewrote."""
    other = rule.RULE.family != MIGRATION
    return other or (rule is amp101_imports and any(made.edits for made in decisions))


def cut_out(found: list[Site], gone: Cut) -> Answer:
    """Drop what only runs under Apex of a unit, and the sites that go with it."""
    more = [site for site in gone.sites if site not in found]
    return Answer(list(cut(gone)), gone.nodes(), "", [*found, *more])


def first_cause(answers: Iterable[Answer]) -> Finding | None:
    """Return the first finding that says why some Apex code is left."""
    findings = (d.finding for a in answers if a.gone is None for d in a.decisions)
    return next((finding for finding in findings if finding.cause is None), None)


def keeps_native(decisions: Iterable[Decision]) -> bool:
    """Tell whether a unit loses its way through Apex and keeps a native one."""
    return any(d.finding.code == amp114_native_beside.RULE.code for d in decisions)


def uses_apex(tree: Tree) -> bool:
    """Tell whether a file imports Apex."""
    return "apex" in tree.text and (imports_apex(tree.module.body) or imports_by_name(tree.text))


def cut_modules(answers: Iterable[Answer]) -> set[Module]:
    """Return the files of the units that lose their way through Apex and keep a native one."""
    return {
        site.module for answer in answers if keeps_native(answer.decisions) for site in answer.sites
    }
