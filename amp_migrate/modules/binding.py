"""Which argument of a call reaches which parameter."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from amp_migrate.modules.model import CallSite, Function


@dataclass(frozen=True, slots=True)
class Passed:
    """The arguments of one call as the called function sees them.

    `given` holds what reaches a named parameter; `extra` the positional ones beyond, `keywords` the
    named ones that only ``**kwargs`` can take. `star` is the value of ``*args`` in the call, whose items
    begin at parameter number `star_at`; `double_stars` are the values of ``**kwargs``.
    """

    given: dict[str, ast.expr] = field(default_factory=dict)
    extra: list[ast.expr] = field(default_factory=list)
    keywords: dict[str, ast.expr] = field(default_factory=dict)
    star: ast.expr | None = None
    star_at: int = 0
    double_stars: list[ast.expr] = field(default_factory=list)


def bind(site: CallSite, target: Function, taken: int | None = None) -> Passed:
    """Match the arguments of `site` to the parameters of `target`, of which the first `taken` are given."""
    passed = Passed()
    parameters = target.parameters
    free = parameters.positional[int(site.bound) if taken is None else taken :]
    for index, argument in enumerate(site.arguments()):
        if isinstance(argument, ast.Starred):
            passed = Passed(star=argument.value, star_at=index, given=passed.given)
            break
        if index < len(free):
            passed.given[free[index]] = argument
        else:
            passed.extra.append(argument)
    for keyword in site.call.keywords:
        if keyword.arg is None:
            passed.double_stars.append(keyword.value)
        elif keyword.arg in parameters.names:
            passed.given[keyword.arg] = keyword.value
        else:
            passed.keywords[keyword.arg] = keyword.value
    return passed


def fits(site: CallSite, target: Function) -> bool:
    """Tell whether the call could be of `target`: no argument too many, no required one missing."""
    parameters = target.parameters
    passed = bind(site, target)
    if passed.extra and parameters.vararg is None:
        return False
    if passed.keywords and parameters.kwarg is None:
        return False
    if passed.star is not None or passed.double_stars or site.partial:
        return True
    taken = parameters.positional[:1] if site.bound else ()
    return all(name in passed.given or name in taken for name in parameters.required())


def forwards_keywords(site: CallSite) -> bool:
    """Tell whether the call passes on its function's own ``**kwargs``."""
    kwarg = site.function.parameters.kwarg
    return kwarg is not None and any(
        isinstance(value, ast.Name) and value.id == kwarg for value in bind_stars(site)
    )


def forwards_positions(site: CallSite) -> bool:
    """Tell whether the call passes on its function's own ``*args``."""
    vararg = site.function.parameters.vararg
    return vararg is not None and any(
        isinstance(item, ast.Starred)
        and isinstance(item.value, ast.Name)
        and item.value.id == vararg
        for item in site.call.args
    )


def bind_stars(site: CallSite) -> list[ast.expr]:
    """Return the values of the ``**`` arguments of a call."""
    return [keyword.value for keyword in site.call.keywords if keyword.arg is None]
