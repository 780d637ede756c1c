"""Registered functions and decorators of Apex.

## What it does
Deletes `amp.register_half_function(torch, "einsum")` and others that native autocast casts by itself. Puts a small
decorator of the same meaning in place of `amp.float_function` and `amp.half_function`, and patches the
function that is registered with it where autocast has other lists; on both methods of an ``autograd.Function`` it brings
`custom_fwd` and `custom_bwd` along, as Apex cast in its backward too. The decorator is written into the file; the other
files of a folder import it from the first one where that is how they import. A library that registers functions only where Apex
is installed keeps the code that runs without. What is added to Apex's own lists is registered by that, and goes from the other list
by it (`amp.lists.functional_overrides.FP16_FUNCS.append("softmax")`).

## Why
Autocast has its own lists; `einsum` reaches `bmm`, which runs in fp16. It cannot be told to cast the arguments of
another function: `custom_fwd` is for `torch.autograd.Function` alone.

## Example
    amp.register_half_function(torch, "einsum")
    amp.register_float_function(torch, "batch_norm")

    @amp.float_function
    def upsample(x, size):
        return F.interpolate(x, size)

## Use instead
    torch.batch_norm = float_kernel(torch.batch_norm)

    @float_function
    def upsample(x, size):
        return F.interpolate(x, size)

## Safety
Faithful. Where autocast is off, the function gets its arguments as they are, and under autocast its floating tensors are
cast, in lists and tuples as well. A Python function runs on under autocast, as Apex went on casting in it; a kernel runs
without, as Apex did not reach into it. float64 stays, as everywhere under autocast. A function that is only taken from the list
of what runs in fp32 is one that autocast runs in fp32 all the same, which is reported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from amp_migrate.apex.listed import Listed, listed
from amp_migrate.apex.sites import Kind, Site
from amp_migrate.availability.installed import imports_apex
from amp_migrate.facts.paths import variables
from amp_migrate.plan.model import (
    AddImport,
    Decision,
    Drop,
    Edit,
    Replace,
    ReplaceExpression,
    Status,
)
from amp_migrate.project import Function, Module
from amp_migrate.project.rounds import may_follow
from amp_migrate.rules.base import FileContext, Rule, Safety, decision
from amp_migrate.rules.casts.cast_helper import (
    Helper,
    Inside,
    inside,
    is_of_autograd,
)
from amp_migrate.rules.casts.registered import RUN_WIDE, Registered, is_native, registered_by
from amp_migrate.rules.definitions import above, is_free
from amp_migrate.rules.rest.found.uses import is_skipped

RULE = Rule("AMP113", "functions registered with Apex", Safety.FAITHFUL)

_BY_HAND = "cast its arguments by .{}() where it is called, then delete this line"
_WIDEST = (
    "cast its floating arguments to the widest type among them by hand, and delete the decorator"
)
_WIDER = (
    "{} ran in the type of what it is given by this line, and runs in fp32 now: the last bits of the losses change, and what it gives takes "
    "more memory"
)
_PERHAPS = "{} ran in the type of what it is given by this line, and runs in fp32 now where that is on autocast's list"
_CUSTOM = (
    "write @torch.cuda.amp.custom_fwd(cast_inputs=torch.float{}) on forward() and @torch.cuda.amp.custom_bwd on "
    "backward() in place of the decorators"
)


@dataclass(frozen=True, slots=True)
class _Cast:
    """What becomes of one site: its edit, and the decorator that this needs."""

    edit: Edit
    helper: Helper


def decide_file(context: FileContext) -> Iterator[Decision]:
    """Drop what native autocast does by itself; cast for the rest by a decorator in the file."""
    if context.keeps_guards:
        return
    if _is_prepared_for_others(context):
        yield from _without_apex(context)
        return
    helpers: dict[Helper, Site] = {}
    for site in context.of(Kind.REGISTER, Kind.DECORATOR, Kind.LISTED):
        item = listed(site.name, site.call) if site.kind is Kind.LISTED else None
        if item is not None and not item.added:
            yield from _removed(context, site, item)
            continue
        registered = (
            registered_by(context.project, site) if site.kind is not Kind.DECORATOR else None
        )
        if registered is not None and is_native(site, registered):
            message = f"native autocast casts {registered.name} by itself"
            yield decision(RULE, Status.MIGRATED, site.module, site.node, message, _gone(site))
            continue
        cast = _cast(context, site, registered)
        if isinstance(cast, Decision):
            yield cast
            continue
        if not is_skipped(site):
            helpers.setdefault(cast.helper.base, site)
            helpers.setdefault(cast.helper, site)
        message = f"becomes the decorator `{cast.helper.name}` of this project"
        yield decision(RULE, Status.MIGRATED, site.module, site.node, message, [cast.edit])
    yield from _written(context, helpers)


def _is_prepared_for_others(context: FileContext) -> bool:
    """Tell whether a file of a library only registers functions for whom it serves, and runs without Apex as well."""
    found = [site for site in context.sites if site.kind is not Kind.IMPORT]
    if not context.untrained or not found or any(s.kind is not Kind.REGISTER for s in found):
        return False
    tree = context.module.tree
    flags: set[str] = set()
    for site in found:
        guard = tree.enclosing(site.node, ast.Try)
        if guard is None or not imports_apex(guard.body[:1]) or len(guard.handlers) != 1:
            return False
        flags |= variables(guard.handlers[0])
    ours = flags & context.availability.flags
    return bool(ours) and not any(_mentions(other, ours) for other in context.others())


def _mentions(module: Module, names: set[str]) -> bool:
    return any(module.tree.attributes(*names)) or any(
        n.name in names for n in module.tree.nodes(ast.alias)
    )


def _without_apex(context: FileContext) -> Iterator[Decision]:
    """Keep what runs where Apex is missing: without Apex there is nobody to register functions for."""
    context.availability = context.availability.without_apex()
    for site in context.of(Kind.REGISTER):
        message = "nothing here initializes Apex, and what runs without Apex stays"
        yield decision(RULE, Status.MIGRATED, site.module, site.node, message)


def _written(context: FileContext, helpers: dict[Helper, Site]) -> Iterator[Decision]:
    """Write the decorators before the first top-level statement that needs one."""
    if not helpers:
        return
    edits: list[Edit] = [AddImport("import functools")]
    for helper in helpers:
        text = helper.text(context.spelling)
        edits.append(above(context.module, helpers.values(), text, helper.name))
    first = next(iter(helpers.values())).node
    message = f"`{'`, `'.join(helper.name for helper in helpers)}` cast arguments under autocast"
    yield decision(RULE, Status.ROUTINE, context.module, first, message, edits)


def _removed(context: FileContext, site: Site, item: Listed) -> Iterator[Decision]:
    """Drop what takes a function from one of Apex's lists, where autocast or the other list says how it runs."""
    instead = item._replace(half=not item.half, added=True)
    beside = [s for s in context.of(Kind.LISTED) if s.function is site.function]
    found = [s for s in beside if listed(s.name, s.call) == instead]
    cast = _cast(context, found[0], registered_by(context.project, found[0])) if found else None
    if isinstance(cast, _Cast):
        message = f"goes, as `{cast.helper.name}` says how {item.function} runs"
        yield decision(RULE, Status.MIGRATED, site.module, site.node, message, _gone(site))
    elif cast is None:
        message = f"native autocast goes by its own lists, whatever Apex's say of {item.function}"
        yield decision(RULE, Status.MIGRATED, site.module, site.node, message, _gone(site))
        note = (_WIDER if item.function in RUN_WIDE else _PERHAPS).format(item.function)
        yield decision(RULE, Status.NOTE, site.module, site.node, note)
    else:
        yield _left(site, "it serves the other list, which stays", _BY_HAND.format("half"))


