"""Moves functions and classes of a module to other places: helpers below their use, `main` first, any order."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import libcst as cst

from generated.refactor.code.names import bound, read, tree
from generated.refactor.code.writing import blank_lines, gap
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

Definition = cst.FunctionDef | cst.ClassDef


@dataclass(frozen=True)
class Order:
    """What the statements of a module bind, what each reads when it runs, and what it may read by what it calls."""

    body: Sequence[cst.BaseStatement]
    binds: tuple[frozenset[str], ...]
    needs: tuple[frozenset[str], ...]

    def movable(self) -> list[int]:
        """Return the definitions whose names nothing else binds."""
        found = []
        for k, node in enumerate(self.body):
            if not isinstance(node, Definition) or node.decorators:
                continue
            name = node.name.value
            if sum(name in names for names in self.binds) == 1:
                found.append(k)
        return found

    def latest(self, k: int) -> int:
        """Return the index before which a definition can stand at the latest: that of its first use."""
        name = next(iter(self.binds[k]))
        later = range(k + 1, len(self.body))
        return next((j for j in later if name in self.needs[j]), len(self.body))

    def earliest(self, k: int) -> int:
        """Return the index before which a definition can stand at the earliest: below all that it needs to be made."""
        above = (
            j for j in range(k - 1, -1, -1) if self.binds[j] & self.needs[k] or self.opening(j)
        )
        return next(above, -1) + 1

    def opening(self, k: int) -> bool:
        """Tell whether a statement is one of those that a file begins with: a docstring, imports and their guards."""
        nodes = ast.walk(tree(self.body[k]))
        text = isinstance(self.body[k], cst.SimpleStatementLine) and k == 0
        return text or (
            any(isinstance(n, ast.Import | ast.ImportFrom) for n in nodes)
            and not (isinstance(self.body[k], Definition))
        )


def order_of(module: cst.Module) -> Order:
    """Return the order of a module's statements."""
    body = [s for s in module.body if isinstance(s, cst.BaseStatement)]
    later: dict[str, set[str]] = {}
    now: list[set[str]] = []
    binds = [frozenset(bound(s)) for s in body]
    for statement, names in zip(body, binds, strict=True):
        at_once = _at_once(tree(statement).body[0])
        now.append(at_once)
        every = {n.id for n in ast.walk(tree(statement)) if isinstance(n, ast.Name)}
        for name in names:
            later.setdefault(name, set()).update(every | read(statement))
        if not isinstance(statement, Definition) or statement.decorators:
            for name in at_once:  # one may keep the other, and call it when it is read
                later.setdefault(name, set()).update(names | at_once)
    return Order(body, tuple(binds), tuple(frozenset(_reached(names, later)) for names in now))


