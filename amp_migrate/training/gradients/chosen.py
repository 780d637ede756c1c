"""Parameters that tests choose for an optimizer: whether those that it is made with leave any of their network out."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from amp_migrate.facts.paths import path, walk
from amp_migrate.project import Module
from amp_migrate.training.bindings import bound_value

_Lists = Sequence[ast.ListComp | ast.GeneratorExp]
_COPIES = ("list", "tuple", "iter", "sorted")
_OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.NotIn: ast.In,
    ast.NotEq: ast.Eq,
    ast.IsNot: ast.Is,
}
_GENERATE = frozenset({"named_parameters", "parameters"})
_MANY = 12  # questions whose answers are tried out together


def leaves_out(module: Module, given: ast.expr) -> bool:
    """Tell whether what an optimizer is made with are parameters that tests choose, and some pass none of these.

    False where it is made with anything else as well, or the tests are too many to try out.
    """
    lists = list(_lists(module, given, set()))
    chosen = [one for one in lists if one is not None]
    if not chosen or len(chosen) < len(lists) or any(_targets(one) is None for one in chosen):
        return False
    return goes_over_twice((module, one) for one in chosen) or covers(chosen) is False


def covers(lists: Iterable[ast.ListComp | ast.GeneratorExp]) -> bool | None:
    """Tell whether comprehensions have each parameter that gets gradients of all that they go over, whatever their tests ask.

    None where that is not told: they give anything but the parameters, or the tests are too many to try out.
    """
    by_source: dict[str, list[ast.ListComp | ast.GeneratorExp]] = {}
    for one in lists:
        if any(loop.ifs for loop in one.generators) and _targets(one) is None:
            return None
        by_source.setdefault(ast.dump(one.generators[0].iter), []).append(one)
    found = [_cover(group) for group in by_source.values()]
    return False if False in found else None if None in found else True


def goes_over_twice(lists: Iterable[tuple[Module, ast.ListComp | ast.GeneratorExp]]) -> bool:
    """Tell whether two comprehensions go over one generator of parameters, which the first one uses up: the other finds none."""
    made = [_generator(module, chosen.generators[0].iter) for module, chosen in lists]
    found = [each for each in made if each is not None]
    return len(set(found)) < len(found)


def _generator(module: Module, node: ast.expr) -> ast.expr | None:
    """Return the call that made the generator which a variable holds: ``pairs = model.named_parameters()``."""
    bound = module.scopes.bound(node) if isinstance(node, ast.Name) else []
    value = bound_value(module, bound[0]) if len(bound) == 1 else None
    called = value.func if isinstance(value, ast.Call) else None
    return value if isinstance(called, ast.Attribute) and called.attr in _GENERATE else None


def _lists(
    module: Module, node: ast.expr, above: set[ast.expr]
) -> Iterator[ast.ListComp | ast.GeneratorExp | None]:
    """Yield the comprehensions of which parameters or groups of them consist, None for anything else."""
    if isinstance(node, ast.ListComp | ast.GeneratorExp):
        yield node
    elif isinstance(node, ast.List | ast.Tuple):
        for element in node.elts:
            yield from _lists(module, element, above)
    elif isinstance(node, ast.Starred):
        yield from _lists(module, node.value, above)
    elif isinstance(node, ast.Dict):
        found = [v for k, v in zip(node.keys, node.values, strict=True) if _is_params(k)]
        for value in found:
            yield from _lists(module, value, above)
        yield from () if found else (None,)
    elif isinstance(node, ast.Call) and path(node.func) in _COPIES and len(node.args) == 1:
        yield from _lists(module, node.args[0], above)
    elif isinstance(node, ast.Name) and node not in above and not _is_changed(module, node):
        for binding in module.scopes.bound(node):
            held = bound_value(module, binding)
            if held is None:
                yield None
            else:
                yield from _lists(module, held, above | {node})
    else:
        yield None


def _is_params(key: ast.expr | None) -> bool:
    return isinstance(key, ast.Constant) and key.value == "params"


def _is_changed(module: Module, name: ast.Name) -> bool:
    """Tell whether something may be added to the list that a variable holds, or taken from it."""
    spelt = module.scopes.spelt(module.scopes.owner(name), name.id)
    held = (module.tree.parent(node) for node in spelt)
    return any(isinstance(up, ast.Attribute | ast.Subscript | ast.AugAssign) for up in held)


def _targets(chosen: ast.ListComp | ast.GeneratorExp) -> list[str] | None:
    """Return what a comprehension calls names and parameters; None for one that gives anything but the parameters."""
    (loop, *others) = chosen.generators
    parts = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
    names = [part.id for part in parts if isinstance(part, ast.Name)]
    if others or len(names) != len(parts) or not isinstance(chosen.elt, ast.Name):
        return None
    return names if chosen.elt.id == names[-1] else None


def _cover(lists: _Lists) -> bool | None:
    """Tell whether each parameter that gets gradients is in one of some comprehensions; None where the questions are too many."""
    if any(not loop.ifs for one in lists for loop in one.generators[:1]):
        return True
    formulas = [_Formula(names, chosen) for chosen in lists if (names := _targets(chosen))]
    asked = sorted({question for formula in formulas for question in formula.asked})
    if len(asked) > _MANY:
        return None
    answers = product((False, True), repeat=len(asked))
    return all(
        any(formula.holds(dict(zip(asked, each, strict=True))) for formula in formulas)
        for each in answers
    )


class _Formula:
    """The tests of a comprehension, as a formula over the questions that they ask of a parameter."""

    def __init__(self, names: Iterable[str], chosen: ast.ListComp | ast.GeneratorExp) -> None:
        self._numbers = {name: number for number, name in enumerate(reversed([*names]))}
        self._tests = chosen.generators[0].ifs
        self.asked = {q for test in self._tests for q in self._questions(test)}

    def holds(self, answers: dict[str, bool]) -> bool:
        """Tell whether a parameter of which the questions have these answers passes."""
        return all(self._value(test, answers) for test in self._tests)

    def _questions(self, test: ast.expr) -> Iterator[str]:
        if isinstance(test, ast.BoolOp):
            for part in test.values:
                yield from self._questions(part)
        elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            yield from self._questions(test.operand)
        elif not self._asks_grad(test):
            yield self._question(test)[0]

    def _value(self, test: ast.expr, answers: dict[str, bool]) -> bool:
        if isinstance(test, ast.BoolOp):
            values = (self._value(part, answers) for part in test.values)
            return all(values) if isinstance(test.op, ast.And) else any(values)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return not self._value(test.operand, answers)
        if self._asks_grad(test):
            return True  # of those that get gradients alone is it asked
        question, negated = self._question(test)
        return answers[question] is not negated

    def _question(self, test: ast.expr) -> tuple[str, bool]:
        """Return how a question reads whatever its comprehension calls the parameters, and whether it is asked the other way."""
        negated = False
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            opposite = _OPPOSITES.get(type(test.ops[0]))
            if opposite is not None:
                test, negated = ast.Compare(test.left, [opposite()], test.comparators), True
        return ast.dump(_Numbered(self._numbers).visit(_copied(test))), negated

    def _asks_grad(self, test: ast.expr) -> bool:
        asks = isinstance(test, ast.Attribute) and test.attr == "requires_grad"
        return asks and any(path(test) == f"{name}.requires_grad" for name in self._numbers)


def _copied(node: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(node), mode="eval").body


class _Numbered(ast.NodeTransformer):
    """Calls what a comprehension goes over by its place, and what those within it go over as they come."""

    def __init__(self, numbers: dict[str, int]) -> None:
        self._names = {name: f"<{number}>" for name, number in numbers.items()}

    def visit(self, node: ast.AST) -> ast.AST:
        """Number the targets of comprehensions before what reads them."""
        if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp):
            inner = (n for g in node.generators for n in walk(g.target))
            for part in inner:
                if isinstance(part, ast.Name):
                    self._names.setdefault(part.id, f"<{len(self._names)}>")
        visited: ast.AST = super().visit(node)
        return visited

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Rename a variable."""
        node.id = self._names.get(node.id, node.id)
        return node