def _gone(site: Site) -> list[Edit]:
    return [Drop(site.module.tree.span(site.statement))]


def _cast(context: FileContext, site: Site, registered: Registered | None) -> _Cast | Decision:
    """Return the cast in place of a site, or the finding that leaves it."""
    if registered is None:
        return _decorated(context, site, site.name.rpartition(".")[2])
    verb, half = registered.verb, "half" in registered.verb
    by_hand = _BY_HAND.format("half" if half else "float")
    runs, alone = registered.runs, isinstance(site.statement, ast.Expr)
    if "promote" in verb or runs is None or not alone:
        name = registered.name or "this function"
        return _left(site, f"{verb} has no native counterpart for {name}", by_hand)
    if not _before_initialize(context, site):
        message = f"it is not clear whether {verb} runs before amp.initialize, without which it has no effect"
        return _left(site, message, by_hand)
    helper = Helper(half, runs)
    if not is_free(site.module, helper.name):
        return _taken(site, helper)
    target = f"{registered.owner}.{registered.name}"
    edit = Replace(site.module.tree.span(site.statement), f"{target} = {helper.name}({target})")
    return _Cast(edit, helper)


def _decorated(context: FileContext, site: Site, verb: str) -> _Cast | Decision:
    tree = site.module.tree
    decorated: ast.AST | None = tree.parent(site.node)
    runs: Inside | None = None
    node: ast.expr | ast.stmt = site.node
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        runs = inside(context.project, site.module, node.args[0])
        node = node.func
    elif isinstance(decorated, ast.FunctionDef) and site.node in decorated.decorator_list:
        function = context.project.function_of(site.module, decorated.body[0])
        runs = _of_autograd(context, function) if is_of_autograd(function) else Inside.PYTHON
        if runs is None or (runs is not Inside.PYTHON and "promote" in verb):
            message = f"amp.{verb} stands on a method of an autograd.Function, whose casts torch has decorators for"
            advice = _WIDEST if "promote" in verb else _CUSTOM.format(16 if "half" in verb else 32)
            return _left(site, message, advice)
    if runs is None or "promote" in verb:
        message = f"amp.{verb} has no native counterpart for this function"
        method = "half" if "half" in verb else "float"
        advice = f"cast its floating tensors by .{method}() where torch.is_autocast_enabled(), and delete amp.{verb}"
        return _left(site, message, _WIDEST if "promote" in verb else advice)
    helper = Helper("half" in verb, runs)
    taken = next((h for h in (helper.base, helper) if not is_free(site.module, h.name)), None)
    if taken is not None:
        return _taken(site, taken)
    return _Cast(ReplaceExpression(tree.span(node), helper.name), helper)


