"""Where a refactoring of the control flow may take place, drawn so that most places matter to the training."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random

import libcst as cst

from generated.refactor.code.blocks import Block, blocks, parsed, put
from generated.refactor.code.names import bound, fresh
from generated.refactor.project import Project

Suite = cst.BaseSuite
Change = Callable[["Place", Random], "Project | None"]

_MATTER = re.compile(
    r"backward|scale_loss|master_params|initialize|step|zero_grad|clip_grad|criterion|state_dict|loss"
)
_WEIGHT = 5.0
_ATTEMPTS = 60


@dataclass(frozen=True)
class Place:
    """A statement of a project: the one at `index` of a block."""

    project: Project
    path: str
    module: cst.Module
    block: Block
    index: int

    @property
    def statement(self) -> cst.BaseStatement:
        """The statement itself."""
        return self.block.body[self.index]

    @property
    def rest(self) -> Sequence[cst.BaseStatement]:
        """The statements after it in its block."""
        return self.block.body[self.index + 1 :]

    @property
    def scope(self) -> cst.CSTNode:
        """The innermost function around it, or the module."""
        return self.block.function or self.module

    @property
    def tail(self) -> cst.CSTNode | None:
        """The loop or function whose body ends with it."""
        around = self.block.inside[-1] if self.block.inside else None
        loops = cst.For, cst.While, cst.FunctionDef
        if isinstance(around, loops) and around.body is self.block.home and not self.rest:
            return around
        return None

    @property
    def at_class_level(self) -> bool:
        """Whether it stands in the body of a class itself."""
        nearest = [n for n in self.block.inside if isinstance(n, cst.FunctionDef | cst.ClassDef)]
        return bool(nearest) and isinstance(nearest[-1], cst.ClassDef)

    def source(self, nodes: cst.CSTNode | Sequence[cst.CSTNode]) -> str:
        """Return the source of nodes in the indentation of the file."""
        several = [nodes] if isinstance(nodes, cst.CSTNode) else nodes
        return "".join(self.module.code_for_node(node) for node in several)

    def lead(self, statement: cst.BaseStatement | None = None) -> str:
        """Return the comments and blank lines above a statement."""
        lines = getattr(statement or self.statement, "leading_lines", ())
        return self.source(lines)

    def bare(self, statement: cst.BaseStatement | None = None) -> str:
        """Return the source of a statement without what stands above it."""
        return self.source((statement or self.statement).with_changes(leading_lines=()))

    def suite(self, suite: Suite) -> str:
        """Return the statements of a suite, not indented; a comment beside its colon stands above them."""
        if isinstance(suite, cst.IndentedBlock):
            beside = suite.header.comment
            text = f"{beside.value}\n" if beside else ""
            return text + self.source(suite.body) + self.source(suite.footer)
        return self.source(suite).strip() + "\n"

    def indented(self, text: str) -> str:
        """Return lines one level deeper."""
        indent = self.module.default_indent
        return "".join(f"{indent}{x}" if x.strip() else x for x in text.splitlines(keepends=True))

    def name(self, rng: Random, *stems: str) -> str:
        """Return a name that nothing in the project has."""
        return fresh(self.project, rng, stems)

    def replaced(self, text: str, count: int = 1, imports: str = "") -> Project | None:
        """Return the project with other text for `count` statements from here, None where that cannot be.

        A text that lies in strings over several lines is not to be indented, so it stays as it is.
        """
        old = self.source(self.block.body[self.index : self.index + count])
        if '"""' in old or "'''" in old:
            return None
        new = parsed(text, self.module)
        if "#" in text and text.count("#") != "".join(map(self.source, new)).count("#"):
            return None
        return self.exchanged(new, count, imports)

    def exchanged(
        self, new: Sequence[cst.BaseStatement], count: int = 1, imports: str = ""
    ) -> Project:
        """Return the project with other statements in place of `count` from here."""
        module = put(self.module, self.block, self.index, self.index + count, new)
        return self.project.changed(self.path, imported(module, imports))


@dataclass(frozen=True)
class _Spot:
    block: Block
    index: int
    weight: float


