"""Reaches the parameters by other ways: an object that kept them at the start, a walk over param_groups."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from generated.refactor.code.calls import attributes, body, dynamic
from generated.refactor.code.names import fresh
from generated.refactor.code.source import (
    Edit,
    Function,
    Source,
    drawn,
    first,
    imported,
    lead,
    sources,
)
from generated.refactor.code.variables import scopes
from generated.refactor.places.attributes import classlevel, constructor, plain
from generated.refactor.places.containers import outermost
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_LATER = ast.Lambda | ast.GeneratorExp | ast.ListComp | ast.comprehension


@dataclass(frozen=True)
class Found:
    """A call in a file."""

    path: str
    src: Source
    node: ast.Call


def _calls(project: Project, name: str) -> Iterator[Found]:
    for path, src in sources(project).items():
        for node in ast.walk(src.tree):
            if not isinstance(node, ast.Call):
                continue
            word = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            if re.fullmatch(name, word or getattr(node.func, "id", "")):
                yield Found(path, src, node)


def helper(
    project: Project, rng: Random, found: Found, name: str, text: str, edits: list[Edit]
) -> Project | None:
    """Return the project with a helper above its use, or in a new file beside the script."""
    src = found.src
    beside = "/" not in found.path and "/" not in project.entry and rng.random() < 0.5
    if beside:
        stem = fresh(project, rng, ("helpers", "training_utils", "grads", "optim_utils"))
        if f"{stem}.py" in project.files:
            return None
        needs = "import torch\n\n\n" if re.search(r"\btorch\.", text) else ""
        changed = src.edited([*edits, *imported(src, f"from {stem} import {name}")])
        if changed is None:
            return None
        return project.changed(found.path, changed).changed(f"{stem}.py", needs + text)
    if re.search(r"\btorch\.", text):
        edits = [*edits, *imported(src, "import torch")]
    at = src.above(outermost(src, found.node))
    changed = src.edited([Edit(at, at, f"{lead(src, at)}{text}\n\n"), *edits])
    return None if changed is None else project.changed(found.path, changed)


def _walked(project: Project, rng: Random) -> Project | None:
    """Walk the param_groups in place of `amp.master_params`, which does the same."""
    calls = [f for f in _calls(project, "master_params") if len(f.node.args) == 1]

    def one(found: Found) -> Project | None:
        src, node = found.src, found.node
        root: ast.expr = node.func
        while isinstance(root, ast.Attribute):
            root = root.value
        if root is node.func or not isinstance(root, ast.Name):
            return None
        if len(scopes(src).of[root].loads) < 2:  # its import would be left over
            return None
        given, unit = src.code(node.args[0]), src.unit
        if rng.random() < 0.25 and isinstance(node.args[0], ast.Name | ast.Attribute):
            inline = f'[p for group in {given}.param_groups for p in group["params"]]'
            text = src.edited([Edit(*src.span(node), inline)])
            return None if text is None else project.changed(found.path, text)
        name = fresh(project, rng, ("parameters_of", "all_parameters", "trained_tensors"))
        loop = f'{unit}for group in optimizer.param_groups:\n{unit * 2}for p in group["params"]:\n'
        if rng.random() < 0.5:
            text = f"def {name}(optimizer):\n{loop}{unit * 3}yield p\n"
        else:
            text = f"def {name}(optimizer):\n{unit}found = []\n{loop}{unit * 3}found.append(p)\n{unit}return found\n"
        return helper(project, rng, found, name, text, [Edit(*src.span(node.func), name)])

    return first(drawn(rng, [(1, c) for c in calls]), one)


def _networks(project: Project) -> Iterator[Found]:
    """Yield the calls that hand `network.parameters()` to a clip."""
    for found in _calls(project, "clip_grad_norm_|clip_grad_value_"):
        if not found.node.args:
            continue
        given = found.node.args[0]
        if isinstance(given, ast.Call) and not given.args and isinstance(given.func, ast.Attribute):
            if given.func.attr == "parameters" and not isinstance(
                found.src.inside(found.node, *_LATER.__args__, ast.stmt), _LATER
            ):
                yield found


def _network(found: Found) -> ast.expr:
    given = found.node.args[0]
    assert isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute)
    return given.func.value


def _keep(project: Project, rng: Random) -> Project | None:
    """Keep the list of parameters before the loop, alone or in an object that clips them."""
    if dynamic(project):
        return None

    def one(found: Found) -> Project | None:
        network = _network(found)
        if isinstance(network, ast.Name):
            return _kept_locally(project, rng, found, network)
        own = isinstance(network, ast.Attribute) and isinstance(network.value, ast.Name)
        if own and network.value.id == "self":  # type: ignore[attr-defined]
            return _kept_by_the_object(project, rng, found, network.attr)  # type: ignore[attr-defined]
        return None

    return first(drawn(rng, [(1, f) for f in _networks(project)]), one)


def _kept_locally(project: Project, rng: Random, found: Found, network: ast.Name) -> Project | None:
    src = found.src
    variable = scopes(src).of[network]
    loop = src.inside(network, ast.For, ast.While)
    while (outer := loop and src.inside(loop, ast.For, ast.While)) is not None:
        loop = outer
    if not isinstance(loop, ast.For | ast.While) or network not in variable.names:
        return None
    around = src.inside(network, *Function.__args__) or src.tree
    if around is not variable.scope.node or src.inside(
        loop, *Function.__args__, ast.Module
    ) not in (
        around,
        src.tree,
    ):
        return None
    block, k = src.siblings(loop)
    later = {id(n) for s in block[k:] for n in ast.walk(s)}
    if variable.declarations or any(id(n) in later or n in variable.inner for n in variable.stores):
        return None
    before = {id(n) for s in block[:k] if isinstance(s, ast.Assign) for n in ast.walk(s)}
    if not variable.parameter and not any(id(n) in before for n in variable.stores):
        return None
    return _object(project, rng, found, src.code(network), src.above(loop), src.indent(loop), "")


def _kept_by_the_object(project: Project, rng: Random, found: Found, name: str) -> Project | None:
    src = found.src
    klass = src.inside(found.node, ast.ClassDef)
    if (
        not isinstance(klass, ast.ClassDef)
        or not plain(project, klass)
        or classlevel(project, name)
    ):
        return None
    init = constructor(klass)
    if init is None or src.inside(found.node, *Function.__args__) is init:
        return None
    stores = [(s, n) for _, s, n in attributes(project, name) if not isinstance(n.ctx, ast.Load)]
    if not stores or any(src.inside(n, *Function.__args__) is not init for _, n in stores):
        return None
    last = body(init)[-1]
    if any(isinstance(n, ast.Return) for n in ast.walk(init)) or last.lineno == init.lineno:
        return None
    if not isinstance(stores[0][1].value, ast.Name) or not src.alone([last]):
        return None
    return _object(
        project, rng, found, f"self.{name}", src.below(last), src.indent(body(init)[0]), "self."
    )


def _object(
    project: Project, rng: Random, found: Found, network: str, at: int, indent: str, prefix: str
) -> Project | None:
    src, node, unit = found.src, found.node, found.src.unit
    if rng.random() < 0.35:
        held = fresh(project, rng, ("params", "kept", "trainable", "weights"))
        made = f"{indent}{prefix}{held} = list({network}.parameters())\n"
        edits = [Edit(at, at, made), Edit(*src.span(node.args[0]), prefix + held)]
        text = src.edited(edits)
        return None if text is None else project.changed(found.path, text)
    clip = src.code(node.func)
    if not re.match(r"(torch\.)?nn\.utils\.", clip):
        return None
    word = clip if clip.startswith("torch.") else f"torch.{clip}"
    kind = fresh(project, rng, ("GradientClipper", "Clipper", "GradientGuard"))
    held = fresh(project, rng, ("clipper", "guard", "limiter"))
    method = rng.choice(["clip", "__call__", "apply"])
    rows = [
        f"class {kind}:",
        f"{unit}def __init__(self, parameters):",
        f"{unit * 2}self.parameters = list(parameters)",
        "",
        f"{unit}def {method}(self, *args, **kwargs):"
        if len(node.args) + len(node.keywords) != 2 or node.keywords
        else f"{unit}def {method}(self, limit):",
    ]
    rest = "limit" if rows[-1].endswith("limit):") else "*args, **kwargs"
    rows.append(f"{unit * 2}return {word}(self.parameters, {rest})")
    made = f"{indent}{prefix}{held} = {kind}({network}.parameters())\n"
    call = f"{prefix}{held}" + ("" if method == "__call__" else f".{method}")
    given = src.text[src.span(node.args[0])[1] : src.span(node)[1]].lstrip(", \n")
    edits = [Edit(at, at, made), Edit(src.span(node)[0], src.span(node)[1], f"{call}({given}")]
    return helper(project, rng, found, kind, "\n".join(rows) + "\n", edits)


def _optimizers(project: Project) -> set[str]:
    """Return the expressions that a file hands to amp as optimizers."""
    found = set()
    for call in _calls(project, "scale_loss|master_params"):
        index = 1 if call.src.code(call.node.func).endswith("scale_loss") else 0
        if len(call.node.args) > index:
            found.add(call.src.code(call.node.args[index]))
    return found


def _statements(project: Project, method: str) -> list[Found]:
    known = _optimizers(project)
    return [
        f
        for f in _calls(project, method)
        if isinstance(f.node.func, ast.Attribute)
        and f.src.code(f.node.func.value) in known
        and isinstance(f.src.parents[f.node], ast.Expr)
        and not f.node.args
        and not f.node.keywords
    ]


def _stash(project: Project, rng: Random) -> Project | None:
    """Step in a helper that asks whether Apex has the optimizer, and does the same in both cases."""

    def one(found: Found) -> Project | None:
        src, node, unit = found.src, found.node, found.src.unit
        assert isinstance(node.func, ast.Attribute)
        name = fresh(project, rng, ("take_step", "apply_gradients", "step_weights"))
        test = 'hasattr(optimizer, "_amp_stash")'
        shape = rng.choice(["branches", "return", "assert" if _always(project) else "branches"])
        if shape == "branches":
            rows = [f"if {test}:", f"{unit}optimizer.step()", "else:", f"{unit}optimizer.step()"]
        elif shape == "return":
            rows = [f"if {test}:", f"{unit}return optimizer.step()", "return optimizer.step()"]
        else:
            error = f'{unit}raise RuntimeError("amp has not seen this optimizer")'
            rows = [f"if not {test}:", error, "optimizer.step()"]
        text = f"def {name}(optimizer):\n" + "".join(f"{unit}{row}\n" for row in rows)
        call = f"{name}({src.code(node.func.value)})"
        return helper(project, rng, found, name, text, [Edit(*src.span(node), call)])

    return first(drawn(rng, [(1, f) for f in _statements(project, "step")]), one)


def _always(project: Project) -> bool:
    """Tell whether the program initializes whatever its arguments are."""
    calls = list(_calls(project, "initialize"))
    if len(calls) != 1 or "O0" in project.text or "opt_level=args" in project.text:
        return False
    found = calls[0]
    kinds = (ast.If, ast.IfExp, ast.Try, ast.For, ast.While)
    if found.src.inside(found.node, *kinds) is not None:
        return False
    if any(
        k.arg not in ("opt_level", "models", "optimizers", "loss_scale")
        for k in found.node.keywords
    ):
        return False
    around = found.src.inside(found.node, *Function.__args__)
    return around is None or getattr(around, "name", "") in ("main", "train")


def _cleared(project: Project, rng: Random) -> Project | None:
    """Clear the gradients of an optimizer one by one, in a helper that walks its parameters."""
    if re.search(r"O2|O3|opt_level=(?![\"'])|master_weights|FP16_Optimizer", project.text):
        return None

    def one(found: Found) -> Project | None:
        src, node, unit = found.src, found.node, found.src.unit
        assert isinstance(node.func, ast.Attribute)
        name = fresh(project, rng, ("clear_gradients", "reset_grads", "drop_gradients"))
        loop = f'{unit}for group in optimizer.param_groups:\n{unit * 2}for p in group["params"]:\n'
        text = f"def {name}(optimizer):\n{loop}{unit * 3}p.grad = None\n"
        call = f"{name}({src.code(node.func.value)})"
        return helper(project, rng, found, name, text, [Edit(*src.span(node), call)])

    return first(drawn(rng, [(1, f) for f in _statements(project, "zero_grad")]), one)


REFACTORINGS = (
    Refactoring("a helper walks the groups of an optimizer", "places", _walked),
    Refactoring("parameters are kept from the start", "places", _keep),
    Refactoring("a step asks whether amp has the optimizer", "places", _stash),
    Refactoring("gradients are cleared by a walk over the groups", "places", _cleared),
)