def _of_autograd(context: FileContext, function: Function) -> Inside | None:
    """Tell what a method of an ``autograd.Function`` runs: `custom_bwd` reads what the `custom_fwd` beside it notes."""
    verbs = {
        name: {v for v in _verbs(context, method) if "promote" not in v}
        for name, method in (function.cls.methods if function.cls is not None else {}).items()
    }
    pair = {
        name: Helper("half" in verb, Inside(name))
        for name in ("forward", "backward")
        for verb in sorted(verbs.get(name, ()))
    }
    if len(pair) == 2 and all(
        is_free(function.module, name) for h in pair.values() for name in (h.name, h.base.name)
    ):
        return Inside(function.name) if function.name in pair else None
    return Inside.PYTHON if function.name == "forward" and len(pair) < 2 else None


def _verbs(context: FileContext, method: Function) -> set[str]:
    """Return Apex's decorators of a method."""
    held = method.node.decorator_list if method.node is not None else []
    return {s.name.rpartition(".")[2] for s in context.of(Kind.DECORATOR) if s.node in held}


def _before_initialize(context: FileContext, site: Site) -> bool:
    """Tell whether a function is registered as the file is loaded, or in the function that initializes later."""
    if site.function.node is None:
        return True
    project = context.project
    return any(
        project.apex(site.module, node.func) == "apex.amp.initialize"
        and may_follow(project, site.function, site.node, node)
        for node in site.function.calls
    )


def _taken(site: Site, helper: Helper) -> Decision:
    message = f"this file has a {helper.name} already, and the decorator that casts needs the name"
    return _left(site, message, f"rename what is called {helper.name} in this file, then run again")


def _left(site: Site, message: str, advice: str) -> Decision:
    return decision(RULE, Status.LEFT, site.module, site.node, message, advice=advice)
