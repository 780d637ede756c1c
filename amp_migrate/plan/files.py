"""Asks the rules about every file, once it is known what becomes of the units."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.availability.choosing import answers, chooses
from amp_migrate.placement.finding.build import Index
from amp_migrate.plan.answers import brings_along
from amp_migrate.plan.model import Decision, Place, Status
from amp_migrate.plan.parted import only_left
from amp_migrate.plan.refusal import Refusal
from amp_migrate.plan.staying import holding, kept_for, refused_sites, unspoken
from amp_migrate.project import Module
from amp_migrate.project.programs import beside
from amp_migrate.rules import modules as rule_modules
from amp_migrate.rules.base import FileContext
from amp_migrate.rules.guards.kept import only_asks
from amp_migrate.scaler.spelling import Spelling
from amp_migrate.settings import Settings
from amp_migrate.source.mentions import imports_by_name, skipped_lines


@dataclass(frozen=True)
class Done:
    """What became of the units: `handled` sites and `taken` nodes, and the files that units leave, cut out or edit.

    `trained`: the files of units. `held`: the places that are left, each with the place of what keeps it.
    """

    trained: Collection[Module]
    handled: Collection[Site]
    taken: set[object]
    left: Collection[Module]
    cut: Collection[Module]
    edited: Collection[str]
    held: Mapping[Place, Place]


class Files:
    """Decides about what no unit took in a file."""

    def __init__(self, index: Index, settings: Settings, spelling: Spelling, done: Done) -> None:
        self._index = index
        self._settings = settings
        self._spelling = spelling
        self._done = done

    def decided(self, module: Module, refused: Refusal | None) -> list[Decision]:
        """Return what the rules say about a file; `refused` says why it is to be left."""
        sites = [s for s in self._index.sites if s.module is module and s not in self._done.handled]
        if refused is not None:
            return list(refused_sites(sites, refused))
        tree = module.tree
        if not (sites or tree.older.written or imports_by_name(tree.text)):
            return []
        context = self._context(module, sites)
        owned = module.path in self._done.edited
        skipped = frozenset[int]() if owned else skipped_lines(module.tree.text)
        decisions: list[Decision] = []
        for rule in sorted(rule_modules(), key=lambda m: (m.RULE.order, m.RULE.code)):
            decide = getattr(rule, "decide_file", None)
            if decide is None or not (self._settings.migrates or brings_along(rule, decisions)):
                continue
            made = [d for d in decide(context) if d.finding.span.line not in skipped]
            decisions += made
            context.held = {**context.held, **holding(made)}
            migrated = {d.finding.span for d in made if d.finding.status is Status.MIGRATED}
            context.sites = [
                s for s in context.sites if s.kind is Kind.IMPORT or s.span not in migrated
            ]
        decisions += unspoken(context, decisions) if self._settings.migrates else ()
        return self._kept(context, decisions) if module.path in self._left else decisions

    @cached_property
    def _left(self) -> set[str]:
        """The files that stay as they are, with all that belongs to the training in them."""
        modules = self._index.project.modules.values()
        older = {module for module in modules if module.tree.older.kept}
        return only_left(self._index.project, older.union(self._done.left), self._done.edited)

    def _kept(self, context: FileContext, decisions: list[Decision]) -> list[Decision]:
        """Leave what rules would change in a file that stays, and say nothing of what they would have written."""
        changed = {d.finding.code for d in decisions if d.edits}
        migrated = {d.finding.span for d in decisions if d.finding.status is Status.MIGRATED}
        stay = []
        for made in decisions:
            finding = made.finding
            speaks = finding.status is not Status.NOTE or finding.code not in changed
            if not made.edits and speaks and finding.span not in migrated:
                stay.append(made)
            if finding.status is Status.MIGRATED:
                sites = [
                    s
                    for s in self._index.sites
                    if s.module is context.module and s.span == finding.span
                ]
                stay += kept_for(sites, finding.code, context.cause_of(*sites))
        return stay

    def _context(self, module: Module, sites: list[Site]) -> FileContext:
        done = self._done
        availability = self._index.availability[module]
        context = FileContext(
            self._index.project,
            module,
            self._settings,
            self._spelling,
            sites,
            answers(availability, sites) if module in done.cut else availability,
            done.taken,
            held=dict(done.held),
        )
        touched = any(site.module is module for site in done.handled)
        near = beside(self._index.project, module.path)
        left = any(other.path in near for other in done.left)
        trained, cut = (any(m.path in near for m in of) for of in (done.trained, done.cut))
        context.keeps_guards = module in done.left or (left and not touched)
        asks = not touched and only_asks(sites) and module not in done.cut
        if asks and (cut or not trained):
            context.keeps_guards |= chooses(availability, module, set())
        context.untrained = not trained
        return context
