"""What functions get by ``*args`` and ``**kwargs``, and hand on."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from amp_migrate.modules.binding import bind, bind_stars, forwards_keywords, forwards_positions
from amp_migrate.modules.model import CallSite, Function, Module
from amp_migrate.values.unpacking import lasts, unpacked

_LOOKING = frozenset({"copy", "get", "items", "keys", "values"})
Sites = Mapping[Function, list[CallSite]]
Beyond = tuple[list[ast.expr], dict[str, ast.expr], bool]
"""What a call gives beyond the parameters, by place and by name, and whether it hands on more itself."""


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
    given = _spelt(site, target)
    for extra, named, _ in _handed(sites, site):
        for name, argument in _taken(site, target, extra, named):
            given.setdefault(name, argument)
    return given


def received(sites: Sites, site: CallSite, target: Function, name: str) -> list[ast.expr | None]:
    """Return all that a call may give a parameter, by whatever call of its function; None where one leaves it out.

    Where the function changes its ``**kwargs``, that is what it may give.
    """
    own = _spelt(site, target).get(name)
    if own is None and forwards_keywords(site) and changes_keywords(site.function):
        own = next((v for v in bind_stars(site) if isinstance(v, ast.Name)), None)
    if own is not None:
        return [own]
    found: list[ast.expr | None] = []
    for extra, named, goes_on in _handed(sites, site):
        node = dict(_taken(site, target, extra, named)).get(name)
        if node is not None or not goes_on:
            found.append(node)
    return list(dict.fromkeys(found)) or [None]


def spread(site: CallSite, target: Function, name: str) -> list[ast.expr]:
    """Return what a call gives of which a parameter gets a part, or is a part: ``loss(*model(images))``, ``def loss(*outputs)``.

    What is written out, or handed on of ``*args`` and ``**kwargs``, is none of it: that is what the parameter itself gets.
    """
    if forwards_positions(site) or forwards_keywords(site) or name in _spelt(site, target):
        return []
    passed, parameters = bind(site, target), target.parameters
    found = passed.double_stars if name in (*parameters.names, parameters.kwarg) else []
    later = parameters.positional[passed.star_at + site.bound :]
    if passed.star is not None and name in (*later, parameters.vararg):
        found = [passed.star, *found]
    collected = {parameters.vararg: passed.extra, parameters.kwarg: passed.keywords.values()}
    return [*found, *collected.get(name, ())]


def _spelt(site: CallSite, target: Function) -> dict[str, ast.expr]:
    """Return what a call gives itself, and unpacks of what is written out."""
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
    return given


def _handed(sites: Sites, site: CallSite) -> Iterator[Beyond]:
    """Yield what the calls of a function give it that a call in it hands on."""
    if forwards_positions(site) or forwards_keywords(site):
        yield from _beyond(sites, site.function, set())


def changes_keywords(function: Function) -> bool:
    """Tell whether a function does something else with its ``**kwargs`` than to hand it on, or to look at it."""
    kwarg, tree = function.parameters.kwarg, function.module.tree
    for node in function.all_nodes:
        if isinstance(node, ast.Name) and node.id == kwarg:
            up = tree.parent(node)
            item = isinstance(up, ast.Subscript) and isinstance(up.ctx, ast.Load)
            method = isinstance(up, ast.Attribute) and up.attr in _LOOKING
            unpacked_there = isinstance(up, ast.keyword) and up.arg is None
            looks = isinstance(up, ast.Compare | ast.FormattedValue)
            if not (item or method or unpacked_there or looks):
                return True
    return False


def _taken(
    site: CallSite, target: Function, extra: list[ast.expr], named: Mapping[str, ast.expr]
) -> Iterator[tuple[str, ast.expr]]:
    """Yield the parameters that a call gives by handing on what its function has got."""
    if forwards_positions(site):
        begin = bind(site, target).star_at + site.bound
        yield from zip(target.parameters.positional[begin:], extra, strict=False)
    if forwards_keywords(site):
        for name, argument in named.items():
            if name in target.parameters.names:
                yield name, argument


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
        positions, keywords = forwards_positions(site), forwards_keywords(site)
        yield passed.extra, passed.keywords, positions or keywords
        taken = len(function.parameters.positional) - site.bound - passed.star_at
        for extra, named, more in (
            _beyond(sites, site.function, seen) if positions or keywords else ()
        ):
            own = function.parameters.names
            rest = {name: v for name, v in named.items() if keywords and name not in own}
            yield (extra[taken:] if positions and taken >= 0 else []), rest, more
