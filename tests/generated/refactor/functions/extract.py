"""Takes a run of statements out of its function, into a function of its own."""

from __future__ import annotations

from random import Random

import libcst as cst

from generated.refactor.blocks import Block, blocks, parsed, put, runs, whole
from generated.refactor.names import bound, certain, code, declared, fresh, needed, read
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring


def _apply(project: Project, rng: Random) -> Project | None:
    """Draw a run in a function whose inputs and outputs are known names."""
    places = [
        (path, block, start, stop)
        for path in project.files
        for block in blocks(project.module(path))
        if block.function is not None and block.klass is None
        for start, stop in runs(block)
    ]
    rng.shuffle(places)
    for path, block, start, stop in places[:40]:
        changed = extracted(project, path, block, start, stop, rng)
        if changed is not None:
            return changed
    return None


def extracted(
    project: Project, path: str, block: Block, start: int, stop: int, rng: Random
) -> Project | None:
    """Return the project with a run of statements in a function at the end of the module."""
    function, run = block.function, block.body[start:stop]
    if function is None or declared(function.body) or not whole(run):
        return None
    own = bound(function.body) | read(function.params) | parameters(function)
    inputs = sorted(needed(run) & own)
    outputs = sorted(bound(run) & own)
    if set(outputs) - certain(run) - set(inputs):
        return None
    name = fresh(project, rng)
    module = project.module(path)
    results = ", ".join(outputs)
    call = f"{name}({', '.join(inputs)})"
    body = code(run) + (f"return {results}\n" if outputs else "")
    lines = "".join(f"    {line}\n" if line.strip() else "\n" for line in body.splitlines())
    statement = f"{results} = {call}\n" if outputs else f"{call}\n"
    changed = put(module, block, start, stop, parsed(statement, module))
    helper = parsed(f"\n\ndef {name}({', '.join(inputs)}):\n{lines}", module)
    index = next(k for k, node in enumerate(changed.body) if _holds(node, statement.strip()))
    return project.changed(
        path,
        changed.with_changes(body=[*changed.body[:index], *helper, *changed.body[index:]]),
    )


def parameters(function: cst.FunctionDef) -> set[str]:
    """Return the names of the parameters of a function."""
    p = function.params
    found = [*p.posonly_params, *p.params, *p.kwonly_params]
    found += [star for star in (p.star_arg, p.star_kwarg) if isinstance(star, cst.Param)]
    return {param.name.value for param in found}


def _holds(node: cst.CSTNode, text: str) -> bool:
    return text in code(node)


REFACTORINGS = (Refactoring("a run of statements becomes a function", "functions", _apply),)
