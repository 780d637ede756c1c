"""The codemod from sources to outcomes: facts, units, plan, rewrite, self-check. It prints and writes nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

from amp_migrate.facts.tree import Tree
from amp_migrate.outcome import Outcome, Result
from amp_migrate.plan.model import Plan, Status
from amp_migrate.plan.refusal import OPTED_OUT, Refusal, edited_against_a_comment
from amp_migrate.processes import each, without_collector
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

if TYPE_CHECKING:
    from amp_migrate.check.training import Judge, Judgement
    from amp_migrate.older.describe import OlderInterfaces
    from amp_migrate.plan.planner import Planner
    from amp_migrate.plan.unit_summary import UnitSummary
    from amp_migrate.project import Project


def migrate(
    sources: Sequence[Source],
    settings: Settings,
    notes: bool = True,
    read: Sequence[Project] = (),
) -> Result:
    """Migrate sources as one project; files without Apex in them only serve as context.

    Without `notes` nothing is said about native code that stays as it is. `read` are projects that the check read
    before, the last that of the sources or of other texts of their files.
    """
    from amp_migrate.facts.mentions import may_use_apex
    from amp_migrate.plan.native import applies

    respelt = (
        settings.api == "torch.amp"
        and settings.respell
        and any(applies(source.text) for source in sources)
    )
    if not respelt and not any(may_use_apex(source.text) for source in sources):
        return Result([Outcome(source.path, source) for source in sources], Plan())
    with without_collector():
        return _migrated(sources, settings, notes, list(read))


def _migrated(
    sources: Sequence[Source], settings: Settings, notes: bool, read: list[Project]
) -> Result:
    known = read[-1] if read else None
    parsed, outcomes = _parse(sources, known)
    if known is not None and {path: m.tree for path, m in known.modules.items()} != parsed:
        known = None
    older = _older(parsed, settings, known)
    known = older.project if older is not None else known
    while True:
        trees = older.trees() if older is not None else parsed
        same = all(trees[path] is tree for path, tree in parsed.items())
        plan, units, judgement = _spelt(
            trees, outcomes, settings, notes, known if same else None, read
        )
        if older is None or not older.leave(
            plan.findings(), {o.path: o.after for o in outcomes.values()}
        ):
            break
    if older is not None:
        older.reword(plan)
    _report(plan, outcomes)
    result = Result(list(outcomes.values()), plan, units, read=read)
    if judgement is not None:
        result.compared = judgement.compared
    return result


def _older(
    parsed: dict[str, Tree], settings: Settings, known: Project | None
) -> OlderInterfaces | None:
    """Return the older interfaces of Apex in some files, where they are migrated and any file speaks of one."""
    from amp_migrate.facts.mentions import uses_older

    if not settings.migrates or not any(uses_older(tree.text) for tree in parsed.values()):
        return None
    from amp_migrate.older.describe import OlderInterfaces

    return OlderInterfaces(parsed, settings, known)


def _spelt(
    parsed: dict[str, Tree],
    outcomes: dict[str, Outcome],
    settings: Settings,
    notes: bool,
    known: Project | None,
    read: list[Project],
) -> tuple[Plan, list[UnitSummary], Judgement | None]:
    """Plan and rewrite some files with Apex spelt out in them as far as what comes of it is migrated."""
    from amp_migrate.plain.spell import Use, left_as_it_was
    from amp_migrate.plan.planner import Planner

    first = Planner(parsed, settings, notes, known)
    without: set[Use] = set()
    while True:
        trees = {**parsed, **first.spelt_out(without)}
        spelt = any(trees[path] is not tree for path, tree in parsed.items())
        planner = Planner(trees, settings, notes) if spelt else first
        plan, units, judgement = _planned(planner, trees, outcomes, settings, read)
        changed = [path for path, outcome in outcomes.items() if outcome.after is not None]
        done = {(f.path, *f.span[:2]) for f in plan.findings() if f.code == "AMP118"}
        left = left_as_it_was(trees, changed, done) if spelt else set()
        if not left:
            return plan, units, judgement
        without |= left


def _planned(
    planner: Planner,
    trees: dict[str, Tree],
    outcomes: dict[str, Outcome],
    settings: Settings,
    read: list[Project],
) -> tuple[Plan, list[UnitSummary], Judgement | None]:
    """Plan and rewrite until every check passes; return the plan, the units and what the check says of the texts.

    `read` keeps the first and the last project of texts that the check reads: a second run reads them again.
    """
    refused: dict[object, Refusal] = {}
    judge = cache(lambda staying: _judge(trees, planner, staying, settings.jobs, read))
    while True:
        plan, units = planner.plan(refused)
        failures = _apply(plan, trees, outcomes, settings.jobs)
        fitting = partial(judge, planner.staying.difference(_after(outcomes)))
        judgement = None if failures else _judgement(fitting, outcomes, plan, settings)
        if judgement is not None:
            read[1:] = [judgement.project] if judgement.project is not None else []
            failures = _untrue(judgement, outcomes, refused)
        if not failures:
            return plan, units, judgement
        for failure in failures:
            planner.refuse(failure, refused)


def _parse(
    sources: Sequence[Source], known: Project | None
) -> tuple[dict[str, Tree], dict[str, Outcome]]:
    """Return the trees of the files that can be read, and the outcomes of all."""
    from amp_migrate.facts.mentions import skips_file, uses_apex

    trees: dict[str, Tree] = {}
    outcomes: dict[str, Outcome] = {}
    for source in sources:
        outcome = outcomes[source.path] = Outcome(source.path, source)
        if skips_file(source.text):
            continue
        module = known.modules.get(source.path) if known is not None else None
        if module is not None and module.tree.text == source.text:
            trees[source.path] = module.tree
            continue
        try:
            trees[source.path] = Tree(source.path, source.text)
        except (SyntaxError, ValueError, RecursionError) as error:
            if uses_apex(source.text):
                outcome.failed = _syntax(error)
    return trees, outcomes


def _syntax(error: Exception) -> str:
    if isinstance(error, SyntaxError):
        if re.search(r"\basync\s*=", error.text or ""):
            return f"line {error.lineno}: `async` is a keyword since Python 3.7: write non_blocking=..."
        return f"line {error.lineno}: not Python 3 ({error.msg})"
    return f"cannot be parsed ({error})"


def _apply(
    plan: Plan, trees: dict[str, Tree], outcomes: dict[str, Outcome], jobs: int
) -> list[Refusal]:
    """Rewrite every file of the plan; return why rewrites are refused."""
    for outcome in outcomes.values():
        outcome.after = None
    paths = plan.paths()

    def rewritten(path: str) -> str | Refusal:
        return _rewritten(plan, trees[path], outcomes[path].before.text)

    made = each(rewritten, paths, jobs)
    for path, after in zip(paths, made, strict=True):
        if isinstance(after, str) and after != trees[path].text:
            outcomes[path].after = after
    return [refusal for refusal in made if isinstance(refusal, Refusal)]


def _rewritten(plan: Plan, tree: Tree, before: str) -> str | Refusal:
    """Return the new text of a file, or why it is not used."""
    from amp_migrate.check.text import check, unused
    from amp_migrate.rewrite import EditError, rewrite
    from amp_migrate.rules.guards.cleanup import tidied
    from amp_migrate.rules.guards.leftovers import leftovers

    path = tree.path
    edits = tidied(tree, list(plan.edits(path)))
    try:
        after = rewrite(tree.text, edits)
        while more := leftovers(tree, after, unused(before, after, path), edits):
            edits = tidied(tree, [*edits, *more])
            after = rewrite(tree.text, edits)
    except EditError as error:
        return Refusal(path, f"an edit could not be made: {error}")
    line = edited_against_a_comment(tree.text, after, edits)
    if line is not None:
        return Refusal(path, OPTED_OUT, line)
    reason = check(tree.text, after, path)
    return after if reason is None else Refusal(path, reason)


def _judge(
    trees: dict[str, Tree],
    planner: Planner,
    staying: frozenset[str],
    jobs: int,
    read: Sequence[Project],
) -> Judge:
    """Return what judges the new texts, without the files of programs that stay: those do not run any more."""
    from amp_migrate.check.training import Judge
    from amp_migrate.project import build

    rest = {path: tree for path, tree in trees.items() if path not in staying}
    return Judge(rest, build(rest) if staying else planner.project, jobs, read)


def _judgement(
    judge: Callable[[], Judge], outcomes: dict[str, Outcome], plan: Plan, settings: Settings
) -> Judgement | None:
    """Return what the check says of texts that pass as texts; None where they are not for it to judge."""
    from amp_migrate.facts.mentions import uses_apex

    after = _after(outcomes)
    if not settings.migrates or not any(uses_apex(outcomes[path].before.text) for path in after):
        return None
    from amp_migrate.check.events.claims import Claim, Claims

    claims = Claims(
        tuple(
            Claim(f.code, f.path, f.span.line, f.span.end_line, f.status is Status.NOTE)
            for f in plan.findings()
        ),
        settings.dtype,
    )
    return judge().judged(after, claims)


def _untrue(
    judgement: Judgement, outcomes: dict[str, Outcome], refused: dict[object, Refusal]
) -> list[Refusal]:
    """Return why texts are no training as native AMP wants it."""
    after = _after(outcomes)
    found = []
    for objection in judgement.objections:
        paths = [place.path for place in reversed(objection.way) if place.path in after]
        paths = [path for path in paths if path not in refused] or [
            path for path in after if path not in refused
        ]
        reason = objection.sentence
        found += [
            Refusal(path, reason, place=objection.place, trouble=objection.trouble)
            for path in paths[:1]
        ]
    return found


def _after(outcomes: dict[str, Outcome]) -> dict[str, str]:
    """Return the new texts."""
    return {o.path: o.after for o in outcomes.values() if o.after is not None}


def _report(plan: Plan, outcomes: dict[str, Outcome]) -> None:
    for outcome in outcomes.values():
        outcome.findings = []
    for finding in plan.findings():
        outcomes[finding.path].findings.append(finding)


def unstable(result: Result, settings: Settings) -> list[str]:
    """Return the files that a second run would change again."""
    again = [
        outcome.before.with_text(
            outcome.after if outcome.after is not None else outcome.before.text
        )
        for outcome in result.outcomes
    ]
    result = migrate(again, settings, notes=False, read=result.read)
    return [outcome.path for outcome in result.outcomes if outcome.after is not None]
