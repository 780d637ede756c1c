"""What a run of statements shares with the rest of its function: inputs, results, and what is bound before it."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

import libcst as cst

from generated.refactor.blocks import Block, blocks, mentions, runs, whole
from generated.refactor.names import bound, certain, declared, deleted, needed, read, tree
from generated.refactor.project import Project

TRAINING = (
    "scale_loss",
    "backward",
    "step(",
    "zero_grad",
    "initialize",
    "clip_grad",
    "master_params",
    "state_dict",
    "no_grad",
    "criterion",
    "loss",
    "model(",
    ".eval(",
    "net",
)
MOST_INPUTS = 9
_FRAME = {"locals", "eval", "exec", "globals", "super", "__class__"}


@dataclass(frozen=True)
class Place:
    """A run of statements of a block, from `start` to `stop`, in a file of a project."""

    path: str
    module: cst.Module
    block: Block
    start: int
    stop: int

    @property
    def run(self) -> Sequence[cst.BaseStatement]:
        """The statements."""
        return self.block.body[self.start : self.stop]

    @property
    def outermost(self) -> int:
        """The index of the statement of the module in which the run stands."""
        top = self.block.inside[0] if self.block.inside else self.run[0]
        return next(k for k, node in enumerate(self.module.body) if node is top)


def places(
    project: Project,
    rng: Random,
    fits: Callable[[Block], bool] = lambda block: True,
    longest: int = 6,
    tries: int = 60,
) -> Iterator[Place]:
    """Yield runs of statements in a random order; in three of four orders those of the training come first."""
    found = [
        Place(path, project.module(path), block, start, stop)
        for path in project.files
        for block in blocks(project.module(path))
        if fits(block)
        for start, stop in runs(block, longest)
    ]
    rng.shuffle(found)
    if rng.random() < 0.75:
        yield from _training_first(found, tries)
    else:
        yield from found[:tries]


def _training_first(found: Sequence[Place], tries: int) -> Iterator[Place]:
    seen: dict[int, bool] = {}
    rest: list[Place] = []
    for place in found:
        if any(_trains(statement, seen) for statement in place.run):
            yield place
            tries -= 1
        else:
            rest.append(place)
        if not tries:
            return
    yield from rest[:tries]


def _trains(statement: cst.CSTNode, seen: dict[int, bool]) -> bool:
    if id(statement) not in seen:
        seen[id(statement)] = mentions(statement, *TRAINING)
    return seen[id(statement)]


def parameters(function: cst.FunctionDef) -> set[str]:
    """Return the names of the parameters of a function."""
    p = function.params
    found = [*p.posonly_params, *p.params, *p.kwonly_params]
    found += [star for star in (p.star_arg, p.star_kwarg) if isinstance(star, cst.Param)]
    return {param.name.value for param in found}


def variables(function: cst.FunctionDef) -> set[str]:
    """Return the local names of a function: its parameters, and what it binds and does not declare otherwise."""
    return (bound(function.body.body) | parameters(function)) - declared(function.body.body)


def before(block: Block, start: int) -> set[str]:
    """Return the names of the block's own function (or of the module) that are bound for certain before a statement."""
    function = block.function
    depth = (
        0 if function is None else 1 + max(k for k, n in enumerate(block.inside) if n is function)
    )
    chain = block.inside[depth:]
    if function is not None:
        have, body = parameters(function), function.body.body
    else:
        outer = block.inside[0] if block.inside else None
        have, body = set(), block.body if outer is None else [outer]
    for k, node in enumerate(chain):
        index = next((i for i, s in enumerate(body) if s is node), None)
        if index is not None:
            have = _after(body[:index], have)
        have = have | _head(node)
        if k + 1 < len(chain) and any(chain[k + 1] is child for child in node.children):
            continue  # an elif
        inner = block.home if k + 1 == len(chain) else chain[k + 1]
        body, more = _arm(node, inner)
        have = have | more
    return _after(body[:start], have)


def _after(body: Sequence[cst.CSTNode], have: set[str]) -> set[str]:
    gone = {name for statement in body for name in deleted(tree(statement))}
    return (have - gone) | certain(body)


def _head(node: cst.CSTNode) -> set[str]:
    if isinstance(node, cst.For):
        return bound(cst.Assign([cst.AssignTarget(node.target)], cst.Integer("0")))
    if isinstance(node, cst.With):
        return bound(
            node.with_changes(leading_lines=(), body=cst.SimpleStatementSuite([cst.Pass()]))
        )
    return set()


def _arm(node: cst.CSTNode, inner: cst.CSTNode) -> tuple[Sequence[cst.CSTNode], set[str]]:
    """Return the block of a compound statement that leads to a node, and what is bound where it begins."""
    for child in node.children:
        held = child if isinstance(child, cst.IndentedBlock) else getattr(child, "body", None)
        if not isinstance(held, cst.IndentedBlock):
            continue
        if held is inner or any(statement is inner for statement in held.body):
            tried = isinstance(node, cst.Try) and child is node.orelse
            return held.body, certain(node.body.body) if tried else set()
    raise ValueError("a block that does not stand in its statement")


