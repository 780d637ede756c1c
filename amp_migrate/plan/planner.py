"""Asks the rules about every unit and file of a project, and gathers what they decide into a plan."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.facts.tree import Tree
from amp_migrate.placement.finding.build import Index, units
from amp_migrate.placement.finding.forgotten import indexed
from amp_migrate.plain.spell import Use, late, spelt_out
from amp_migrate.plan.answers import Answer, cut_modules, first_cause, keeps_native, uses_apex
from amp_migrate.plan.deciding import Deciding
from amp_migrate.plan.files import Done, Files
from amp_migrate.plan.model import (
    AddParameter,
    AddWithItem,
    Decision,
    Edit,
    Finding,
    Plan,
    RenameParameter,
    Wrap,
)
from amp_migrate.plan.native import Remarks, beside, holds_beside, upgrade
from amp_migrate.plan.parted import run_beside
from amp_migrate.plan.refusal import Refusal, edited_lines
from amp_migrate.plan.staying import holding, kept_for
from amp_migrate.plan.unit_summary import UnitSummary, summary
from amp_migrate.project import Module, Project, build
from amp_migrate.rules.mistakes import amp213_import_missing
from amp_migrate.rules.rest import amp308_unknown_amp
from amp_migrate.rules.rest.amp308_unknown_amp import beside_left, report
from amp_migrate.rules.shared import shared
from amp_migrate.rules.torch_import import needed_import
from amp_migrate.scaler.spelling import Spelling
from amp_migrate.settings import Settings
from amp_migrate.source.mentions import may_use_apex, skipped_lines
from amp_migrate.source.span import Span


class Planner:
    """Plans a project; units that a self-check refused are left on the next try."""

    def __init__(
        self,
        trees: Mapping[str, Tree],
        settings: Settings,
        notes: bool = True,
        known: Project | None = None,
        *,
        elsewhere: bool = False,
    ) -> None:
        self.settings = settings
        self._notes = notes
        self._elsewhere = elsewhere
        self._trees = trees
        self._known = known
        self._spelling = Spelling(settings.api == "torch.amp", dtype=settings.dtype)
        self._index: Index | None = None
        if any(uses_apex(tree) or may_use_apex(tree.text) for tree in trees.values()):
            supply = settings.enabled(amp213_import_missing.RULE.code)
            self._index = indexed(trees, supply, known)
            self._index.elsewhere = elsewhere
        self._deciding = Deciding(self._index, settings, self._spelling) if self._index else None
        self._units = units(self._index) if self._index else []
        self._owners: dict[str, dict[int, set[int]]] = {}
        self._remarks = Remarks(trees, lambda: self.project, is_read=bool(self._units))

    def of(self, trees: Mapping[str, Tree]) -> Planner:
        """Return one that plans other texts of the files in the same way."""
        return Planner(trees, self.settings, self._notes, elsewhere=self._elsewhere)

    @cached_property
    def project(self) -> Project:
        """The project that the plan is made for."""
        return self._index.project if self._index else self._known or build(self._trees)

    @property
    def staying(self) -> frozenset[str]:
        """The files of programs that are left, although they share code with others that are not."""
        return self._deciding.staying(self._units) if self._deciding else frozenset()

    def late(self) -> set[Use]:
        """Return what is spelt out where something is left without that."""
        return late(self._index.project) if self._index is not None else set()

    def spelt_out(self, without: Collection[Use]) -> dict[str, Tree]:
        """Return the files in which Apex is reached by other names or unpacked arguments, with it spelt out."""
        if self._index is None:
            return {}
        return spelt_out(self._index.project, self._index.sites, without)

    def plan(self, refused: dict[object, Refusal]) -> tuple[Plan, list[UnitSummary]]:
        """Return the plan with every decision; `refused` maps units and files to why they are left."""
        plan = Plan()
        summaries: list[UnitSummary] = []
        if self._index is not None:
            self._plan_apex(plan, summaries, refused)
        if self._respells and self.settings.enabled("AMP401"):
            for path, tree in self._among(refused):
                planned = list(plan.edits(path))
                plan.decisions += upgrade(tree, planned, self._trees.values())
        return plan, summaries

    def remark(self, plan: Plan, refused: Collection[object]) -> None:
        """Add to a plan what is said of code that uses native AMP already, in files that nothing else changes.

        Where Apex goes beside it, it is what runs from now on, and is spoken of as far as it stays.
        """
        if self._respells or not self._notes:
            return
        changed = set(plan.paths())
        either = beside(plan)
        for path, tree in self._among(refused):
            if path not in changed and not uses_apex(tree):
                plan.decisions += self._remarks.of(path, self.settings)
            elif path in either:
                found = self._remarks.of(path, self.settings)
                plan.decisions += [d for d in found if holds_beside(plan, d.finding)]

    @property
    def _respells(self) -> bool:
        return self._spelling.torch_amp and self.settings.respell

    def _among(self, refused: Collection[object]) -> list[tuple[str, Tree]]:
        """Return the files whose native code is looked at."""
        if self.settings.only_fixes:
            return []
        return [(path, tree) for path, tree in self._trees.items() if path not in refused]

    def _plan_apex(
        self, plan: Plan, summaries: list[UnitSummary], refused: dict[object, Refusal]
    ) -> None:
        """Plan the units and files that use Apex."""
        deciding = self._deciding
        if self._index is None or deciding is None:
            return
        handled: set[Site] = set()
        taken: set[object] = set()
        self._owners = {}
        told: set[tuple[object, ...]] = set()
        answers = self._answered(deciding, refused)
        for number, (decisions, gone, reason, found) in enumerate(answers):
            fresh = [d for d in decisions if (d.finding, *d.edits) not in told]
            told |= {(d.finding, *d.edits) for d in decisions}
            plan.decisions += fresh
            if gone is not None:
                handled |= set(found)
                taken |= gone
                for decision in decisions:
                    for path, edit in decision.edits:
                        lines = self._owners.setdefault(path, {}).setdefault(number, set())
                        lines.update(edited_lines(edit))
            summaries.append(summary(found, decisions, reason))
        if self.settings.only_fixes:
            return
        done = Done(
            self._of_units(),
            handled,
            taken,
            {s.module for found in self._units for s in found if s not in handled},
            cut_modules(answers),
            set(self._owners),
            holding(plan.decisions),
        )
        files = Files(self._index, self.settings, self._spelling, done)
        for module in self._index.project.modules.values():
            if self.settings.migrates or module not in self._of_units():
                plan.decisions += files.decided(module, refused.get(module.path))
        plan.decisions = shared(self._index.project, plan.decisions)
        plan.decisions += self._strangers(handled)
        for path in plan.paths():
            plan.decisions += needed_import(
                self._index.project.modules[path], list(plan.edits(path))
            )

    def _answered(self, deciding: Deciding, refused: dict[object, Refusal]) -> list[Answer]:
        """Decide about every unit; those become one that decide about the same code."""
        answers = deciding.answers(self._units, refused)
        while not refused and (pair := entangled([a.decisions for a in answers])):
            first, second = pair
            units = [answer.sites for answer in answers]
            units[first] = [*units[first], *units.pop(second)]
            answers = deciding.answers(units, {})
        if not self.settings.migrates:
            answers = [deciding.corrections(answer) for answer in answers]
        elif any(answer.gone is None for answer in answers):
            answers = self._unless_dual(deciding, answers)
        self._units = [answer.sites for answer in answers]
        return answers

    def _strangers(self, handled: set[Site]) -> list[Decision]:
        """Return the findings of what looks like Apex and nothing ties to it, or only what it is called on."""
        if self._index is None or not self.settings.enabled(amp308_unknown_amp.RULE.code):
            return []
        rest = (site for site in self._index.sites if site not in handled)
        found = [*report(self._index.strangers), *beside_left(rest)]
        return [
            d
            for d in found
            if d.finding.span.line not in skipped_lines(self._trees[d.finding.path].text)
        ]

    def _of_units(self) -> set[Module]:
        """Return the files in which a unit has a use of Apex."""
        return {site.module for found in self._units for site in found}

    def refuse(self, refusals: Collection[Refusal], refused: dict[object, Refusal]) -> None:
        """Leave the units that edit files, or the files' own rules where no unit does; of several reasons the first counts."""
        known = len(refused)
        for refusal in refusals:
            owners = self._owners.get(refusal.path, {})
            touching = [n for n, lines in owners.items() if refusal.line in lines] or list(owners)
            running = [n for n in touching if self._begins_in(n, refusal.program)]
            owning: list[object] = [*(running or touching)] or [refusal.path]
            refused.update({owner: refusal for owner in owning if owner not in refused})
        if len(refused) == known:
            refused.update({refusal.path: refusal for refusal in refusals})

    def _begins_in(self, number: int, files: Collection[str]) -> bool:
        """Tell whether a unit initializes in one of some files."""
        found = self._units[number]
        return any(s.kind is Kind.INITIALIZE and s.module.path in files for s in found)

    def _unless_dual(self, deciding: Deciding, answers: list[Answer]) -> list[Answer]:
        """Keep the Apex branches beside native ones that programs run in which other Apex code is left, or let them raise."""
        why = first_cause(answers)
        left = {site.module for a in answers if a.gone is None for site in a.sites}
        beside = run_beside(self.project, left)
        kept = []
        for answer in answers:
            sites = answer.sites
            edited = {path for made in answer.decisions for path, _ in made.edits}
            shared = edited & beside if keeps_native(answer.decisions) else set()
            ours = bool(shared & {module.path for module in left})
            raising = deciding.raising(sites, shared) if shared and not ours else None
            kept.append(raising or (self._kept(sites, why) if shared else answer))
        return kept

    def _kept(self, found: list[Site], why: Finding | None) -> Answer:
        """Leave a unit that has native AMP beside it."""
        sites = [site for site in found if site.kind is not Kind.IMPORT]
        reason = why.message if why else "other Apex code of the project is left"
        place = why.place if why else None
        return Answer(list(kept_for(sites, "AMP912", place)), None, reason, sites)


def entangled(made: list[list[Decision]]) -> tuple[int, int] | None:
    """Return two units that give parameters to the same place, or cast it each in its own way, and so are one."""
    owners: dict[tuple[str, Edit], int] = {}
    casts: dict[tuple[str, Span], tuple[int, Edit]] = {}
    for number, decisions in enumerate(made):
        for decision in decisions:
            for path, edit in decision.edits:
                other, same = number, edit
                if isinstance(edit, AddParameter | RenameParameter):
                    other = owners.setdefault((path, edit), number)
                elif isinstance(edit, Wrap | AddWithItem):
                    span = edit.first if isinstance(edit, Wrap) else edit.span
                    other, same = casts.setdefault((path, span), (number, edit))
                if other != number and (
                    isinstance(edit, AddParameter | RenameParameter) or same != edit
                ):
                    return other, number
    return None
