"""Asks the rules about every unit and file of a project, and gathers what they decide into a plan."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property

from amp_migrate.apex.forgotten import indexed
from amp_migrate.apex.sites import Kind, Site
from amp_migrate.dual.dual import Branch, branches, nodes_of
from amp_migrate.dual.fallback import fallback
from amp_migrate.dual.twins import chosen_beside_native, refuse_beside_twin
from amp_migrate.dual.unreachable import Unreachable, unreachable
from amp_migrate.facts.mentions import may_use_apex, skipped_lines
from amp_migrate.facts.tree import Tree
from amp_migrate.plain.spell import Use, spelt_out
from amp_migrate.plan.answers import (
    Answer,
    cut_modules,
    cut_out,
    first_cause,
    keeps_native,
    uses_apex,
)
from amp_migrate.plan.entangled import entangled
from amp_migrate.plan.files import Done, Files
from amp_migrate.plan.model import Decision, Finding, Plan
from amp_migrate.plan.native import Remarks, upgrade
from amp_migrate.plan.refusal import Refusal, edited_lines, refuse_skipped, refused_unit
from amp_migrate.plan.staying import holding, kept_for, left
from amp_migrate.plan.unit_summary import UnitSummary, summary
from amp_migrate.project import Module, Project, build
from amp_migrate.rules import modules as rule_modules
from amp_migrate.rules.base import Context
from amp_migrate.rules.guards.amp114_native_beside import fall_back, remove
from amp_migrate.rules.mistakes import amp213_import_missing
from amp_migrate.rules.mistakes.in_apex import fixes, unexamined
from amp_migrate.rules.prepare import prepare
from amp_migrate.rules.rest import amp308_unknown_amp
from amp_migrate.rules.rest.amp308_unknown_amp import beside_left, report
from amp_migrate.rules.torch_import import needed_import
from amp_migrate.scaler.libraries.engines import engine
from amp_migrate.scaler.spelling import Spelling
from amp_migrate.settings import Settings
from amp_migrate.unit.build import Index, units
from amp_migrate.unit.cannot import Cannot, OutOfReach


class Planner:
    """Plans a project; units that a self-check refused are left on the next try."""

    def __init__(
        self,
        trees: Mapping[str, Tree],
        settings: Settings,
        notes: bool = True,
        known: Project | None = None,
    ) -> None:
        self._notes = notes
        self._settings = settings
        self._trees = trees
        self._known = known
        self._spelling = Spelling(settings.api == "torch.amp", dtype=settings.dtype)
        self._index: Index | None = None
        if any(uses_apex(tree) or may_use_apex(tree.text) for tree in trees.values()):
            supply = settings.enabled(amp213_import_missing.RULE.code)
            self._index = indexed(trees, supply, known)
        self._units = units(self._index) if self._index else []
        self._owners: dict[str, dict[int, set[int]]] = {}
        self._out_of_reach: dict[Site, OutOfReach] = {}
        self._remarks = Remarks(trees, lambda: self.project)

    @cached_property
    def project(self) -> Project:
        """The project that the plan is made for."""
        return self._index.project if self._index else self._known or build(self._trees)

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
        for path, tree in self._trees.items():
            if path not in refused and not self._settings.only_fixes:
                plan.decisions += self._native(path, tree, plan)
        return plan, summaries

    def _native(self, path: str, tree: Tree, plan: Plan) -> list[Decision]:
        """Decide about code that uses native AMP already: its spelling, and remarks where nothing else changes."""
        planned = list(plan.edits(path))
        if self._spelling.torch_amp and self._settings.respell:
            if not self._settings.enabled("AMP401"):
                return []
            return upgrade(tree, planned, self._trees.values())
        if planned or not self._notes or uses_apex(tree):
            return []
        return self._remarks.of(path, self._settings)

    def _plan_apex(
        self, plan: Plan, summaries: list[UnitSummary], refused: dict[object, Refusal]
    ) -> None:
        """Plan the units and files that use Apex."""
        if self._index is None:
            return
        handled: set[Site] = set()
        taken: set[object] = set()
        self._owners = {}
        answers = [self._unit(found, refused.get(n)) for n, found in enumerate(self._units)]
        while not refused and (pair := entangled([a[0] for a in answers])):
            first, second = pair
            self._units[first] = [*self._units[first], *self._units.pop(second)]
            answers = [self._unit(found, None) for found in self._units]
        if not self._settings.migrates:
            answers = [self._fixes(found, a) for found, a in zip(self._units, answers, strict=True)]
        elif any(gone is None for _, gone, _ in answers):
            answers = [
                self._unless_dual(found, a, first_cause(answers))
                for found, a in zip(self._units, answers, strict=True)
            ]
        for number, (found, answer) in enumerate(zip(self._units, answers, strict=True)):
            decisions, gone, reason = answer
            plan.decisions += decisions
            if gone is not None:
                handled |= set(found)
                taken |= gone
                for decision in decisions:
                    for path, edit in decision.edits:
                        lines = self._owners.setdefault(path, {}).setdefault(number, set())
                        lines.update(edited_lines(edit))
            summaries.append(summary(found, decisions, reason))
        if self._settings.only_fixes:
            return
        done = Done(
            bool(self._units),
            handled,
            taken,
            {s.module for found in self._units for s in found if s not in handled},
            cut_modules(self._units, answers),
            set(self._owners),
            holding(plan.decisions),
        )
        files = Files(self._index, self._settings, self._spelling, done)
        for module in self._index.project.modules.values():
            if self._settings.migrates or module not in self._of_units():
                plan.decisions += files.decided(module, refused.get(module.path))
        plan.decisions += self._strangers(handled)
        for path in plan.paths():
            plan.decisions += needed_import(
                self._index.project.modules[path], list(plan.edits(path))
            )

    def _strangers(self, handled: set[Site]) -> list[Decision]:
        """Return the findings of what looks like Apex and nothing ties to it, or only what it is called on."""
        if self._index is None or not self._settings.enabled(amp308_unknown_amp.RULE.code):
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

    def refuse(self, refusal: Refusal, refused: dict[object, Refusal]) -> None:
        """Leave the units that edit a file, or the file's own rules where no unit does."""
        owners = self._owners.get(refusal.path, {})
        touching = [n for n, lines in owners.items() if refusal.line in lines]
        fresh = [number for number in touching or owners if number not in refused]
        refused.update(dict.fromkeys(fresh, refusal))
        if not fresh:
            refused[refusal.path] = refusal

    def _unit(self, found: list[Site], refused: Refusal | None) -> Answer:
        index = self._index
        if index is None:
            raise ValueError("nothing to plan")
        found[:] = [site for site in found if site.kind is not Kind.IMPORT]
        try:
            if refused is not None:
                raise self._out_of_reach.get(found[0]) or refused_unit(
                    found, refused, index.project
                )
            refuse_skipped(found)
            native = fallback(index.project, index.availability, found, index.sites)
            if native is not None:
                found += [site for site in native.sites if site not in found]
                return list(fall_back(native)), native.nodes(), ""
            beside = self._beside(index, found)
            if isinstance(beside, Unreachable):
                return cut_out(found, beside)
            if beside:
                return list(remove(beside)), nodes_of(beside), ""
            return self._migrated(index, found)
        except Cannot as cause:
            return list(left(found, cause)), None, cause.message

    def _beside(self, index: Index, found: list[Site]) -> list[Branch] | Unreachable:
        """Return the Apex branches of a program with native AMP beside them; raises `Cannot` where unclear."""
        try:
            alone = engine(index.project, index.availability, found, index.sites)
            return alone or branches(index.project, found)
        except Cannot:
            gone = unreachable(index.project, index.availability, found, index.sites)
            if gone is None:
                raise
            return gone

    def _migrated(self, index: Index, found: list[Site]) -> Answer:
        """Decide about a unit that becomes native, or goes where Apex is one of two choices in its program."""
        try:
            context, decisions = self._decided(index, found)
        except Cannot:
            chosen = [s for s in found if s.kind is Kind.INITIALIZE]
            beside = all(chosen_beside_native(index.project, site) for site in chosen)
            args = (index.project, index.availability, found, index.sites)
            gone = unreachable(*args) if beside else None
            if gone is None:
                refuse_beside_twin(index.project, found)
                raise
            return cut_out(found, gone)
        folded = set(context.branches.collapses) | set(context.branches.prefixes)
        found += context.unit.switches
        return decisions, context.gone_nodes | folded | context.unit.switched(), ""

    def _decided(self, index: Index, found: list[Site]) -> tuple[Context, list[Decision]]:
        """Decide about a unit: its scaler is handed on if it can be, else a variable of the file, or as the user says."""
        at_once = self._settings.scaler == "module"
        try:
            return self._tried(index, found, at_once)
        except OutOfReach as cause:
            try:
                decided = self._tried(index, found, not at_once)
            except Cannot:
                raise cause from None
            self._out_of_reach[found[0]] = cause
            return decided

    def _tried(
        self, index: Index, found: list[Site], module_level: bool
    ) -> tuple[Context, list[Decision]]:
        context = prepare(index, found, self._settings, self._spelling, module_level)
        return context, list(self._decide(context))

    def _fixes(self, found: list[Site], answer: Answer) -> Answer:
        """Return the corrections alone of a unit whose migration is known."""
        decisions, gone, reason = answer
        index = self._index
        if not self._settings.corrects:
            return [], set(), ""
        if index is None or gone is None:
            causes = (d.finding for d in decisions if d.finding.message == reason)
            return [unexamined(cause) for cause in causes], None, reason
        if keeps_native(decisions):
            return [], gone, ""
        try:
            context = prepare(index, found, self._settings, self._spelling)
            return list(fixes(context)), gone, ""
        except Cannot as cause:
            return [Decision(cause.finding())], None, cause.message

    def _unless_dual(self, found: list[Site], answer: Answer, why: Finding | None) -> Answer:
        """Keep the Apex branches beside native ones where other Apex code of the project is left."""
        if not keeps_native(answer[0]):
            return answer
        found[:] = [site for site in found if site.kind is not Kind.IMPORT]
        reason = why.message if why else "other Apex code of the project is left"
        return list(kept_for(found, "AMP912", why.place if why else None)), None, reason

    def _decide(self, context: Context) -> Iterable[Decision]:
        for module in sorted(rule_modules(), key=lambda m: (m.RULE.order, m.RULE.code)):
            decide = getattr(module, "decide", None)
            if decide is not None:
                yield from decide(context)
