"""Asks the rules about one unit at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.dual.beside import without_apex
from amp_migrate.dual.cut import Cut
from amp_migrate.dual.twins import refuse_beside_twin
from amp_migrate.placement.finding.build import Index
from amp_migrate.plan.answers import Answer, cut_out, keeps_native
from amp_migrate.plan.cannot import Cannot, OutOfReach
from amp_migrate.plan.elsewhere import named_elsewhere
from amp_migrate.plan.model import Decision
from amp_migrate.plan.parted import Neighbours, parted, refuse_cast, refuse_silent
from amp_migrate.plan.refusal import Refusal, refuse_skipped, refused_unit
from amp_migrate.plan.staying import left
from amp_migrate.rules import modules as rule_modules
from amp_migrate.rules.autocast.programs import Near
from amp_migrate.rules.base import Context
from amp_migrate.rules.mistakes.in_apex import fixes, unexamined
from amp_migrate.rules.prepare import prepare
from amp_migrate.scaler.spelling import Spelling
from amp_migrate.settings import Settings

_Asked = tuple[tuple[Site, ...], Refusal | None, Near]


class Deciding:
    """Decides about the units of a project, each by itself."""

    def __init__(self, index: Index, settings: Settings, spelling: Spelling) -> None:
        self._index = index
        self._settings = settings
        self._spelling = spelling
        self._causes: dict[Site, Cannot] = {}
        self._gone: dict[Site, Cut] = {}
        self._left: dict[Site, Cannot] = {}
        self._leaving: dict[Site, frozenset[str]] = {}
        self._made: dict[_Asked, Answer | Cannot] = {}
        self._neighbours = Neighbours(index)

    def answers(self, units: Iterable[list[Site]], refused: dict[object, Refusal]) -> list[Answer]:
        """Answer for every unit; one that shares code with a program that is left becomes two.

        What they learn of each other's programs may change what they do in the files that they share.
        """
        while True:
            answers = self._each(units, refused)
            if not self._neighbours.learn(answers):
                return answers
            units = [answer.sites for answer in answers]

    def _each(self, units: Iterable[list[Site]], refused: dict[object, Refusal]) -> list[Answer]:
        answers: list[Answer] = []
        asked = list(units)
        while len(answers) < len(asked):
            number = len(answers)
            found = [site for site in asked[number] if site.kind is not Kind.IMPORT]
            try:
                answers.append(self._unit(found, refused.get(number)))
            except Cannot as cause:
                apart = None if found[0] in self._left else self._without(found, cause)
                if apart is None:
                    answers.append(Answer(list(left(found, cause)), None, cause.message, found))
                    continue
                refused.pop(number, None)
                answers.append(apart[0])
                asked += apart[1]
        return answers

    def staying(self, units: list[list[Site]]) -> frozenset[str]:
        """Return the files of programs that are left, although they share code with others that are not."""
        return frozenset().union(*(self._leaving.get(found[0], ()) for found in units))

    def _without(self, found: list[Site], cause: Cannot) -> tuple[Answer, list[list[Site]]] | None:
        """Answer for the programs of a unit that run nothing of what keeps it; None where they cannot go alone.

        With the answer come the units that stay.
        """
        files = frozenset[str]()
        stays: list[tuple[list[Site], Cannot]] = []
        while True:
            self._leaving.pop(found[0], None)
            apart = parted(self._index.project, found, cause)
            if apart is None:
                return None
            stays.append((apart.stay, cause))
            found, files = apart.go, files | apart.files
            self._leaving[found[0]] = files
            try:
                answer = self._unit(found, None)
            except Cannot as other:
                cause = other
                continue
            self._left |= {stay[0]: why for stay, why in stays}
            return answer, [stay for stay, _ in stays]

    def _unit(self, found: list[Site], refused: Refusal | None) -> Answer:
        """Answer for one unit, as before where it was asked for before. Raises `Cannot` where it is left."""
        if found[0] in self._left:
            raise self._left[found[0]]
        near = self._near(found)
        asked = (tuple(found), refused, near)
        if asked not in self._made:
            answer: Answer | Cannot
            try:
                answer = self._fresh(found, refused)
            except Cannot as cause:
                answer = cause
            self._made[asked] = answer
            if isinstance(answer, Answer):
                grown = tuple(site for site in answer.sites if site.kind is not Kind.IMPORT)
                self._made[grown, refused, near] = answer
        answer = self._made[asked]
        if isinstance(answer, Cannot):
            raise answer
        return answer

    def _fresh(self, found: list[Site], refused: Refusal | None) -> Answer:
        index = self._index
        if refused is not None:
            raise self._causes.get(found[0]) or refused_unit(found, refused, index.project)
        refuse_skipped(found)
        try:
            gone = without_apex(index.project, index.availability, found, index.sites)
        except Cannot as cause:
            self._causes[found[0]] = cause
            try:
                return self._migrated(index, found)  # beside the native way
            except Cannot:
                raise cause from None
        if gone is not None:
            return self._cut_out(found, gone)
        return self._migrated(index, found)

    def _cut_out(self, found: list[Site], gone: Cut) -> Answer:
        self._gone[found[0]] = gone
        return cut_out(found, gone)

    def raising(self, found: list[Site], shared: Collection[str]) -> Answer | None:
        """Answer for a unit that goes where its branches in some files raise; None where they cannot."""
        gone = self._gone[found[0]].raising_in(shared)
        return cut_out(found, gone) if gone is not None else None

    def _migrated(self, index: Index, found: list[Site]) -> Answer:
        """Decide about a unit that becomes native."""
        try:
            context, decisions = self._decided(index, found)
        except Cannot:
            refuse_beside_twin(index.project, found)
            raise
        folded = set(context.branches.collapses) | set(context.branches.prefixes)
        edited = {item.statement for item in context.unit.home.carriers.blank}
        gone = context.unit.gone | folded | edited | context.unit.switched()
        return Answer(decisions, gone, "", [*found, *context.unit.switches])

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
            self._causes[found[0]] = cause
            return decided

    def _tried(
        self, index: Index, found: list[Site], module_level: bool
    ) -> tuple[Context, list[Decision]]:
        near = self._near(found)
        context = prepare(index, found, self._settings, self._spelling, module_level, near)
        decisions = list(named_elsewhere(index.project, found, self._decide(context)))
        refuse_silent(context.unit, decisions)
        refuse_cast(context.unit, decisions)
        return context, decisions

    def _near(self, found: list[Site]) -> Near:
        """Return the programs that share code with a unit, as far as is known by now."""
        return self._neighbours.near(found, self._leaving.get(found[0], frozenset()))

    def corrections(self, answer: Answer) -> Answer:
        """Return the corrections alone of a unit whose migration is known."""
        decisions, gone, reason, found = answer
        index = self._index
        if not self._settings.corrects:
            return Answer([], set(), "", found)
        if gone is None:
            causes = (d.finding for d in decisions if d.finding.message == reason)
            return Answer([unexamined(cause) for cause in causes], None, reason, found)
        if keeps_native(decisions):
            return Answer([], gone, "", found)
        try:
            near = self._near(found)
            context = prepare(index, found, self._settings, self._spelling, near=near)
            decided = list(named_elsewhere(index.project, found, fixes(context)))
            return Answer(decided, gone, "", found)
        except Cannot as cause:
            return Answer([Decision(cause.finding())], None, cause.message, found)

    def _decide(self, context: Context) -> Iterable[Decision]:
        for module in sorted(rule_modules(), key=lambda m: (m.RULE.order, m.RULE.code)):
            decide = getattr(module, "decide", None)
            if decide is not None:
                yield from decide(context)