def _at_once(node: ast.stmt) -> set[str]:
    """Return the names that a statement reads when it runs itself."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        arguments = node.args
        defaults = [*arguments.defaults, *(d for d in arguments.kw_defaults if d)]
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        stars = [a for a in (arguments.vararg, arguments.kwarg) if a]
        notes = [a.annotation for a in (*every, *stars) if a.annotation]
        heads = [*defaults, *node.decorator_list, *notes, *([node.returns] if node.returns else [])]
    elif isinstance(node, ast.ClassDef):
        heads = [*node.bases, *node.keywords, *node.decorator_list]
        inner = (_at_once(s) for s in node.body)
        return _names(heads).union(*inner)
    else:
        heads = [node]
    return _names(heads)


def _names(nodes: Sequence[ast.AST]) -> set[str]:
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}


def _reached(names: set[str], later: dict[str, set[str]]) -> set[str]:
    found, waiting = set(names), list(names)
    while waiting:
        for name in later.get(waiting.pop(), ()):
            if name not in found:
                found.add(name)
                waiting.append(name)
    return found


def _tells_classes(project: Project) -> bool:
    """Tell whether the order of classes may be seen, as they enter themselves somewhere."""
    return any(
        word in project.text for word in ("__init_subclass__", "__subclasses__", "metaclass")
    )


def moved(module: cst.Module, k: int, to: int) -> cst.Module:
    """Return the module with a definition above the statement that stands at an index now."""
    body = list(module.body)
    node = body[k]
    body.insert(to, node)
    body.pop(k + 1 if to < k else k)
    at = to if to < k else to - 1
    body[at] = gap(body[at], 2 if at else 0)
    for near in (at + 1, min(k, at) if to < k else k, k + 1):
        if (
            near < len(body)
            and near > 0
            and (isinstance(body[near], Definition) or isinstance(body[near - 1], Definition))
        ):
            body[near] = gap(body[near], max(2, blank_lines(body[near])))
    if not module.header:
        body[0] = gap(body[0], 0)
    return module.with_changes(body=body)


def _one(project: Project, rng: Random) -> Project | None:
    """Draw a definition and a legal place for it."""
    if _tells_classes(project):
        return None
    choices = []
    for path in project.files:
        order = order_of(project.module(path))
        for k in order.movable():
            places = range(order.earliest(k), order.latest(k) + 1)
            wanted = [to for to in places if to not in (k, k + 1)]
            wanted = [to for to in wanted if _apart(order, to)]
            if wanted:
                choices.append((path, k, wanted))
    if not choices:
        return None
    path, k, wanted = rng.choice(choices)
    return project.changed(path, moved(project.module(path), k, rng.choice(wanted)))


def _apart(order: Order, to: int) -> bool:
    """Tell whether a definition can stand above a statement without splitting plain statements."""
    ends = [order.body[j] for j in (to - 1, to) if 0 <= j < len(order.body)]
    return len(ends) < 2 or any(isinstance(node, cst.BaseCompoundStatement) for node in ends)


def _all_down(project: Project, rng: Random) -> Project | None:
    """Draw a module; of its definitions each goes as far down as its first use allows."""
    if _tells_classes(project):
        return None
    paths = list(project.files)
    rng.shuffle(paths)
    for path in paths:
        module = project.module(path)
        names = [module.body[k].name.value for k in order_of(module).movable()]  # type: ignore[union-attr]
        rng.shuffle(names)
        changed = module
        for name in names:
            changed = _lowered(changed, name)
        if changed.code != module.code:
            return project.changed(path, changed)
    return None


def _lowered(module: cst.Module, name: str) -> cst.Module:
    order = order_of(module)
    k = next(k for k, names in enumerate(order.binds) if name in names)
    to = order.latest(k)
    while to > k + 1 and not _apart(order, to):
        to -= 1
    return moved(module, k, to) if to > k + 1 else module


def _callers_first(project: Project, rng: Random) -> Project | None:
    """Draw a module with two definitions, of which the lower uses the upper; callers go above what they call."""
    if _tells_classes(project):
        return None
    paths = list(project.files)
    rng.shuffle(paths)
    for path in paths:
        module = project.module(path)
        changed = module
        order = order_of(module)
        names = [module.body[k].name.value for k in order.movable()]  # type: ignore[union-attr]
        for name in names:
            changed = _raised(changed, name)
        if changed.code != module.code:
            return project.changed(path, changed)
    return None


def _raised(module: cst.Module, name: str) -> cst.Module:
    """Return the module with a definition above the first one that it uses, if it may stand there."""
    order = order_of(module)
    k = next(k for k, names in enumerate(order.binds) if name in names)
    used = read(module.body[k])
    earlier = [
        j
        for j in range(order.earliest(k), k)
        if isinstance(order.body[j], Definition) and used & order.binds[j]
    ]
    return moved(module, k, earlier[0]) if earlier else module


REFACTORINGS = (
    Refactoring("a definition moves", "order", _one),
    Refactoring("definitions stand right above their first use", "order", _all_down),
    Refactoring("callers stand above what they call", "order", _callers_first),
)
