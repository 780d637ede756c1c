"""Plans and the texts made of them, one after another, until one passes every check."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING

from amp_migrate.facts.tree import Tree
from amp_migrate.outcome import Beyond, Outcome, Read, Unread
from amp_migrate.plan.model import Edit, Plan, Status
from amp_migrate.plan.planner import Planner
from amp_migrate.plan.refusal import OPTED_OUT, Refusal, edited_against_a_comment
from amp_migrate.processes import each, release, tidy
from amp_migrate.project.once import forget
from amp_migrate.project.programs import running
from amp_migrate.project.reach import coming_to
from amp_migrate.protocol.faults import Place
from amp_migrate.source.mentions import uses_apex

if TYPE_CHECKING:
    from amp_migrate.check.events.claims import Claim
    from amp_migrate.check.judging.judge import Judge
    from amp_migrate.check.judging.objections import Judgement
    from amp_migrate.plan.unit_summary import UnitSummary
    from amp_migrate.project import Project
    from amp_migrate.rules.guards.leftovers import Made


class Attempts:
    """Plans and rewrites some files. The new texts go into `outcomes`.

    `read` keeps the last project of texts that passed the check, and what it refused: a second run over the new texts
    reads them again, and refuses what is no other edit of the same file. `beyond` gives the sources with what imports
    files that change. What a plan makes is not checked where it does not stay, as other texts are planned next.
    """

    def __init__(
        self,
        planner: Planner,
        trees: dict[str, Tree],
        outcomes: dict[str, Outcome],
        read: Read,
        beyond: Beyond,
        stays: Callable[[Plan], bool],
    ) -> None:
        self._planner = planner
        self._trees = trees
        self._outcomes = outcomes
        self._settings = planner.settings
        self._read = read
        self._beyond = beyond
        self._stays = stays
        self._before = dict(read.refused)
        self._refused: dict[object, Refusal] = {}
        self._texts: dict[tuple[str, tuple[Edit, ...]], str | Refusal] = {}
        self._made: dict[str, Tree] = {}
        self._judge = cache(self._judge_without)

    def last(self) -> tuple[Plan, list[UnitSummary], Judgement | None]:
        """Return the first plan that passes, its units and what the check says of the texts.

        Raises `Unread` where a plan edits files that others import which are no sources yet.
        """
        while True:
            plan, units = self._planner.plan(self._refused)
            tidy()
            if (sources := self._beyond(plan.paths())) is not None:
                raise Unread(sources)
            failures = self._apply(plan) or self._lost() or self._refused_before()
            if not failures and not self._stays(plan):
                return plan, units, None
            judgement = None if failures else self._judgement(plan)
            if judgement is not None:
                failures = self._untrue(judgement)
                self._keep(judgement.project, passed=not failures)
            if not failures:
                self._doubt(judgement)
                self._planner.remark(plan, self._refused)
                return plan, units, judgement
            self._planner.refuse(failures, self._refused)
            judgement = None
            release()

    def _keep(self, project: Project | None, *, passed: bool) -> None:
        """Keep the project of texts that passed for a second run; what was worked out for others goes."""
        self._read.project = project if passed else None
        if project is not None and not passed:
            forget(project)

    def _doubt(self, judgement: Judgement | None) -> None:
        """Note what the check still says against texts of which every file was refused already."""
        for outcome in self._outcomes.values():
            said = judgement.objections if judgement and outcome.after is not None else ()
            outcome.doubted = next((objection.sentence for objection in said), None)

    def _apply(self, plan: Plan) -> list[Refusal]:
        """Rewrite every file of the plan; return why rewrites are refused."""
        for outcome in self._outcomes.values():
            outcome.after = None
        paths = plan.paths()

        def made(path: str) -> str | Refusal:
            before, made = self._outcomes[path].before.text, partial(self._makes_optimizer, path)
            return rewritten(list(edits[path]), self._trees[path], before, made)

        edits = {path: tuple(plan.edits(path)) for path in paths}
        fresh = [path for path in paths if (path, edits[path]) not in self._texts]
        texts = each(made, fresh, self._settings.jobs)
        self._texts |= {(p, edits[p]): text for p, text in zip(fresh, texts, strict=True)}
        texts = [self._texts[path, edits[path]] for path in paths]
        for path, after in zip(paths, texts, strict=True):
            if isinstance(after, str) and after != self._trees[path].text:
                self._outcomes[path].after = after
        return [refusal for refusal in texts if isinstance(refusal, Refusal)]

    def _refused_before(self) -> list[Refusal]:
        """Return why the check of a run before refused the very same texts of files."""
        texts = (
            (path, self._outcomes[path].before.text, text) for path, text in self._after().items()
        )
        return [self._before[text] for text in texts if text in self._before]

    def _lost(self) -> list[Refusal]:
        """Return why texts are not used that take away what files import, or the last value of an attribute."""
        after = self._after()
        if not after:
            return []
        from amp_migrate.check.exports import lost, unset

        project = self._planner.project
        trees = self._read_after(after)
        found = {name.path: name for name in (*lost(project, trees), *unset(project, trees))}
        return [Refusal(path, name.reason) for path, name in found.items()]

    def _makes_optimizer(self, path: str, node: ast.expr) -> bool:
        """Tell whether an expression of a file makes an optimizer of a library, and runs nothing of the project."""
        project = self._planner.project
        if not isinstance(node, ast.Call) or project.callees(node):
            return False
        return project.values.is_optimizer(project.modules[path], node)

    def _after(self) -> dict[str, str]:
        """Return the new texts."""
        return {o.path: o.after for o in self._outcomes.values() if o.after is not None}

    def _read_after(self, after: dict[str, str]) -> dict[str, Tree]:
        """Return new texts as trees, each read once as long as it stays."""
        known = self._made
        self._made = {
            path: known[path] if path in known and known[path].text == text else Tree(path, text)
            for path, text in after.items()
        }
        return self._made

    def _judgement(self, plan: Plan) -> Judgement | None:
        """Return what the check says of texts that pass as texts; None where they are not for it to judge."""
        after = self._after()
        native = not any(uses_apex(self._outcomes[path].before.text) for path in after)
        if native or not self._settings.migrates:
            return None
        from amp_migrate.check.events.claims import Claims

        judge = self._judge(self._planner.staying.difference(after))
        told = Claims(tuple(_claims(plan)), self._settings.dtype)
        return judge.judged(after, told, self._read_after(after))

    def _judge_without(self, staying: frozenset[str]) -> Judge:
        """Return what judges the new texts, without the files of programs that stay: those do not run any more."""
        from amp_migrate.check.judging.judge import Judge
        from amp_migrate.project import build

        rest = {path: tree for path, tree in self._trees.items() if path not in staying}
        project = build(rest) if staying else self._planner.project
        return Judge(rest, project, self._settings.jobs, self._read.project)

    def _untrue(self, judgement: Judgement) -> list[Refusal]:
        """Return why texts are no training as native AMP wants it."""
        after = self._after()
        found = []
        for objection in judgement.objections:
            ways = [place.path for place in reversed(objection.way) if place.path in after]
            charged = (*ways, *self._around(objection.place), *after)
            program = objection.program or frozenset(after)
            path = next((p for p in charged if p in program and p not in self._refused), None)
            if path is not None:
                why, place, trouble = objection.sentence, objection.place, objection.trouble
                refusal = Refusal(path, why, 0, place, trouble, objection.program)
                self._read.refused[path, self._outcomes[path].before.text, after[path]] = refusal
                found.append(refusal)
        return found

    def _around(self, place: Place) -> Iterator[str]:
        """Yield the changed files that come to a place of a file that is not: by calls or imports, nearest first."""
        project, after = self._planner.project, self._after()
        if place.path in project.modules:
            calling = coming_to(project, place.path, place.line)
            yield from (p for p in (*calling, *running(project, place.path)) if p in after)


def rewritten(planned: list[Edit], tree: Tree, before: str, made: Made) -> str | Refusal:
    """Return the new text of a file after some edits, or why it is not used.

    `before` is the text before Apex was spelt out in it; `made` tells which expressions make an optimizer.
    """
    from amp_migrate.check.text import check, unused
    from amp_migrate.rewrite import EditError, rewrite
    from amp_migrate.rules.guards.cleanup import tidied
    from amp_migrate.rules.guards.leftovers import leftovers
    from amp_migrate.rules.guards.same_branches import one_branch

    path = tree.path
    edits = one_branch(tree, before, tidied(tree, planned))
    try:
        after = rewrite(tree.text, edits)
        while more := leftovers(tree, after, unused(before, after, path), edits, made):
            edits = one_branch(tree, before, tidied(tree, [*edits, *more]))
            after = rewrite(tree.text, edits)
    except EditError as error:
        return Refusal(path, f"an edit could not be made: {error}")
    line = edited_against_a_comment(tree.text, after, edits)
    if line is not None:
        return Refusal(path, OPTED_OUT, line)
    reason = check(tree.text, after, path)
    return after if reason is None else Refusal(path, reason)


def _claims(plan: Plan) -> Iterator[Claim]:
    """Yield what the decisions of a run claim; a note on what an edit keeps in fp32 says of nothing that it changes."""
    from amp_migrate.check.events.claims import IN_FP32, Claim

    for decision in plan.decisions:
        found = decision.finding
        code, span = found.code, found.span
        note = found.status is Status.NOTE and not (code == IN_FP32 and decision.edits)
        yield Claim(code, found.path, span.line, span.end_line, note)
        for place in decision.beside if note else ():
            yield Claim(code, place.path, place.span.line, place.span.end_line, note)
