"""Takes a run of statements out of its function, into a function of its own."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import libcst as cst

from generated.refactor.code.blocks import Block, parsed, put
from generated.refactor.code.names import bound, code, fresh, read
from generated.refactor.code.scopes import Place, places, shared
from generated.refactor.code.writing import above, blank_lines, function, gap
from generated.refactor.functions.results import Results, drawn_results
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring


def _apply(project: Project, rng: Random) -> Project | None:
    """Draw a run whose inputs and outputs are known names; a method's run must not need its object."""
    for place in places(project, rng, _outside_of_classes):
        changed = extracted(project, place, rng)
        if changed is not None:
            return changed
    return None


def _outside_of_classes(block: Block) -> bool:
    return block.function is not None or not any(
        isinstance(node, cst.ClassDef) for node in block.inside
    )


def extracted(project: Project, place: Place, rng: Random) -> Project | None:
    """Return the project with a run of statements in a function above the code that it stood in."""
    passed = shared(project, place)
    if passed is None or {"self", "cls"} & set(passed.inputs) or is_trivial(place):
        return None
    name = fresh(project, rng)
    results = drawn_results(project, place.module, passed.outputs, rng)
    helper = function(
        place.module, name, passed.inputs, with_result(place.module, place.run, results, rng)
    )
    call = results.statement(f"{name}({', '.join(passed.inputs)})")
    changed = replaced(place, call)
    changed = above(changed, place.outermost, [*results.classes, helper])
    finished = results.imported(changed, place.module)
    return None if finished is None else project.changed(place.path, finished)


def with_result(
    module: cst.Module, run: Sequence[cst.BaseStatement], results: Results, rng: Random
) -> list[cst.BaseStatement]:
    """Return the statements of a helper: the run, and the return of its results, often without a name for them."""
    last = run[-1]
    if isinstance(last, cst.SimpleStatementLine) and len(last.body) == 1 and rng.random() < 0.7:
        small = last.body[0]
        if isinstance(small, cst.Assign) and len(small.targets) == 1:
            text = code(small.targets[0].target).strip("()\n")
            if results.returned == f"return {text}\n":
                return [*run[:-1], last.with_changes(body=[cst.Return(small.value)])]
    return [*run, *parsed(results.returned, module)]


def replaced(place: Place, text: str) -> cst.Module:
    """Return the module of a place with other statements, below as many blank lines."""
    new = parsed(text, place.module)
    new[0] = gap(new[0], blank_lines(place.run[0]))
    return put(place.module, place.block, place.start, place.stop, new)


def is_trivial(place: Place) -> bool:
    """Tell whether a run is not worth a function: `pass`, a docstring, or the guard of a script."""
    first = place.run[0]
    if "__name__" in read(place.run):
        return True
    if not isinstance(first, cst.SimpleStatementLine) or len(place.run) > 1:
        return False
    small = first.body[0]
    if isinstance(small, cst.Expr):
        return isinstance(small.value, cst.SimpleString | cst.ConcatenatedString)
    return isinstance(small, cst.Pass) or (not bound(first) and isinstance(small, cst.Assert))


REFACTORINGS = (Refactoring("a run of statements becomes a function", "functions", _apply),)
