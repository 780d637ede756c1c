"""One more decorator or parameter of a function, other names of the parameters it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import libcst as cst

from amp_migrate.plan.model import AddDecorator, AddParameter, RenameParameter
from amp_migrate.rewrite.blocks.snippet import parse_expression
from amp_migrate.rewrite.parts import commas
from amp_migrate.rewrite.parts.docstring import add_to_docstring, rename_in_docstring
from amp_migrate.rewrite.parts.names import new_names

_EQUAL = cst.AssignEqual(commas.NOTHING, commas.NOTHING)


def add_decorator(function: cst.FunctionDef, edit: AddDecorator) -> cst.FunctionDef:
    """Return a function with one more decorator, right above its ``def``."""
    new = cst.Decorator(parse_expression(edit, edit.text))
    return function.with_changes(decorators=[*function.decorators, new])


def add_parameter(function: cst.FunctionDef, edit: AddParameter) -> cst.FunctionDef:
    """Return a function with one more positional-or-keyword parameter, the last of its kind.

    Where every parameter is keyword-only, so is the new one, and where ``*args`` takes what is given beyond the others.
    """
    params = function.params
    positional = [*params.posonly_params, *params.params]
    default = edit.default
    behind_default = bool(positional) and positional[-1].default is not None
    apart = edit.given and behind_default and default is None
    if default is None and behind_default and not apart:
        default = "None"
    new = cst.Param(
        name=cst.Name(edit.name),
        default=None if default is None else parse_expression(edit, default),
        equal=cst.MaybeSentinel.DEFAULT if default is None else _EQUAL,
    )
    placed = _placed(params, new, function.whitespace_before_params, apart)
    changed = function.with_changes(params=placed)
    doc = edit.doc
    if doc is None:
        return changed
    body = _documented(changed.body, lambda text: add_to_docstring(text, edit.name, doc))
    return changed.with_changes(body=body)


def rename_parameters(
    function: cst.FunctionDef, edits: Sequence[RenameParameter]
) -> cst.FunctionDef:
    """Return a function whose parameters have other names, in its docstring as well."""
    listed = [param.name.value for param in _named(function.params)]
    names = new_names(listed, edits)
    body = _documented(function.body, lambda text: rename_in_docstring(text, names))
    return function.with_changes(params=_renamed(function.params, names), body=body)


def _renamed(params: cst.Parameters, names: Mapping[str, str]) -> cst.Parameters:
    def renamed(param: cst.Param) -> cst.Param:
        return param.with_changes(name=cst.Name(names.get(param.name.value, param.name.value)))

    star, star_kwarg = params.star_arg, params.star_kwarg
    return params.with_changes(
        posonly_params=[renamed(param) for param in params.posonly_params],
        params=[renamed(param) for param in params.params],
        star_arg=renamed(star) if isinstance(star, cst.Param) else star,
        kwonly_params=[renamed(param) for param in params.kwonly_params],
        star_kwarg=None if star_kwarg is None else renamed(star_kwarg),
    )


def _placed(
    params: cst.Parameters, new: cst.Param, opening: commas.Space, apart: bool
) -> cst.Parameters:
    between = commas.separator(_spaces(params), opening)
    if _takes_keywords_alone(params) or isinstance(params.star_arg, cst.Param):
        return _among_keywords(params, new, between)
    if apart:
        return _behind_star(params, new, between)
    follows = params.star_kwarg or params.kwonly_params or _has_star(params)
    if params.posonly_params and not params.params:
        return _after_slash(params, new, between)
    if follows:
        items = commas.insert(params.params, len(params.params), new, between)
        return params.with_changes(params=items)
    return params.with_changes(params=_with_last(params.params, new, between))


def _with_last(
    params: Sequence[cst.Param], new: cst.Param, between: commas.Space
) -> Sequence[cst.Param]:
    if not params:
        return [new]
    last = params[-1]
    trimmed = [*params[:-1], last.with_changes(whitespace_after_param=commas.NOTHING)]
    items, end = commas.append(trimmed, new, between, last.whitespace_after_param)
    return [*items[:-1], items[-1].with_changes(whitespace_after_param=end)]


def _takes_keywords_alone(params: cst.Parameters) -> bool:
    """Tell whether a bare ``*`` comes first, but for `self` or `cls`."""
    named = {param.name.value for param in (*params.posonly_params, *params.params)}
    return isinstance(params.star_arg, cst.ParamStar) and named <= {"self", "cls"}


def _among_keywords(
    params: cst.Parameters, new: cst.Param, between: commas.Space
) -> cst.Parameters:
    present = params.kwonly_params
    if params.star_kwarg is not None:
        return params.with_changes(kwonly_params=commas.insert(present, len(present), new, between))
    return params.with_changes(kwonly_params=_with_last(present, new, between))


def _behind_star(params: cst.Parameters, new: cst.Param, between: commas.Space) -> cst.Parameters:
    """Return parameters with a keyword-only one, behind a star of its own where there is none."""
    if _has_star(params):
        return _among_keywords(params, new, between)
    if params.star_kwarg is not None:
        *others, last = commas.insert(params.params, len(params.params), new, between)
    else:
        *others, last = _with_last(params.params, new, between)
    star = cst.ParamStar(comma=cst.Comma(whitespace_after=between))
    return params.with_changes(params=others, star_arg=star, kwonly_params=[last])


def _has_star(params: cst.Parameters) -> bool:
    return isinstance(params.star_arg, (cst.Param, cst.ParamStar))


def _spaces(params: cst.Parameters) -> list[commas.Space]:
    """Return the spaces between the parameters."""
    found = [
        p for p in _listed(params) if isinstance(p, (cst.Param, cst.ParamSlash, cst.ParamStar))
    ]
    return [commas.after_comma(p.comma) for p in found[:-1]]


def _named(params: cst.Parameters) -> list[cst.Param]:
    """Return the parameters, without the marks ``/`` and ``*``."""
    return [param for param in _listed(params) if isinstance(param, cst.Param)]


def _listed(params: cst.Parameters) -> list[object]:
    """Return what stands between the parentheses, in order; an absent part as no node."""
    listed: list[object] = [*params.posonly_params, params.posonly_ind, *params.params]
    return [*listed, params.star_arg, *params.kwonly_params, params.star_kwarg]


def _after_slash(params: cst.Parameters, new: cst.Param, between: commas.Space) -> cst.Parameters:
    slash = params.posonly_ind
    assert isinstance(slash, cst.ParamSlash)
    return params.with_changes(
        posonly_ind=slash.with_changes(comma=cst.Comma(whitespace_after=between)),
        params=[new.with_changes(comma=slash.comma)],
    )


def _documented(body: cst.BaseSuite, change: Callable[[str], str]) -> cst.BaseSuite:
    if not isinstance(body, cst.IndentedBlock) or not body.body:
        return body
    first = body.body[0]
    if not isinstance(first, cst.SimpleStatementLine):
        return body
    match first.body[0]:
        case cst.Expr(value=cst.SimpleString() as string) as statement:
            value = string.with_changes(value=change(string.value))
            line = first.with_changes(body=[statement.with_changes(value=value), *first.body[1:]])
            return body.with_changes(body=[line, *body.body[1:]])
        case _:
            return body
