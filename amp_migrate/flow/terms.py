"""One spelling for every expression whose value the same operands always give again."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from amp_migrate.facts.below import every
from amp_migrate.facts.mark import Mark
from amp_migrate.flow.bounds import Bound, bound


class Aspect(Mark):
    """What of an operand an expression depends on."""

    BINDING = "binding"  # which object a name holds
    CONTENT = "content"  # what is inside of the object that a name holds
    PATH = "path"  # which object an attribute or item holds, and what is inside of it


@dataclass(frozen=True)
class Operand:
    """A name, attribute or item that an expression reads; `attribute` is the last name of an attribute path."""

    text: str
    aspect: Aspect
    attribute: str | None = None


@dataclass(frozen=True)
class Term:
    """An expression by its spelling: equal ones have equal values while no operand changes."""

    text: str
    operands: frozenset[Operand]
    bound: Bound | None = None

    @property
    def asks_none(self) -> bool:
        """Whether it is a comparison with None."""
        return self.text.endswith(f" {ast.Is.__name__} {None!r})")

    def respelt(self, operands: frozenset[Operand], spell: Callable[[str], str]) -> Term:
        """Return the term by other names of what it reads, which `spell` puts into a text."""
        own = self.bound and replace(self.bound, text=spell(self.bound.text))
        return Term(spell(self.text), operands, own)

    def of_object(self) -> Term:
        """Return the term as the question which object it is, whatever is inside of it."""
        kept = frozenset(o for o in self.operands if o.aspect is not Aspect.CONTENT)
        return Term(self.text, kept, self.bound)


def term_of_name(name: str, text: str = "{}") -> Term:
    """Return the term of which object a name holds, or of what a text says of it: ``off(x)``."""
    return Term(text.format(name), frozenset({Operand(name, Aspect.BINDING)}))


_NEGATED = {ast.NotEq: ast.Eq, ast.IsNot: ast.Is, ast.NotIn: ast.In}
_ASKING = {"isinstance", "issubclass", "callable", "type"}
"""Builtins whose answer depends on which objects they get, not on what is inside of them."""


@lru_cache(maxsize=1 << 14)
def term(node: ast.expr) -> Term | None:
    """Return the term of an expression; None where it calls, awaits or binds, or its value is new each time.

    Attributes, items and operators are taken to run no code that matters. A negated comparison has no term:
    `compared` turns it into the positive one.
    """
    reads: set[Operand] = set()
    text = _spell(node, reads)
    return None if text is None else Term(text, frozenset(reads))


@lru_cache(maxsize=1 << 14)
def compared(node: ast.Compare) -> tuple[Term | None, bool]:
    """Return the term of a comparison of two, made positive, and whether it was positive."""
    parity = _parity(node)
    if parity is not None:
        even, odd = parity
        found, positive = _positive(even)
        return found, positive is not odd
    return _positive(node)


def _positive(node: ast.Compare) -> tuple[Term | None, bool]:
    op = type(node.ops[0])
    positive = _NEGATED.get(op, op)
    reads: set[Operand] = set()
    text = _pair(node.left, positive, node.comparators[0], reads)
    found = None if text is None else Term(text, frozenset(reads), _bound(node, positive))
    if found is not None and positive is ast.Is:
        found = found.of_object()
    return found, op is positive


def _parity(node: ast.Compare) -> tuple[ast.Compare, bool] | None:
    """Return the question whether a counter is even, and whether a comparison of its remainder by 2 asks if it is odd."""
    left, right, op = node.left, node.comparators[0], node.ops[0]
    if not isinstance(left, ast.BinOp) or not isinstance(left.op, ast.Mod):
        return None
    rest = _number(right)
    if not isinstance(op, ast.Eq | ast.NotEq) or _number(left.right) != 2 or rest not in (0, 1):
        return None
    counter, more = left.left, 0.0
    while isinstance(counter, ast.BinOp) and isinstance(counter.op, ast.Add | ast.Sub):
        number = _number(counter.right)
        if number is None:
            break
        counter, more = counter.left, more + number
    even = ast.BinOp(counter, ast.Mod(), left.right)
    odd = (rest - more) % 2 == 1
    return ast.Compare(even, [op], [ast.Constant(0)]), odd


def _bound(node: ast.Compare, op: type[ast.cmpop]) -> Bound | None:
    """Return what a comparison of two says of one that is compared with a number."""
    left, right = node.left, node.comparators[0]
    if op is ast.Eq:
        left, right = _counted(left, right)
    for one, other in ((left, right), (right, left)):
        number, spelled = _number(other), _spell(one, set())
        if number is not None and spelled is not None and _number(one) is None:
            return bound(spelled, op, number, mirrored=other is left)
    return None


def _number(node: ast.expr) -> float | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        assert isinstance(node.value, int | float)
        return node.value
    return None


@lru_cache(maxsize=1 << 14)
def divided(node: ast.expr) -> Term | None:
    """Return the term of the question whether a remainder is 0: it counts as false then."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mod):
        return None
    return compared(ast.Compare(node, [ast.Eq()], [ast.Constant(0)]))[0]


