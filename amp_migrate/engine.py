"""The codemod from sources to outcomes: facts, units, plan, rewrite, self-check. It prints and writes nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from amp_migrate.facts.tree import Tree
from amp_migrate.outcome import Beyond, Outcome, Phase, Phases, Read, Result, Unread, joined
from amp_migrate.plan.model import Plan
from amp_migrate.processes import release, without_collector
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source
from amp_migrate.source.mentions import speaks_of_amp

if TYPE_CHECKING:
    from amp_migrate.older.describe import OlderInterfaces
    from amp_migrate.project import Project


def migrate(
    sources: Sequence[Source],
    settings: Settings,
    notes: bool = True,
    read: Read | None = None,
    beyond: Beyond = lambda _: None,
    begins: Phases | None = None,
) -> Result:
    """Migrate sources as one project; files without Apex in them only serve as context.

    Without `notes` nothing is said about native code that stays as it is. `read` is what the check of a run
    before left, over the sources or other texts of their files. `beyond` gives the sources with what imports files
    that change. With `begins`, which is told of each phase, a second run tells the files that it would change. Files whose
    objects never meet are migrated one group after another, as if each were given alone.
    """
    from amp_migrate.plan.native import applies
    from amp_migrate.source.mentions import may_use_apex

    respelt = (
        settings.api == "torch.amp"
        and settings.respell
        and any(applies(source.text) for source in sources)
    )
    if not respelt and not any(may_use_apex(source.text) for source in sources):
        return Result([Outcome(source.path, source) for source in sources], Plan())
    run = _Run(settings, notes, beyond, begins)
    with without_collector():
        while True:
            try:
                return run.over(sources, read or Read())
            except Unread as unread:
                sources = unread.sources


@dataclass(frozen=True, slots=True)
class _Run:
    """How sources are migrated, whichever they are, and the groups of them that are `done`."""

    settings: Settings
    notes: bool
    beyond: Beyond
    begins: Phases | None
    done: dict[tuple[str, ...], Result] = field(default_factory=dict)

    def over(self, sources: Sequence[Source], read: Read) -> Result:
        """Migrate some sources, group by group."""
        known = read.project
        parsed, outcomes = _parse(sources, known)
        if known is not None and {path: m.tree for path, m in known.modules.items()} != parsed:
            known = None
        groups = [tuple(parsed)] if known is not None else _groups(parsed)
        if len(groups) == 1:
            return self._together(parsed, outcomes, known, read)
        initializing = {g for g in groups if any(_initializes(parsed[path]) for path in g)}
        speaking = [g for g in groups if any(speaks_of_amp(parsed[path].text) for path in g)]
        parsed.clear()
        unread: Unread | None = None
        for paths in speaking:
            if paths not in self.done:
                own = Read(refused=read.refused, elsewhere=bool(initializing - {paths}))
                unread = (
                    self._apart(paths, [outcomes[path].before for path in paths], own) or unread
                )
            release()
        if unread is not None:
            raise unread
        return joined(outcomes, [self.done[paths] for paths in speaking])

    def _apart(
        self, paths: tuple[str, ...], sources: Sequence[Source], read: Read
    ) -> Unread | None:
        """Migrate the files of one group, and let go of all but the result; return what other sources that needs."""
        try:
            done = self._together(*_parse(sources, None), None, read)
        except Unread as unread:
            return unread.with_traceback(None)
        read.project = None
        self.done[paths] = done
        return None

    def _together(
        self,
        trees: dict[str, Tree],
        outcomes: dict[str, Outcome],
        known: Project | None,
        read: Read,
    ) -> Result:
        """Migrate files that may work together."""
        if self.begins is not None:
            self.begins(Phase.MIGRATING, len(trees))
        result = _migrated(trees, outcomes, self.settings, self.notes, known, read, self.beyond)
        if self.begins is not None and any(o.after is not None for o in result.outcomes):
            self.begins(Phase.AGAIN, len(trees))
            result.unstable = unstable(result, self.settings)
        return result


def _initializes(tree: Tree) -> bool:
    """Tell whether a file calls ``amp.initialize`` of Apex, as its own imports show."""
    from amp_migrate.facts.imports import Imports
    from amp_migrate.source.mentions import uses_apex

    if not uses_apex(tree.text):
        return False
    imports = Imports(tree)
    return any(imports.qualified(c.func) == "apex.amp.initialize" for c in tree.nodes(ast.Call))


def _groups(parsed: Mapping[str, Tree]) -> list[tuple[str, ...]]:
    """Return the files whose objects may meet, group by group."""
    from amp_migrate.modules.meeting import Meeting
    from amp_migrate.project import build

    project = build(parsed)
    given = {path.replace("\\", "/"): path for path in parsed}
    meeting = Meeting(project.modules.values(), project.lookup)
    return [tuple(given[path] for path in group) for group in meeting.apart()] or [()]


def _migrated(
    parsed: dict[str, Tree],
    outcomes: dict[str, Outcome],
    settings: Settings,
    notes: bool,
    known: Project | None,
    read: Read,
    beyond: Beyond,
) -> Result:
    from amp_migrate.attempts.spelt_out import last_plan
    from amp_migrate.plan.planner import Planner

    older = _older(parsed, settings, known)
    known = older.project if older is not None else known
    while True:
        trees = older.trees() if older is not None else parsed
        same = all(trees[path] is tree for path, tree in parsed.items())
        first = Planner(trees, settings, notes, known if same else None, elsewhere=read.elsewhere)
        plan, units, judgement = last_plan(first, trees, outcomes, read, beyond)
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
    from amp_migrate.source.mentions import uses_older

    if not settings.migrates or not any(uses_older(tree.text) for tree in parsed.values()):
        return None
    from amp_migrate.older.describe import OlderInterfaces

    return OlderInterfaces(parsed, settings, known)


def _parse(
    sources: Sequence[Source], known: Project | None
) -> tuple[dict[str, Tree], dict[str, Outcome]]:
    """Return the trees of the files that can be read, and the outcomes of all."""
    from amp_migrate.source.mentions import skips_file, uses_apex

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
