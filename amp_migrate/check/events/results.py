"""Whether code that takes the result of `amp.initialize` whole gets the network alone where there is no optimizer."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from amp_migrate.check.apex.assumed import Initialize
from amp_migrate.check.events.sides import Key, Side, key
from amp_migrate.check.events.traces import Difference, Label, Step
from amp_migrate.facts.paths import argument
from amp_migrate.project import Function
from amp_migrate.protocol.faults import Place
from amp_migrate.training.origins.meant import never_none, taken_apart

_WHOLE = (
    "stands for what amp.initialize gave, which is the network alone where there is no optimizer:"
)


def paired(old: Side, new: Side, every: Sequence[Initialize]) -> Iterator[tuple[Key, Difference]]:
    """Yield the pairs of the new text that stand for a result which need not have been one."""
    for item in every:
        given = argument(item.call, "models", 0), argument(item.call, "optimizers", 1)
        if None in given or not _may_be_alone(old, item.function, item.call, given[1]):
            continue
        name = key(item.function)
        text = [ast.unparse(part) for part in given if part is not None]
        had = [ast.unparse(pair) for f in old.functions[name] for pair in _pairs(f, text)]
        for function in new.functions.get(name, ()):
            for pair in _pairs(function, text):
                if ast.unparse(pair) not in had and not taken_apart(new.project, function, pair):
                    place = Place(function.module.path, pair.lineno)
                    label = Label(f"`{', '.join(text)}` {_WHOLE}")
                    yield name, Difference((Step(label, None, place),))


def _may_be_alone(
    side: Side, function: Function, call: ast.Call, optimizer: ast.expr | None
) -> bool:
    if optimizer is None or isinstance(optimizer, ast.Constant):
        return False
    project = side.project
    return not (
        taken_apart(project, function, call) or never_none(project, function.module, optimizer)
    )


def _pairs(function: Function, text: list[str]) -> Iterator[ast.Tuple]:
    """Yield the tuples that begin with a network and an optimizer as they are written, where no test asks for one of them."""
    tree = function.module.tree
    for node in function.own_nodes:
        if not isinstance(node, ast.Tuple) or not isinstance(node.ctx, ast.Load):
            continue
        if [ast.unparse(part) for part in node.elts[:2]] != text:
            continue
        chosen = (up.test for up in tree.ancestors(node) if isinstance(up, ast.IfExp))
        if not any(text[1] in ast.unparse(test) for test in chosen):
            yield node