@lru_cache(maxsize=64)
def _spots(module: cst.Module) -> tuple[_Spot, ...]:
    weights = _Weights()
    module.visit(weights)
    return tuple(
        _Spot(block, k, _WEIGHT if block.body[k] in weights.found else 1.0)
        for block in blocks(module)
        for k in range(len(block.body))
    )


class _Weights(cst.CSTVisitor):
    """Collects the statements that name something of the training."""

    def __init__(self) -> None:
        self.found: set[cst.CSTNode] = set()
        self._around: list[cst.CSTNode] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.BaseCompoundStatement | cst.SimpleStatementLine):
            self._around.append(node)
        elif isinstance(node, cst.Name) and _MATTER.search(node.value):
            self.found.update(self._around)
        return not isinstance(node, cst.BaseParenthesizableWhitespace | cst.TrailingWhitespace)

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if isinstance(original_node, cst.BaseCompoundStatement | cst.SimpleStatementLine):
            self._around.pop()


def somewhere(
    change: Change, *kinds: type[cst.BaseStatement]
) -> Callable[[Project, Random], Project | None]:
    """Return what applies a change at a place drawn among the statements of these kinds."""

    def apply(project: Project, rng: Random) -> Project | None:
        found = [
            (rng.random() ** (1 / spot.weight), path, spot)
            for path in sorted(project.files)
            for spot in _spots(project.module(path))
            if isinstance(spot.block.body[spot.index], kinds)
            and not (cst.If in kinds and _is_main(spot.block.body[spot.index]))
        ]
        found.sort(key=lambda each: -each[0])
        for _, path, spot in found[:_ATTEMPTS]:
            place = Place(project, path, project.module(path), spot.block, spot.index)
            changed = change(place, rng)
            if changed is not None:
                return changed
        return None

    return apply


def _is_main(node: cst.BaseStatement) -> bool:
    """Tell whether a statement is the `if` by which a script runs itself, which everybody writes in one way."""
    test = node.test if isinstance(node, cst.If) else None
    left = test.left if isinstance(test, cst.Comparison) else None
    return isinstance(left, cst.Name) and left.value == "__name__"


def any_of(*changes: Change) -> Change:
    """Return the change that tries these in an order drawn anew each time."""

    def change(place: Place, rng: Random) -> Project | None:
        for each in rng.sample(changes, len(changes)):
            changed = each(place, rng)
            if changed is not None:
                return changed
        return None

    return change


def imported(module: cst.Module, line: str) -> cst.Module:
    """Return a module with an import at its top, unless it is there."""
    if not line or any(line in module.code_for_node(node).splitlines() for node in module.body):
        return module
    index = 0
    for k, node in enumerate(module.body):
        text = module.code_for_node(node).lstrip()
        if (k == 0 and text[:1] in "\"'") or text.startswith("from __future__"):
            index = k + 1
    return module.with_changes(
        body=[*module.body[:index], *parsed(f"{line}\n", module), *module.body[index:]]
    )


def only(node: cst.BaseStatement) -> cst.BaseSmallStatement | None:
    """Return the small statement of a line that holds one."""
    if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1:
        return node.body[0]
    return None


def syntax(text: str) -> ast.expr:
    """Return the syntax tree of an expression."""
    return ast.parse(f"({text})", mode="eval").body


_CALLS = ("len", "isinstance", "hasattr", "getattr", "min", "max", "abs", "bool", "int", "callable")
_SIMPLE = (
    *(ast.Name, ast.Attribute, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp),
    *(ast.Subscript, ast.expr_context, ast.operator, ast.boolop, ast.unaryop, ast.cmpop),
)


def simple(text: str) -> bool:
    """Tell whether an expression only looks at names, attributes and numbers, at any time the same."""
    for node in ast.walk(syntax(text)):
        if isinstance(node, ast.Call):
            if not (isinstance(node.func, ast.Name) and node.func.id in _CALLS) or node.keywords:
                return False
        elif not isinstance(node, _SIMPLE):
            return False
    return True


def attributes(text: str) -> set[str]:
    """Return the names of the attributes that an expression asks for."""
    return {n.attr for n in ast.walk(syntax(text)) if isinstance(n, ast.Attribute)}


