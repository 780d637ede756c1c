"""Conditions as text: what is left of a test once it is known that Apex is there, and how to join tests."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from amp_migrate.facts.constants import string
from amp_migrate.facts.imports import last_name
from amp_migrate.facts.paths import bottom, path, same, variables
from amp_migrate.facts.tree import Tree

Known = Callable[[ast.expr], bool | None]


@dataclass(frozen=True, slots=True)
class Condition:
    """A test reduced to a constant (`value`) or to source text (`text`)."""

    value: bool | None
    text: str = ""

    def __bool__(self) -> bool:
        raise TypeError("a condition has no truth value; look at .value")


_OPPOSITES: dict[type[ast.cmpop], str] = {
    ast.Eq: "!=", ast.NotEq: "==", ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
TRUE = Condition(True)
FALSE = Condition(False)
UNKNOWN = Condition(None)


def reduce(test: ast.expr, known: Known, source: Callable[[ast.expr], str]) -> Condition:
    """Reduce a test, given what is `known` of its parts; `source` gives the text of the rest."""
    answer = known(test)
    if answer is not None:
        return Condition(answer)
    if isinstance(test, ast.Constant) and isinstance(test.value, bool | type(None)):
        return Condition(bool(test.value))
    if isinstance(test, ast.NamedExpr):
        return reduce(test.value, known, source)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return negate(reduce(test.operand, known, source))
    if isinstance(test, ast.BoolOp):
        parts = [(reduce(v, known, source), v) for v in test.values]
        return _join(parts, isinstance(test.op, ast.And), test, source)
    return Condition(None, source(test))


def _join(
    parts: list[tuple[Condition, ast.expr]],
    conjunction: bool,
    test: ast.expr,
    source: Callable[[ast.expr], str],
) -> Condition:
    if any(part.value is (not conjunction) for part, _ in parts):
        return Condition(not conjunction)
    kept = [(part, node) for part, node in parts if part.value is None]
    if not kept:
        return Condition(conjunction)
    texts = list(dict.fromkeys(part.text for part, _ in kept))
    if len(texts) == 1:
        return kept[0][0]
    word = " and " if conjunction else " or "
    joined = word.join(operand(text, conjunction) for text in texts)
    unchanged = same(_parse(joined), test)
    return Condition(None, source(test) if unchanged else joined)


def negate(condition: Condition) -> Condition:
    """Return the opposite of a condition."""
    if condition.value is not None:
        return Condition(not condition.value)
    parsed = _parse(condition.text)
    if isinstance(parsed, ast.UnaryOp) and isinstance(parsed.op, ast.Not):
        return Condition(None, ast.get_source_segment(condition.text, parsed.operand) or "")
    if isinstance(parsed, ast.BoolOp | ast.IfExp | ast.Lambda | ast.NamedExpr):
        return Condition(None, f"not ({condition.text})")
    if isinstance(parsed, ast.Compare) and len(parsed.ops) == 1:
        other = _OPPOSITES.get(type(parsed.ops[0]))
        if other is not None:
            left = ast.get_source_segment(condition.text, parsed.left)
            right = ast.get_source_segment(condition.text, parsed.comparators[0])
            return Condition(None, f"{left} {other} {right}")
    return Condition(None, f"not {condition.text}")


def conjunction(conditions: list[Condition]) -> Condition:
    """Return the condition that holds where all hold; what others say already stands once. Nothing is known where that is so of one."""
    texts: list[str] = []
    if any(condition.value is False for condition in conditions):
        return FALSE
    for condition in conditions:
        if condition == UNKNOWN:
            return UNKNOWN
        if condition.value is None and condition.text not in texts:
            texts.append(condition.text)
    if not texts:
        return TRUE
    told = [part for text in texts for part in conjuncts(Condition(None, text))]
    texts = [text for text in texts if not any(_tells(part, text) for part in told)]
    if len(texts) == 1:
        return Condition(None, texts[0])
    return Condition(None, " and ".join(operand(text, True) for text in texts))


def _tells(told: str, text: str) -> bool:
    """Tell whether one test, that something is a certain string, says that it is not another one, as a second test asks."""
    one, other = _parse(told), _parse(text)
    if not isinstance(one, ast.Compare) or not isinstance(other, ast.Compare):
        return False
    if [type(op) for op in (*one.ops, *other.ops)] != [ast.Eq, ast.NotEq]:
        return False
    values = string(one.comparators[0]), string(other.comparators[0])
    return None not in values and values[0] != values[1] and same(one.left, other.left)


def either(conditions: list[Condition]) -> Condition:
    """Return the condition that holds where one of some does: ``a and b`` or ``a and not b`` is ``a``.

    Nothing is known where nothing is known of one of them.
    """
    if any(c.value is True for c in conditions):
        return TRUE
    open_ones = [c for c in conditions if c.value is None]
    if not open_ones:
        return FALSE
    if not all(c.text for c in open_ones):
        return Condition(None, "")
    ways = [conjuncts(c) for c in open_ones]
    while (shorter := _shorter(ways)) is not None:
        ways = shorter
    if not all(ways):
        return TRUE
    texts = [conjunction([Condition(None, part) for part in way]).text for way in ways]
    if len(texts) == 1:
        return Condition(None, texts[0])
    return Condition(None, " or ".join(operand(text, False) for text in texts))


def conjuncts(condition: Condition) -> tuple[str, ...]:
    """Return the texts that a condition joins by ``and``, each once."""
    node = _parse(condition.text.strip())
    if not isinstance(node, ast.BoolOp) or not isinstance(node.op, ast.And):
        return (condition.text,)
    source = condition.text.strip()
    return tuple(
        dict.fromkeys(ast.get_source_segment(source, v) or ast.unparse(v) for v in node.values)
    )


def _shorter(ways: list[tuple[str, ...]]) -> list[tuple[str, ...]] | None:
    """Return some ways with two of them made one, if one holds wherever the other does, or both but for one part."""
    for i, one in enumerate(ways):
        for j, other in enumerate(ways):
            if i == j:
                continue
            rest = [way for n, way in enumerate(ways) if n not in (i, j)]
            if set(one) <= set(other):
                return [one, *rest]
            mine, theirs = set(one) - set(other), set(other) - set(one)
            if len(mine) == len(theirs) == 1 and _opposite(mine.pop(), theirs.pop()):
                return [tuple(part for part in one if part in other), *rest]
    return None


def _opposite(one: str, other: str) -> bool:
    first, second = Condition(None, one), Condition(None, other)
    return negate(first).text == other or negate(second).text == one


def operand(text: str, conjunction: bool) -> str:
    """Put parentheses around a part of an `and` or `or` where it needs them."""
    parsed = _parse(text)
    loose = isinstance(parsed, ast.IfExp | ast.Lambda | ast.NamedExpr)
    mixed = isinstance(parsed, ast.BoolOp) and isinstance(parsed.op, ast.Or) and conjunction
    return f"({text})" if loose or mixed else text


def as_bool(condition: Condition, not_bools: frozenset[str]) -> Condition:
    """Return a condition that is a bool: options that hold strings or numbers are tested for truth."""
    if condition.value is not None or not condition.text:
        return condition
    node = _parse(condition.text)
    if isinstance(node, ast.Constant):
        return TRUE if node.value else FALSE
    parts = node.values if isinstance(node, ast.BoolOp) else [node]
    holders = {path(n.value) for n in ast.walk(node) if isinstance(n, ast.Attribute)} - {None}
    not_bools = not_bools | {holder for holder in holders if holder is not None}
    texts = [
        _truth(ast.get_source_segment(condition.text, part) or "", not_bools) for part in parts
    ]
    word = " or " if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) else " and "
    return Condition(None, word.join(texts)) if len(texts) > 1 else Condition(None, texts[0])


def _truth(text: str, not_bools: frozenset[str]) -> str:
    plain = is_plain(text) or isinstance(_parse(text), ast.Call)
    loose = plain and (last_name(_parse(text)) in not_bools or text in not_bools)
    if loose or is_looked_up(_parse(text)) or entry(_parse(text)) in not_bools:
        return f"bool({text})"
    return operand(text, True)


def entry(node: ast.expr) -> str:
    """Return what stands for an entry of a dictionary among the names of options: ``['half']``; "" for anything else."""
    key = string(node.slice) if isinstance(node, ast.Subscript) else None
    return f"[{key!r}]" if key is not None else ""


def is_looked_up(node: ast.expr) -> bool:
    """Tell whether a setting is looked up that may be missing: ``config.get("amp")``, but with ``False`` for it."""
    if not isinstance(node, ast.Call) or node.keywords:
        return False
    found = isinstance(node.func, ast.Attribute) and node.func.attr == "get"
    if not found and not (isinstance(node.func, ast.Name) and node.func.id == "getattr"):
        return False
    default = node.args[1 if found else 2 :]
    known = default and isinstance(default[0], ast.Constant) and isinstance(default[0].value, bool)
    return not known


def is_plain(text: str) -> bool:
    """Tell whether a text is a name or a chain of attributes, as ``args.fp16``."""
    node = bottom(_parse(text))
    return isinstance(node, ast.Name)


def names(text: str) -> set[str]:
    """Return the root names that a condition reads."""
    return variables(ast.parse(text, mode="eval"))


def speller(tree: Tree) -> Callable[[ast.expr], str]:
    """Return what gives the text of an expression, on one line; as written; what is not of it is an item or method of what is."""

    def text(node: ast.expr) -> str:
        if isinstance(node, ast.Subscript) and node not in tree.parents:
            return f"{text(node.value)}[{_quoted(node.slice)}]"
        if node not in tree.parents and isinstance(node, ast.Call):
            assert isinstance(node.func, ast.Attribute)
            given = ", ".join(_quoted(argument) for argument in node.args)
            return f"{text(node.func.value)}.{node.func.attr}({given})"
        segment = tree.segment(node)
        return ast.unparse(node) if "\n" in segment else segment

    return text


def _quoted(node: ast.expr) -> str:
    text = ast.unparse(node)
    return f'"{text[1:-1]}"' if text.startswith("'") and '"' not in text else text


def _parse(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body
