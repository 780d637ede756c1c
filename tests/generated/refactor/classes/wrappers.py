"""Puts an object around an optimizer that delegates to it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from generated.refactor.code.calls import attributes, dynamic
from generated.refactor.code.names import fresh
from generated.refactor.code.source import Edit, Function, Source, drawn, first, sources
from generated.refactor.code.variables import scopes
from generated.refactor.places.containers import movable, outermost
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_METHODS = {
    "step": ("closure=None", "return self.{o}.step(closure)"),
    "zero_grad": ("*args, **kwargs", "self.{o}.zero_grad(*args, **kwargs)"),
    "state_dict": ("", "return self.{o}.state_dict()"),
    "load_state_dict": ("state", "self.{o}.load_state_dict(state)"),
}


@dataclass(frozen=True)
class Held:
    """The statement that makes or initializes an optimizer, and what names the optimizer below it."""

    path: str
    src: Source
    after: ast.stmt
    word: str
    uses: tuple[ast.expr, ...]


def _statements(src: Source) -> list[tuple[ast.Assign, ast.expr]]:
    """Return the assignments that make or initialize one optimizer, and their target."""
    found = []
    for node in ast.walk(src.tree):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        if not isinstance(node.value, ast.Call) or not src.alone([node]):
            continue
        made, target = ast.unparse(node.value.func), node.targets[0]
        if made.endswith("initialize") and isinstance(target, ast.Tuple) and len(target.elts) == 2:
            found.append((node, target.elts[1]))
        elif made.startswith(("torch.optim.", "optim.")) and "lr_sch" not in made:
            found.append((node, target))
    return found


def _local(project: Project, path: str, src: Source) -> list[Held]:
    """Return the optimizers in variables that one statement binds last, at the level of its function."""
    found = []
    for node, target in _statements(src):
        if not isinstance(target, ast.Name):
            continue
        variable = scopes(src).of[target]
        around = src.inside(node, *Function.__args__, ast.Lambda) or src.tree
        last = max(variable.stores, key=lambda n: n.lineno)
        if variable.inner or variable.declarations or last is not target:
            continue
        if around is not variable.scope.node or not movable(src, variable):
            continue
        here = _whole(src, node, around)
        if here is None or (around is src.tree and path != project.entry):
            continue
        block, k = src.siblings(here)
        below = {id(n) for s in block[k + 1 :] for n in ast.walk(s)}
        later = [n for n in variable.loads if n.lineno > (here.end_lineno or 0)]
        if later and all(id(n) in below for n in later):
            found.append(Held(path, src, here, target.id, tuple(later)))
    return found


def _whole(src: Source, node: ast.stmt, around: ast.AST) -> ast.stmt | None:
    """Return the statement of the function's own body that holds one; None inside of a loop."""
    here = node
    while src.parents[here] is not around:
        above = src.parents[here]
        if not isinstance(above, ast.If):
            return None
        here = above
    return here


def _attribute(project: Project, path: str, src: Source) -> list[Held]:
    """Return the optimizers in attributes that one constructor binds, and nothing else."""
    found = []
    for node, target in _statements(src):
        if not isinstance(target, ast.Attribute) or ast.unparse(target.value) != "self":
            continue
        around = src.inside(node, *Function.__args__, ast.Lambda)
        klass = src.inside(node, ast.ClassDef)
        if not isinstance(around, ast.FunctionDef) or around.name != "__init__":
            continue
        here = _whole(src, node, around)
        every = [(s, n) for _, s, n in attributes(project, target.attr)]
        mine = [n for s, n in every if s is src and src.inside(n, ast.ClassDef) is klass]
        if here is None or len(mine) != len(every):
            continue
        if any(ast.unparse(n.value) != "self" for n in mine):
            continue
        stores = [n for n in mine if not isinstance(n.ctx, ast.Load)]
        if any(n.lineno > target.lineno for n in stores):
            continue
        if any(src.inside(n, *Function.__args__) is not around for n in stores):
            continue
        first_line, last_line = around.lineno, here.end_lineno or 0
        later = [n for n in mine if not first_line <= n.lineno <= last_line]
        if any(isinstance(n, ast.JoinedStr) for n in map(src.parents.get, later)):
            continue
        found.append(Held(path, src, here, f"self.{target.attr}", tuple(later)))
    return found


def _apply(shape: str) -> Callable[[Project, Random], Project | None]:
    def apply(project: Project, rng: Random) -> Project | None:
        if dynamic(project) or "isinstance" in project.text:
            return None
        places = [
            (1, held)
            for path, src in sources(project).items()
            for held in (*_local(project, path, src), *_attribute(project, path, src))
        ]
        return first(drawn(rng, places), lambda held: _wrapped(project, rng, shape, held))

    return apply


def _wrapped(project: Project, rng: Random, shape: str, held: Held) -> Project | None:
    src, unit = held.src, held.src.unit
    kind = fresh(project, rng, ("OptimizerWrapper", "Stepper", "OptimizerProxy", "Updater"))
    inner = rng.choice(["optimizer", "inner", "wrapped", "base"])
    used = _delegated(src, held.uses)
    edits = []
    for use in held.uses:
        above = src.parents[use]
        plain = isinstance(above, ast.Attribute) and above.attr in (*_METHODS, "param_groups")
        if not plain:
            stop = src.span(use)[1]
            edits.append(Edit(stop, stop, f".{inner}"))
    text = _class(kind, inner, unit, shape, used)
    indent, at = src.indent(held.after), src.below(held.after)
    edits.append(Edit(at, at, f"{indent}{held.word} = {kind}({held.word})\n"))
    outer = src.above(outermost(src, held.after))
    edits.append(Edit(outer, outer, f"{text}\n\n"))
    if not used & {"step", "zero_grad"}:
        return None
    changed = src.edited(edits)
    return None if changed is None else project.changed(held.path, changed)


def _delegated(src: Source, uses: Sequence[ast.expr]) -> set[str]:
    above = [src.parents[use] for use in uses]
    return {a.attr for a in above if isinstance(a, ast.Attribute)}


def _class(kind: str, inner: str, unit: str, shape: str, used: set[str]) -> str:
    rows = [
        f"class {kind}:",
        f"{unit}def __init__(self, optimizer):",
        f"{unit * 2}self.{inner} = optimizer",
    ]
    explicit = [m for m in _METHODS if m in used]
    if shape == "getattr":
        explicit = []
        rows += [
            "",
            f"{unit}def __getattr__(self, name):",
            f"{unit * 2}return getattr(self.{inner}, name)",
        ]
    elif "param_groups" in used:
        rows += [
            "",
            f"{unit}@property",
            f"{unit}def param_groups(self):",
            f"{unit * 2}return self.{inner}.param_groups",
        ]
    for method in explicit:
        given, line = _METHODS[method]
        signature = ", ".join(filter(None, ["self", given]))
        rows += ["", f"{unit}def {method}({signature}):", unit * 2 + line.format(o=inner)]
    return "\n".join(rows) + "\n"


REFACTORINGS = (
    Refactoring("a wrapper of an optimizer with methods", "classes", _apply("methods")),
    Refactoring("a wrapper of an optimizer with getattr", "classes", _apply("getattr")),
)