def _pair(left: ast.expr, op: type[ast.cmpop], right: ast.expr, reads: set[Operand]) -> str | None:
    if isinstance(left, ast.Constant) and op in (ast.Eq, ast.Is):
        left, right = right, left
    if op is ast.Eq:
        left, right = _counted(left, right)
        if isinstance(left, ast.BinOp) and isinstance(right, ast.Call):
            one, other = (
                _spell(left, reads),
                length(right.args[0], reads) if is_len(right) else None,
            )
            return None if one is None or other is None else f"({one} Eq {other})"
    if op is ast.In and isinstance(right, ast.List | ast.Set):
        # made anew each time, and looked at only for what is in it
        right = ast.Tuple(right.elts)
    one, other = _spell(left, reads), _spell(right, reads)
    return None if one is None or other is None else f"({one} {op.__name__} {other})"


def _counted(left: ast.expr, right: ast.expr) -> tuple[ast.expr, ast.expr]:
    """Return the sides of a comparison as those of one with ``i + 1``, where they compare ``i`` with one less than a number."""
    if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod):
        if _is_one_less(right, left.right):
            more = ast.BinOp(left.left, ast.Add(), ast.Constant(1))
            return ast.BinOp(more, ast.Mod(), left.right), ast.Constant(0)
    elif isinstance(right, ast.BinOp) and _is_one_less(right, right.left):
        return ast.BinOp(left, ast.Add(), ast.Constant(1)), right.left
    return left, right


def _is_one_less(node: ast.expr, than: ast.expr) -> bool:
    if isinstance(node, ast.Constant) and isinstance(than, ast.Constant):
        return type(node.value) is type(than.value) is int and node.value == than.value - 1
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub):
        return False
    one = isinstance(node.right, ast.Constant) and node.right.value == 1
    return one and ast.dump(node.left) == ast.dump(than)


def length(node: ast.expr, reads: set[Operand] | None = None) -> str | None:
    """Return the spelling of how many items an expression gives, which reads what it reads."""
    inner = _spell(node, set() if reads is None else reads)
    return None if inner is None else f"len({inner})"


def spelled(node: ast.expr) -> str | None:
    """Return the spelling of an expression, and of how many items one gives."""
    if isinstance(node, ast.Call) and is_len(node):
        return length(node.args[0])
    return _spell(node, set())


def is_len(node: ast.Call) -> bool:
    """Tell whether a call asks how many items something has."""
    named = isinstance(node.func, ast.Name) and node.func.id == "len"
    return named and len(node.args) == 1 and not node.keywords


def _spell(node: ast.expr, reads: set[Operand]) -> str | None:
    if isinstance(node, ast.Name):
        reads.add(Operand(node.id, Aspect.BINDING))
        reads.add(Operand(node.id, Aspect.CONTENT))
        return node.id
    if isinstance(node, ast.Constant):
        return repr(node.value)
    if isinstance(node, ast.Attribute):
        return _path(node.value, f".{node.attr}", node.attr, reads)
    if isinstance(node, ast.Subscript):
        inner = _spell(node.slice, reads)
        return None if inner is None else _path(node.value, f"[{inner}]", None, reads)
    if isinstance(node, ast.BinOp):
        return _together(f"({{}} {type(node.op).__name__} {{}})", (node.left, node.right), reads)
    if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
        return _together(f"({type(node.op).__name__} {{}})", (node.operand,), reads)
    if isinstance(node, ast.Tuple):
        return _together("(" + "{}, " * len(node.elts) + ")", tuple(node.elts), reads)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) not in _NEGATED:
        return _pair(node.left, type(node.ops[0]), node.comparators[0], reads)
    if isinstance(node, ast.Call):
        return _asked(node, reads)
    return None


def _path(base: ast.expr, last: str, attribute: str | None, reads: set[Operand]) -> str | None:
    if isinstance(base, ast.Name):
        # what is inside of the object is the operand made below
        reads.add(Operand(base.id, Aspect.BINDING))
    text = base.id if isinstance(base, ast.Name) else _spell(base, reads)
    if text is None:
        return None
    text += last
    reads.add(Operand(text, Aspect.PATH, attribute))
    return text


def _together(form: str, parts: tuple[ast.expr, ...], reads: set[Operand]) -> str | None:
    texts = [_spell(part, reads) for part in parts]
    return None if None in texts else form.format(*texts)


def _asked(node: ast.Call, reads: set[Operand]) -> str | None:
    """The spelling of a call of one of the few builtins that only look, or of the entry of a constant key."""
    if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
        return None
    if isinstance(node.func, ast.Attribute):
        return _entry(node, node.func, reads)
    if not (isinstance(node.func, ast.Name) and node.func.id in _ASKING):
        return None
    inner: set[Operand] = set()
    text = _together(f"{node.func.id}({'{}, ' * len(node.args)})", tuple(node.args), inner)
    reads.update(o for o in inner if o.aspect is not Aspect.CONTENT)
    reads.add(Operand(node.func.id, Aspect.BINDING))
    return text


def _entry(node: ast.Call, method: ast.Attribute, reads: set[Operand]) -> str | None:
    """The spelling of ``mapping.get("key")``, with or without a constant in place of what is not there."""
    keys = [part.value for part in node.args if isinstance(part, ast.Constant)]
    asks = method.attr == "get" and len(keys) == len(node.args) in (1, 2)
    if not asks or not isinstance(keys[0], str):
        return None
    held = _spell(method.value, reads)
    return None if held is None else f"{held}.get({', '.join(map(repr, keys))})"


def names_of(node: ast.expr) -> frozenset[str]:
    """Return the names that an expression reads."""
    return frozenset(part.id for part in every(node) if isinstance(part, ast.Name))
