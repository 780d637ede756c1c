"""Whether what took the gradients of an optimizer from Apex takes those of that optimizer still."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.check.events.labels import Does
from amp_migrate.check.events.sides import Key, Side, changed, differs
from amp_migrate.check.events.traces import Difference
from amp_migrate.check.gradients.waiting import same_optimizers
from amp_migrate.facts.paths import tail, walk
from amp_migrate.project import Function

_OTHERS = "takes other gradients than those of the optimizer that Apex was asked for:"


def clipped(old: Side, new: Side) -> Iterator[tuple[Key, Difference]]:
    """Yield the clips of the new text that leave out what `amp.master_params` gave the same clip."""
    same = same_optimizers(old, new)
    for name, introduced in changed(old, new):
        wanted: dict[str, set[int]] = {}
        for function in old.functions[name]:
            for call, label in old.of_kind(function, Does.READ):
                given = _masters(call)
                numbers = _optimizers(old, function, given) if given is not None else frozenset()
                if numbers and numbers <= same.keys():
                    wanted.setdefault(str(label), set()).update(same[n] for n in numbers)
        for function in new.functions[name] if wanted else ():
            for call, label in new.of_kind(function, Does.READ, introduced=introduced):
                expected = wanted.get(str(label))
                if expected and call.args and _leaves_out(new, function, call.args[0], expected):
                    yield differs(function, call, f"`{ast.unparse(call)}` {_OTHERS}")


def _masters(call: ast.Call) -> ast.expr | None:
    """Return the optimizer whose parameters a call is given by Apex."""
    parts = (n for n in walk(call.args[0]) if isinstance(n, ast.Call)) if call.args else ()
    return next((n.args[0] for n in parts if tail(n) == "master_params" and n.args), None)


def _optimizers(side: Side, function: Function, node: ast.expr) -> frozenset[int]:
    return side.program.training.objects.optimizers_of(function.module, node)


def _leaves_out(side: Side, function: Function, given: ast.expr, expected: set[int]) -> bool:
    """Tell whether parameters are those of other optimizers, or chosen among those of one."""
    if any(isinstance(n, ast.comprehension) and n.ifs for n in walk(given)):
        return True
    objects = side.program.training.objects
    owners = objects.owners(function.module, given)
    if any(o.within & owners for o in objects.optimizers if o.number in expected):
        return False  # the whole of a network, and the optimizer was made of parts of it
    trained = objects.training(owners)
    return trained is not None and trained.isdisjoint(expected)
