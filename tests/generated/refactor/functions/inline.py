"""Puts the body of a helper in the place of its call."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

import libcst as cst

from generated.refactor.code.blocks import blocks, escapes, parsed, put
from generated.refactor.code.names import bound, code, declared, free, fresh, read, tree
from generated.refactor.code.scopes import (
    FRAME,
    Place,
    captured,
    declared_around,
    is_docstring,
    live,
    variables,
    variables_around,
)
from generated.refactor.code.writing import blank_lines, gap
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring


@dataclass(frozen=True)
class Helper:
    """A function without branches of return: its parameters with their defaults, its statements, what it returns."""

    node: cst.FunctionDef
    parameters: Mapping[str, cst.BaseExpression | None]
    body: Sequence[cst.BaseStatement]
    result: cst.BaseExpression | None


def _apply(project: Project, rng: Random) -> Project | None:
    """Draw a call of a helper of the same file, which is a statement, an assignment or a return of its own."""
    places = []
    for path in project.files:
        module = project.module(path)
        helpers = {h.node.name.value: h for h in map(_helper, module.body) if h}
        for block in blocks(module):
            if any(isinstance(n, cst.ClassDef) for n in block.inside[-1:]):
                continue
            for k, statement in enumerate(block.body):
                call = _called(statement)
                helper = helpers.get(code(call.func)) if call else None
                if call and helper and helper.node not in block.inside:
                    places.append((Place(path, module, block, k, k + 1), helper, call))
    rng.shuffle(places)
    if rng.random() < 0.8:  # a script's call of its main function comes last
        places.sort(key=lambda found: found[0].block.function is None)
    for place, helper, call in places:
        changed = _inlined(project, place, helper, call, rng)
        if changed is not None:
            return changed
    return None


def _helper(node: cst.CSTNode) -> Helper | None:
    if not isinstance(node, cst.FunctionDef) or node.decorators or node.asynchronous:
        return None
    p = node.params
    if isinstance(p.star_arg, cst.Param) or p.star_kwarg or p.posonly_params:
        return None
    if not isinstance(node.body, cst.IndentedBlock):
        return None
    given = {x.name.value: x.default for x in (*p.params, *p.kwonly_params)}
    body = [s for s in node.body.body if not is_docstring(s)]
    result = None
    last = body[-1] if body else None
    if isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], cst.Return):
        if len(last.body) > 1 or any(line.comment for line in last.leading_lines):
            return None
        result, body = last.body[-1].value, body[:-1]
    if escapes(body) or declared(body) or read(body) & FRAME or node.name.value in read(node.body):
        return None
    if any(isinstance(n, _SCOPES) for s in body for n in ast.walk(tree(s))) or not (body or result):
        return None
    return Helper(node, given, body, result)


_SCOPES = ast.FunctionDef | ast.ClassDef | ast.Lambda | ast.Import | ast.ImportFrom | ast.Delete


def _called(statement: cst.CSTNode) -> cst.Call | None:
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return None
    small = statement.body[0]
    value = getattr(small, "value", None)
    kinds = cst.Expr | cst.Assign | cst.Return
    return value if isinstance(small, kinds) and isinstance(value, cst.Call) else None


def _inlined(
    project: Project, place: Place, helper: Helper, call: cst.Call, rng: Random
) -> Project | None:
    given = _given(helper, call)
    if given is None or declared_around(place):
        return None
    names = _renamed(project, place, helper, given, rng)
    if names is None:
        return None
    statement = place.run[0]
    assert isinstance(statement, cst.SimpleStatementLine)
    lines = [
        f"{names.get(k, k)} = {code(value)}\n"
        for k, value in given.items()
        if not _is(value, names.get(k, k))
    ]
    body = [*parsed("".join(lines), place.module), *_with_names(helper.body, names)]
    body += _ending(statement, helper.result, names)
    if not body:
        return None
    body[0] = gap(body[0], blank_lines(statement))
    comments = [x for x in statement.leading_lines if x.comment]
    if comments:
        kept = list(getattr(body[0], "leading_lines", ()))
        body[0] = body[0].with_changes(leading_lines=[*kept, *comments])
    changed = put(place.module, place.block, place.start, place.stop, body)
    return project.changed(place.path, _without(project, place, changed, helper))


def _given(helper: Helper, call: cst.Call) -> dict[str, cst.BaseExpression] | None:
    """Return the argument of each parameter; arguments of calls are only taken where their order stays."""
    if any(arg.star for arg in call.args):
        return None
    names = [x.name.value for x in helper.node.params.params]
    found: dict[str, cst.BaseExpression] = {}
    for k, arg in enumerate(call.args):
        found[arg.keyword.value if arg.keyword else names[k]] = arg.value
    for name, default in helper.parameters.items():
        if name not in found and isinstance(default, cst.BaseNumber | cst.BaseString | cst.Name):
            if isinstance(default, cst.Name) and default.value not in ("None", "True", "False"):
                return None
            found[name] = default
    return found if set(found) == set(helper.parameters) else None


def _renamed(
    project: Project,
    place: Place,
    helper: Helper,
    given: Mapping[str, cst.BaseExpression],
    rng: Random,
) -> dict[str, str] | None:
    """Return new names for local names of a helper that would meet others; None where a name cannot be told."""
    own = bound(helper.body)
    result = [helper.result] if helper.result is not None else []
    around = variables_around(place)
    outside = (read(helper.body) | set().union(*map(read, result))) - own - set(helper.parameters)
    if outside & around or (own | set(helper.parameters)) & captured(_home(place)):
        return None
    used = set().union(*(free(tree(value)) for value in given.values())) if given else set[str]()
    targets = bound(place.run)
    function = place.block.function
    taken = (live(place) - targets) | used
    if function is not None:
        taken |= read(function.body.body) - variables(function)
    names: dict[str, str] = {}
    for name in (*given, *sorted(own - set(given))):
        value = given.get(name)
        if isinstance(value, cst.Name) and name not in own and value.value not in own:
            names[name] = value.value
        elif (
            isinstance(value, cst.Name)
            and value.value == name
            and name not in live(place) - targets
        ):
            names[name] = name
        elif name in taken:
            names[name] = fresh(project, rng, (f"inner_{name}", f"{name}_here"))
    return names


def _home(place: Place) -> Sequence[cst.BaseStatement]:
    function = place.block.function
    return place.module.body if function is None else function.body.body  # type: ignore[return-value]


def _is(value: cst.BaseExpression, name: str) -> bool:
    return isinstance(value, cst.Name) and value.value == name


class _Names(cst.CSTTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    def leave_Attribute(
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.Attribute:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        name = self.names.get(original_node.value)
        return updated_node.with_changes(value=name) if name else updated_node


def _with_names(
    body: Sequence[cst.BaseStatement], names: Mapping[str, str]
) -> list[cst.BaseStatement]:
    found = [statement.visit(_Names(names)) for statement in body]
    return [s for s in found if isinstance(s, cst.BaseStatement)]


def _ending(
    statement: cst.SimpleStatementLine, result: cst.BaseExpression | None, names: Mapping[str, str]
) -> list[cst.BaseStatement]:
    """Return what becomes of the statement of the call: its target gets what the helper returned."""
    small = statement.body[0]
    value: cst.BaseExpression = cst.Name("None")
    if result is not None:
        renamed = result.visit(_Names(names))
        assert isinstance(renamed, cst.BaseExpression)
        value = renamed
    if isinstance(small, cst.Expr) and (result is None or isinstance(result, cst.Name)):
        return []
    if isinstance(small, cst.Return) and result is None:
        return [statement.with_changes(body=[small.with_changes(value=None)], leading_lines=())]
    if isinstance(small, cst.Assign) and all(code(t.target) == code(value) for t in small.targets):
        return []
    return [statement.with_changes(body=[small.with_changes(value=value)], leading_lines=())]


def _without(project: Project, place: Place, changed: cst.Module, helper: Helper) -> cst.Module:
    """Return the module without the helper, if nothing else can name it."""
    name = helper.node.name.value
    others = (text for path, text in project.files.items() if path != place.path)
    word = re.compile(rf"\b{re.escape(name)}\b")
    if any(map(word.search, others)) or len(word.findall(code(changed.body))) > 1:
        return changed
    body = list(changed.body)
    at = next(k for k, s in enumerate(body) if s is helper.node)
    if at + 1 < len(body):
        body[at + 1] = gap(
            body[at + 1], max(blank_lines(body[at]), blank_lines(body[at + 1])) if at else 0
        )
    return changed.with_changes(body=[*body[:at], *body[at + 1 :]])


REFACTORINGS = (
    Refactoring("the body of a helper stands in the place of its call", "functions", _apply),
)