@lru_cache(maxsize=256)
def _late(text: str) -> frozenset[str]:
    """Return the attributes that a file assigns outside of `__init__`, and its global names that functions bind."""
    found: set[str] = set()

    def walk(node: ast.AST, start: bool) -> None:
        for child in ast.iter_child_nodes(node):
            own = start
            if isinstance(child, ast.FunctionDef):
                own = child.name == "__init__"
            elif isinstance(child, ast.Attribute) and not isinstance(child.ctx, ast.Load):
                found.update(() if start else (child.attr,))
            elif isinstance(child, ast.Global | ast.Nonlocal):
                found.update(child.names)
            walk(child, own)

    walk(ast.parse(text), False)
    return frozenset(found)


def unchanging(place: Place, text: str, within: Sequence[cst.CSTNode]) -> bool:
    """Tell whether an expression has one value all through a run of statements."""
    if not simple(text) or "[" in text:
        return False
    names = {n.id for n in ast.walk(syntax(text)) if isinstance(n, ast.Name)}
    late = set().union(*map(_late, place.project.files.values()))
    return not (names & (bound(within) | late) or attributes(text) & late)


def loads(text: str) -> Counter[str]:
    """Count how often code reads each name."""
    return Counter(
        node.id
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    )


def taken(place: Place, target: cst.BaseExpression | cst.BaseAssignTargetExpression) -> set[str]:
    """Return the names in the target of a loop."""
    return {n.id for n in ast.walk(syntax(place.source(target))) if isinstance(n, ast.Name)}


def bound_before(place: Place) -> set[str]:
    """Return the names that the scope of a statement binds above it, parameters among them."""
    scope = place.scope
    tree = ast.parse(place.source(scope))
    wanted = ast.dump(ast.parse(place.bare()).body[0])
    kind = type(ast.parse(place.bare()).body[0])
    line = next(n.lineno for n in ast.walk(tree) if type(n) is kind and ast.dump(n) == wanted)  # type: ignore[attr-defined]
    own = tree.body[0] if isinstance(scope, cst.FunctionDef) else tree
    found = {n.arg for n in ast.walk(getattr(own, "args", tree)) if isinstance(n, ast.arg)}
    waiting = list(ast.iter_child_nodes(own))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda):
            continue
        waiting += ast.iter_child_nodes(node)
        if getattr(node, "lineno", line) >= line:
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
    return found


def read_outside(place: Place, name: str) -> bool:
    """Tell whether the scope of a statement reads a name elsewhere than in that statement."""
    everywhere = loads(place.source(place.scope))
    return everywhere[name] != loads(place.source(place.statement))[name]


_OPPOSITE: dict[type[cst.BaseCompOp], type[cst.BaseCompOp]] = {
    cst.Equal: cst.NotEqual,
    cst.NotEqual: cst.Equal,
    cst.Is: cst.IsNot,
    cst.IsNot: cst.Is,
    cst.In: cst.NotIn,
    cst.NotIn: cst.In,
}


def negated(place: Place, test: cst.BaseExpression) -> str:
    """Return the text of a test that holds where this one does not."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        inner = test.expression
        return place.source(inner if test.lpar else inner.with_changes(lpar=(), rpar=()))
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1 and not test.lpar:
        target = test.comparisons[0]
        opposite = _OPPOSITE.get(type(target.operator))
        if opposite:
            flipped = target.with_changes(operator=opposite())
            return place.source(test.with_changes(comparisons=[flipped]))
    text = place.source(test)
    atom = test.lpar or isinstance(test, cst.Name | cst.Attribute | cst.Call | cst.Subscript)
    return f"not {text}" if atom else f"not ({text})"


def own_jumps(suite: Sequence[cst.CSTNode], place: Place) -> set[str]:
    """Return "continue" and "break" where statements leave or renew the loop that they stand in."""
    found: set[str] = set()

    def walk(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Break | ast.Continue):
                found.add(type(child).__name__.lower())
            if isinstance(child, ast.For | ast.While):
                for statement in child.orelse:
                    walk(ast.Module([statement], []))
            elif not isinstance(child, ast.FunctionDef | ast.ClassDef | ast.Lambda):
                walk(child)

    walk(ast.parse(place.source(suite)))
    return found
