"""Reads of gradients between backward and step: what `unscale_` must come before."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from amp_migrate.apex.sites import Kind, is_apex
from amp_migrate.facts.closure import closure
from amp_migrate.facts.paths import path, stored, tail, variables, walk
from amp_migrate.facts.scopes import Comprehension
from amp_migrate.facts.tree import Tree
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.reads.thrown_away import thrown_away
from amp_migrate.placement.windows.course import Course
from amp_migrate.project import Function, Project
from amp_migrate.project.once import kept
from amp_migrate.project.order import inside, key, levels
from amp_migrate.project.reach import reachable
from amp_migrate.protocol.code.program import program_of
from amp_migrate.training.beliefs import CLIP_WORDS, OWNER_NAME, READS_GRADIENTS, reduces
from amp_migrate.training.events import Kind as Read
from amp_migrate.training.steppers import is_optimizer_class
from amp_migrate.training.steps import Step


@dataclass(frozen=True, eq=False, slots=True)
class Use:
    """A read of gradients: its statement, whether it clips, and the optimizer that it names."""

    statement: ast.stmt
    node: ast.expr
    clips: bool
    optimizer: ast.expr | None


def uses(unit: Unit, function: Function, steps: list[Step]) -> list[Use]:
    """Return the reads of gradients in a function that lie before one of its steps (or after a backward), in order."""
    course = Course(unit, function)
    found: dict[tuple[ast.stmt, ast.expr | None], Use] = {}
    removed = thrown_away(unit, function, steps)
    stepping = {step.call for step in steps if _steps_itself(unit, step)}
    taken = [
        Use(function.module.tree.statement(node), node, False, named)
        for node, named in removed.items()
    ]
    for candidate in [*_candidates(unit, function), *taken]:
        if candidate.node in stepping:
            continue
        use = _before_loops(unit, candidate, course, steps)
        if use.node not in unit.gone and course.is_read_before(use.node, steps):
            found.setdefault((use.statement, use.node if use.clips else None), use)
    return sorted(found.values(), key=lambda use: key(use.node))


def _steps_itself(unit: Unit, step: Step) -> bool:
    """Tell whether a step runs that of an optimizer of the project, which reads what it steps on."""
    run = unit.project.callees(step.call)
    return bool(run) and all(f.cls is not None and is_optimizer_class(f.cls) for f in run)


def _before_loops(unit: Unit, use: Use, course: Course, steps: list[Step]) -> Use:
    """Let a read in loops that train nothing count where they start: their rounds share the gradients of one step."""
    module = course.function.module
    tree = module.tree
    for level in levels(tree, use.statement):
        if isinstance(level, ast.For | ast.While) and not unit.trains(module, level):
            behind = course.next_steps(use.node, steps)
            follows = not steps or any(not inside(tree, s.call, level) for s in behind)
            if not follows or _visits_optimizers(level, use):
                break
            use = replace(use, statement=level)
    return use


def _visits_optimizers(loop: ast.stmt, use: Use) -> bool:
    read = variables(use.statement)
    return isinstance(loop, ast.For) and _chooses_optimizer(loop, use.node, read)


def _candidates(unit: Unit, function: Function) -> Iterator[Use]:
    masters = {site.node: site for site in unit.of(Kind.MASTER_PARAMS) if site.function is function}
    for top in function.scope.body:
        for node in walk(top):
            use = _use(unit, function, node, masters) or _property(unit, function, node)
            use = use or _read(unit, function, node)
            if use is not None:
                yield use


def _property(unit: Unit, function: Function, node: ast.AST) -> Use | None:
    """Return the read of a property that reads gradients, or gives the parameters to what reads them."""
    if not isinstance(node, ast.Attribute):
        return None
    read = [f for f in program_of(unit.project).runs(node) if f.is_property]
    if all(f not in unit.clip_helpers and not reads(unit, f) for f in read):
        return None
    return Use(function.module.tree.statement(node), node, False, None)


def _read(unit: Unit, function: Function, node: ast.AST) -> Use | None:
    """Return the read that a node is, or may be, as code out of sight that is given a network may read its gradients."""
    events = program_of(unit.project).training.of(function).get(node, ())
    reads = [event for event in events if event.kind is Read.READ_GRAD]
    if not reads or not isinstance(node, ast.expr):
        return None
    if isinstance(node, ast.Call) and is_apex(unit.project.apex(function.module, node.func) or ""):
        return None
    tree = function.module.tree
    clips = isinstance(node, ast.Call) and not all(event.assumed for event in reads)
    return Use(function.module.tree.statement(node), node, clips, _visited(tree, node))


def _visited(tree: Tree, node: ast.AST) -> ast.expr | None:
    """Return the optimizer whose parameter groups a loop around a node visits."""
    for up in tree.ancestors(node):
        over = up.iter if isinstance(up, ast.For | ast.comprehension) else None
        over = up.generators[0].iter if isinstance(up, Comprehension) else over
        for part in ast.walk(over) if over is not None else ():
            if isinstance(part, ast.Attribute) and part.attr == "param_groups":
                return part.value
    return None


def _use(
    unit: Unit, function: Function, node: ast.AST, masters: Mapping[ast.expr | ast.stmt, object]
) -> Use | None:
    tree, called = function.module.tree, unit.project.lookup.called
    if (
        not isinstance(node, ast.Call)
        or unit.project.function_of(function.module, node) is not function
    ):
        return None
    if node in masters:
        parent = tree.parent(node)
        if isinstance(parent, ast.Call) and called(function.module, parent) in READS_GRADIENTS:
            return None
        return Use(
            function.module.tree.statement(node), node, False, node.args[0] if node.args else None
        )
    if unit.clip_helpers.intersection(unit.project.callees(node)):
        return Use(function.module.tree.statement(node), node, True, None)
    name = called(function.module, node)
    if reduces(name) and not unit.project.callees(node):
        return None
    if name in READS_GRADIENTS or clips_by_name(node, name):
        named = _named_optimizer(node, masters) or _twin(tree, node, masters)
        return Use(function.module.tree.statement(node), node, True, named)
    run = [*unit.project.callees(node), *_called_back(unit, node)]
    if any(reads(unit, callee) for callee in run):
        return Use(function.module.tree.statement(node), node, False, None)
    return None


def clips_by_name(call: ast.Call, name: str) -> bool:
    """Tell whether a helper reads gradients by its name: ``clip_gradients(model)``, not ``clip(images, 0, 1)``."""
    if any(word in name for word in CLIP_WORDS) or ("clip" in name and "grad" in name):
        return bool(call.args) or isinstance(call.func, ast.Attribute)
    given = [path(node.func if isinstance(node, ast.Call) else node) for node in call.args]
    return "clip" in name and any(OWNER_NAME.search(g.rpartition(".")[2]) for g in given if g)


def _named_optimizer(
    call: ast.Call, masters: Mapping[ast.expr | ast.stmt, object]
) -> ast.expr | None:
    for part in ast.walk(call):
        if part in masters and isinstance(part, ast.Call) and part.args:
            return part.args[0]
    return None


def _twin(
    tree: Tree, call: ast.Call, masters: Mapping[ast.expr | ast.stmt, object]
) -> ast.expr | None:
    """Return the optimizer that the Apex branch beside a plain clip names."""
    up = tree.holder(tree.statement(call))
    if not isinstance(up, ast.If):
        return None
    beside = [n for n in ast.walk(up) if isinstance(n, ast.Call) and tail(n) == tail(call)]
    found = [
        name for n in beside if n is not call and (name := _named_optimizer(n, masters)) is not None
    ]
    return found[0] if len(found) == 1 else None


def reads(unit: Unit, function: Function) -> bool:
    """Tell whether a helper, which neither scales nor steps, reads gradients of parameters, itself or by another one.

    Callbacks count where a call may run them. What keeps a backward plain reads the gradients of that one.
    """
    apart = [b.function for b in unit.beside]
    if function in apart:
        return False

    def onward(helper: Function) -> list[Function]:
        reached = reachable(unit.project, helper, [*unit.functions, *apart])
        handed = {f: None for r in reached if r.node is not None for f in _handed_in(project, r)}
        return [*reached, *_without_training(unit, handed)]

    project = unit.project
    return any(
        kept(project, (reads, helper), partial(_reads_itself, project, helper))
        for helper in closure(onward(function), onward)
    )


def _called_back(unit: Unit, node: ast.AST) -> list[Function]:
    """Return the callbacks that a call may run, which do not train themselves."""
    if not isinstance(node, ast.Call):
        return []
    return _without_training(unit, program_of(unit.project).calls.handed(node))


def _without_training(unit: Unit, functions: Iterable[Function]) -> list[Function]:
    return [f for f in functions if reachable(unit.project, f).isdisjoint(unit.functions)]


def _handed_in(project: Project, function: Function) -> list[Function]:
    """Return the callbacks that the calls of a function may run."""
    handed = program_of(project).calls.handed
    calls = function.calls
    return kept(project, (_handed_in, function), lambda: [f for c in calls for f in handed(c)])


def _reads_itself(project: Project, function: Function) -> bool:
    events = program_of(project).training.of(function)
    return any(event.kind is Read.READ_GRAD for held in events.values() for event in held)


def _chooses_optimizer(loop: ast.For, node: ast.AST, read: set[str]) -> bool:
    """Tell whether a loop picks the optimizer whose parameters `node` reads."""
    targets = stored(loop.target)
    masters = [n for n in ast.walk(node) if isinstance(n, ast.Call) and tail(n) == "master_params"]
    return bool(targets & read) and any(
        isinstance(n, ast.Name) and n.id in targets for call in masters for n in ast.walk(call)
    )