@dataclass(frozen=True)
class Shared:
    """What a run of statements takes from its function and gives back to it, in the order of the text."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def shared(project: Project, place: Place) -> Shared | None:
    """Return what passes between a run and the code around it; None where not all of that is certain."""
    block, run = place.block, place.run
    if not whole(run) or deleted(tree(run)) or read(run) & _FRAME:
        return None
    if block.function is None:
        around = _of_module(project, place)
    else:
        around = _of_function(block, run)
    if around is None:
        return None
    own, live = around
    sure = before(block, place.start)
    takes, gives = needed(run), bound(run)
    outputs = gives & live
    unsure = outputs - certain(run)
    inputs = (takes | unsure) & own
    if block.function is None:
        inputs -= (
            inputs - sure - gives
        )  # what is not bound for certain is read as a global variable
    if (inputs & variables_here(place)) - sure or len(inputs) > MOST_INPUTS:
        return None
    order = _order(run)
    return Shared(tuple(sorted(inputs, key=order)), tuple(sorted(outputs, key=order)))


def variables_here(place: Place) -> set[str]:
    """Return the names of the innermost scope of a place."""
    function = place.block.function
    return _globals(place.module) if function is None else variables(function)


def _of_function(block: Block, run: Sequence[cst.CSTNode]) -> tuple[set[str], set[str]] | None:
    """Return the local names that a run can see, and those that are read outside of it."""
    function = block.function
    assert function is not None
    scopes = [node for node in block.inside if isinstance(node, cst.FunctionDef)]
    gives = bound(run)
    if any(declared(scope.body.body) for scope in scopes):
        return None
    body = function.body.body
    if captured(body) & gives or captured(run) & _twice(body):
        return None
    live = _reads(body) - _reads(run)
    looped = needed(run) if block.loops else set()
    own = set().union(*(variables(scope) for scope in scopes))
    return own, set(live) | looped


def _of_module(project: Project, place: Place) -> tuple[set[str], set[str]] | None:
    module, run = place.module, place.run
    body = module.body
    gives = bound(run)
    if captured(body) & gives or declared_anywhere(module) & (gives | read(run)):
        return None
    if place.path != project.entry:
        live = gives
    else:
        live = set(_reads(body) - _reads(run)) | (needed(run) if place.block.loops else set())
    return _globals(module), live


def _globals(module: cst.Module) -> set[str]:
    """Return the variables of a module: no imports, functions and classes."""
    kinds = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef
    fixed: set[str] = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, kinds):
            fixed |= _bound_name(node)
    return bound(module) - fixed


def _bound_name(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(a.asname or a.name).partition(".")[0] for a in node.names}
    return {getattr(node, "name", "")}


def declared_anywhere(module: cst.Module) -> set[str]:
    """Return the names that any function of a module declares global or nonlocal."""
    nodes = ast.walk(tree(module))
    return {n for node in nodes if isinstance(node, ast.Global | ast.Nonlocal) for n in node.names}


def captured(body: Sequence[cst.CSTNode]) -> set[str]:
    """Return the names that functions, lambdas and generators defined in code may read later."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.GeneratorExp | ast.ClassDef
    found: set[str] = set()
    for node in ast.walk(tree(body)):
        if isinstance(node, kinds):
            inner = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            found |= inner - _parameters(node)
    return found


def _parameters(node: ast.AST) -> set[str]:
    if not isinstance(node, ast.FunctionDef | ast.Lambda):
        return set()
    own = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
    if isinstance(node, ast.FunctionDef):
        stored = {n.id for s in node.body for n in _own_nodes(s) if _stores(n)}
        stored -= {
            n for s in ast.walk(node) if isinstance(s, ast.Global | ast.Nonlocal) for n in s.names
        }
        own |= stored
    return own


def _own_nodes(statement: ast.stmt) -> Iterator[ast.Name]:
    return (n for n in ast.walk(statement) if isinstance(n, ast.Name))


def _stores(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _twice(body: Sequence[cst.CSTNode]) -> set[str]:
    """Return the names that code binds in more than one place."""
    stores = Counter(
        n.id
        for n in ast.walk(tree(body))
        if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)
    )
    return {name for name, count in stores.items() if count > 1}


def _reads(body: Sequence[cst.CSTNode]) -> Counter[str]:
    found: Counter[str] = Counter()
    for node in ast.walk(tree(body)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found[node.id] += 1
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] += 1
    return found


def _order(run: Sequence[cst.CSTNode]) -> Callable[[str], tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for node in ast.walk(tree(run)):
        if isinstance(node, ast.Name):
            at = node.lineno, node.col_offset
            found[node.id] = min(found.get(node.id, at), at)
    return lambda name: found.get(name, (0, 0))
