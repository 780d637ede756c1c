"""Takes a run of statements out of a method, into a method of its own."""

from __future__ import annotations

from random import Random

import libcst as cst

from generated.refactor.code.blocks import Block, parsed, put
from generated.refactor.code.names import declared, fresh
from generated.refactor.code.scopes import Place, places, shared
from generated.refactor.code.writing import above, blank_lines, function, gap
from generated.refactor.functions.extract import is_trivial, with_result
from generated.refactor.functions.results import drawn_results, plain
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring


def _apply(project: Project, rng: Random) -> Project | None:
    """Draw a run in a method that has its object under a name that it never changes."""
    for place in places(project, rng, lambda block: bool(_object(block))):
        changed = _moved(project, place, rng)
        if changed is not None:
            return changed
    return None


def _object(block: Block) -> str:
    """Return the name of the object in a plain method, else nothing."""
    method = block.function
    if block.klass is None or method is None or method.decorators or method.asynchronous:
        return ""
    names = [*method.params.posonly_params, *method.params.params]
    if not names or names[0].name.value != "self" or declared(method.body.body):
        return ""
    return "self"


def _moved(project: Project, place: Place, rng: Random) -> Project | None:
    """Return the project with the run in a method next to its own; one in four needs no object and is static."""
    klass, method, module = place.block.klass, place.block.function, place.module
    assert klass is not None and method is not None
    passed = shared(project, place)
    if passed is None or is_trivial(place) or "self" in passed.outputs:
        return None
    name = fresh(project, rng)
    inputs = [k for k in passed.inputs if k != "self"]
    static = "self" not in passed.inputs and rng.random() < 0.5
    results = drawn_results(project, module, passed.outputs, rng)
    if place.outermost == 0 or results.imported(module, module) is None:
        results = plain(passed.outputs)
    body = with_result(module, place.run, results, rng)
    given = inputs if static else ["self", *inputs]
    helper = function(module, name, given, body, 1, "staticmethod" if static else "")
    new = parsed(results.statement(f"self.{name}({', '.join(inputs)})"), module)
    new[0] = gap(new[0], blank_lines(place.run[0]))
    outside = cst.Module([klass])
    inner = Block(place.block.home, (klass, *place.block.inside))
    (changed,) = put(outside, inner, place.start, place.stop, new).body
    assert isinstance(changed, cst.ClassDef)
    own = next(k for k, node in enumerate(klass.body.body) if node is method)
    after = rng.random() < 0.5
    members = [*changed.body.body]
    members[own + after : own + after] = [gap(helper, 1 if own + after else 0)]
    if own + after + 1 < len(members):
        following = members[own + after + 1]
        members[own + after + 1] = gap(following, max(1, blank_lines(following)))
    whole = changed.with_deep_changes(changed.body, body=members)
    if klass in module.body:
        top = [whole if node is klass else node for node in module.body]
        result: cst.CSTNode = module.with_changes(body=top)
    else:
        result = module.deep_replace(klass, whole)
    assert isinstance(result, cst.Module)
    if results.classes:
        result = above(result, place.outermost, results.classes)
    finished = results.imported(result, module)
    return None if finished is None else project.changed(place.path, finished)


REFACTORINGS = (Refactoring("a run of statements becomes a method", "functions", _apply),)
