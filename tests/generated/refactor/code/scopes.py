"""What a run of statements shares with the rest of its function: inputs, results, and what is bound before it."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

import libcst as cst

from generated.refactor.code.blocks import Block, blocks, escapes, mentions, runs, whole
from generated.refactor.code.names import (
    bound,
    certain,
    code,
    declared,
    deleted,
    free,
    needed,
    read,
    tree,
)
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
FRAME = {"locals", "eval", "exec", "globals", "super", "__class__"}


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
        if start or not is_docstring(block.body[0])
    ]
    rng.shuffle(found)
    if rng.random() < 0.75:
        yield from _training_first(found, tries)
    else:
        yield from found[:tries]


def is_docstring(statement: cst.CSTNode) -> bool:
    """Tell whether a statement is a string alone."""
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    small = statement.body[0]
    strings = cst.SimpleString | cst.ConcatenatedString
    return isinstance(small, cst.Expr) and isinstance(small.value, strings)


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
    function, chain = block.function, _chain(block)
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
    if not whole(run) or deleted(tree(run)) or read(run) & FRAME:
        return None
    if block.function is None:
        around = _of_module(project, place)
    else:
        around = _of_function(place)
    if around is None:
        return None
    own, later = around
    sure = before(block, place.start)
    takes, gives = needed(run), bound(run)
    outputs = gives & later
    unsure = outputs - certain(run)
    inputs = (takes | unsure) & own
    if block.function is None:
        inputs -= (
            inputs - sure - gives
        )  # what is not bound for certain is read as a global variable
    if (inputs & variables_here(place)) - sure or len(inputs) > MOST_INPUTS:
        return None
    order = in_order(run)
    last = code(run[-1])
    given = sorted(outputs, key=order)
    assigned = [k.strip() for k in last.partition(" = ")[0].strip("()").split(",")]
    if set(assigned) == outputs and len(assigned) == len(outputs):
        given = assigned
    return Shared(tuple(sorted(inputs, key=order)), tuple(given))


def variables_here(place: Place) -> set[str]:
    """Return the names of the innermost scope of a place."""
    function = place.block.function
    return module_variables(place.module) if function is None else variables(function)


def _of_function(place: Place) -> tuple[set[str], set[str]] | None:
    """Return the local names that a run can see, and those that are read after it."""
    function, run = place.block.function, place.run
    assert function is not None
    scopes = [node for node in place.block.inside if isinstance(node, cst.FunctionDef)]
    if any(declared(scope.body.body) for scope in scopes):
        return None
    body = function.body.body
    if captured(body) & bound(run) or captured(run) & _twice(body):
        return None
    return set().union(*(variables(scope) for scope in scopes)), live(place)


def _of_module(project: Project, place: Place) -> tuple[set[str], set[str]] | None:
    module, gives = place.module, bound(place.run)
    body = module.body
    if captured(body) & gives or declared_anywhere(module) & (gives | read(place.run)):
        return None
    return module_variables(module), live(place) if place.path == project.entry else gives


def module_variables(module: cst.Module) -> set[str]:
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
    """Return the names that functions, classes, lambdas and kept generators defined in code may read later."""
    return set().union(*map(free, _deferred(tree(body))))


def _deferred(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the outermost nodes whose code does not run where it stands."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef | ast.GeneratorExp
    for child in ast.iter_child_nodes(node):
        consumed = isinstance(node, ast.Call) and isinstance(child, ast.GeneratorExp)
        if isinstance(child, kinds) and not consumed:
            yield child
        else:
            yield from _deferred(child)


def _twice(body: Sequence[cst.CSTNode]) -> set[str]:
    """Return the names that code binds in more than one place."""
    return {name for name, count in _stores_of(body).items() if count > 1}


def _stores_of(body: Sequence[cst.CSTNode]) -> Counter[str]:
    nodes = (n for n in ast.walk(tree(body)) if isinstance(n, ast.Name))
    return Counter(n.id for n in nodes if not isinstance(n.ctx, ast.Load))


def live(place: Place) -> set[str]:
    """Return the names that code of the same scope may read after a run, before it binds them again."""
    chain = _chain(place.block)
    tried = any(isinstance(node, cst.Try | cst.TryStar) for node in chain)
    rest, found, known = place.block.body[place.stop :], set[str](), set[str]()
    while True:
        found |= needed(rest) - known
        known |= set() if tried or escapes(rest) else certain(rest)
        if not chain:
            return found
        node = chain.pop()
        if isinstance(node, cst.For | cst.While | cst.Try | cst.TryStar):
            found |= needed([node]) - known
        if isinstance(node, cst.Try | cst.TryStar):
            found |= needed(_arms(node))
        rest = _following(place, chain, node)


def _chain(block: Block) -> list[cst.CSTNode]:
    """Return the compound statements around a block within its scope, outermost first."""
    found: list[cst.CSTNode] = []
    for node in reversed(block.inside):
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            break
        found.insert(0, node)
    return found


def _arms(node: cst.Try | cst.TryStar) -> list[cst.BaseStatement]:
    arms = [*node.handlers, node.orelse, node.finalbody]
    held = [arm.body for arm in arms if arm is not None]
    return [s for body in held if isinstance(body, cst.IndentedBlock) for s in body.body]


def _following(
    place: Place, chain: Sequence[cst.CSTNode], node: cst.CSTNode
) -> Sequence[cst.CSTNode]:
    """Return the statements below a compound statement in its block; none below an elif."""
    if chain:
        if any(node is child for child in chain[-1].children):
            return ()
        body, _ = _arm(chain[-1], node)
    else:
        function = place.block.function
        body = place.module.body if function is None else function.body.body
    return body[next(k for k, s in enumerate(body) if s is node) + 1 :]


def stored_outside(body: Sequence[cst.CSTNode], run: Sequence[cst.CSTNode]) -> set[str]:
    """Return the names that code binds in other places than in a run of its statements."""
    return set(_stores_of(body) - _stores_of(run))


def _reads(body: Sequence[cst.CSTNode]) -> Counter[str]:
    found: Counter[str] = Counter()
    for node in ast.walk(tree(body)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found[node.id] += 1
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] += 1
    return found


def in_order(run: Sequence[cst.CSTNode]) -> Callable[[str], tuple[int, int]]:
    """Return a key that sorts names by where they first occur in code."""
    found: dict[str, tuple[int, int]] = {}
    for node in ast.walk(tree(run)):
        if isinstance(node, ast.Name):
            at = node.lineno, node.col_offset
            found[node.id] = min(found.get(node.id, at), at)
    return lambda name: found.get(name, (0, 0))


def declared_around(place: Place) -> set[str]:
    """Return the names that the functions around a place, or any of the module, declare global or nonlocal."""
    scopes = [node for node in place.block.inside if isinstance(node, cst.FunctionDef)]
    if not scopes:
        return declared_anywhere(place.module)
    return {name for scope in scopes for name in declared(scope.body.body)}


def variables_around(place: Place) -> set[str]:
    """Return the local names of the functions around a place; at the level of the module, its variables."""
    scopes = [node for node in place.block.inside if isinstance(node, cst.FunctionDef)]
    if not scopes:
        return set()
    return set().union(*(variables(scope) for scope in scopes))
