"""What functions get by ``*args`` and ``**kwargs``, and hand on."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from amp_migrate.modules.binding import bind, forwards_keywords, forwards_positions
from amp_migrate.modules.model import CallSite, Function, Module
from amp_migrate.values.unpacking import lasts, unpacked

Sites = Mapping[Function, list[CallSite]]
Beyond = tuple[list[ast.expr], dict[str, ast.expr]]


class Received(NamedTuple):
    """What a call gives a parameter, and the function in which that stands; None where the call leaves it out."""

    site: CallSite
    function: Function
    node: ast.expr | None


def callers(sites: Sites, family: Iterable[Function]) -> list[CallSite]:
    """Return every call of some functions, each as it reaches the first of them."""
    found: dict[ast.Call, CallSite] = {}
    for member in family:
        for site in sites.get(member, ()):
            found.setdefault(site.call, site)
    return list(found.values())


def arguments(sites: Sites, site: CallSite, target: Function) -> dict[str, ast.expr]:
    """Return the argument of each parameter that a call gives, by the parameter's name.

    `sites` are the calls of each function. What a function hands on is that of the first call which gives it.
    """
    passed = bind(site, target)
    given = dict(passed.given)
    for value in passed.double_stars:
        for name, constant in _constants(site.function.module, value):
            if name in target.parameters.names:
                given.setdefault(name, constant)
    scopes, free = site.function.module.scopes, target.parameters.positional
    items = unpacked(scopes, passed.star) if passed.star is not None else []
    at_once = not isinstance(passed.star, ast.Name)
    for name, item in zip(free[passed.star_at + site.bound :], items, strict=False):
        if at_once or lasts(scopes, item):
            given.setdefault(name, item)
    positions, keywords = forwards_positions(site), forwards_keywords(site)
    names = free[passed.star_at + site.bound :] if positions else ()
    for extra, named in _beyond(sites, site.function, set()) if positions or keywords else ():
        for name, argument in zip(names, extra, strict=False):
            given.setdefault(name, argument)
        for name, argument in named.items() if keywords else ():
            if name in target.parameters.names:
                given.setdefault(name, argument)
    return given


def _constants(module: Module, value: ast.expr) -> Iterator[tuple[str, ast.Constant]]:
    """Yield the constants of a dictionary that is written out where it is unpacked, or for a name that only is unpacked."""
    held: ast.AST | None = value
    if isinstance(value, ast.Name):
        scopes = module.scopes
        held, bindings = scopes.only_value(value), scopes.bound(value)
        uses = (n for n in scopes.spelt(scopes.owner(value), value.id) if n not in bindings)
        ups = (module.tree.parent(node) for node in uses)
        if not all(isinstance(up, ast.keyword) and up.arg is None for up in ups):
            return
    for key, item in zip(held.keys, held.values, strict=True) if isinstance(held, ast.Dict) else ():
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            if isinstance(item, ast.Constant):
                yield key.value, item


def _beyond(sites: Sites, function: Function, seen: set[Function]) -> Iterator[Beyond]:
    """Yield what each call of a function gives to its ``*args`` and ``**kwargs``, from however far; `seen` grows."""
    if function in seen:
        return
    seen.add(function)
    for site in sites.get(function, ()):
        passed = bind(site, function)
        yield passed.extra, passed.keywords
        positions, keywords = forwards_positions(site), forwards_keywords(site)
        taken = len(function.parameters.positional) - site.bound - passed.star_at
        for extra, named in _beyond(sites, site.function, seen) if positions or keywords else ():
            own = function.parameters.names
            rest = {name: v for name, v in named.items() if keywords and name not in own}
            yield (extra[taken:] if positions and taken >= 0 else []), rest
