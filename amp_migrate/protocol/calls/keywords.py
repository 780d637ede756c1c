"""The constants that functions hand on in dictionaries, as by ``**kwargs``: which a path remembers, and what a call says of them."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial

from amp_migrate.facts.paths import LOOKS, all_given
from amp_migrate.facts.scopes import assigned
from amp_migrate.flow.assumption import NOTHING, Assumption, Known, Value
from amp_migrate.flow.cfg.points import Kind, Point
from amp_migrate.flow.evaluate import value_of
from amp_migrate.flow.terms import Term, term, term_of_name
from amp_migrate.modules.binding import Passed, bind, forwards_keywords, forwards_positions
from amp_migrate.project import CallSite, Function, Project
from amp_migrate.project.forwarded import changes_keywords
from amp_migrate.project.once import once
from amp_migrate.protocol.code.program import Program

_LOOKING = frozenset({"copy", "get", "items", "keys", "values"})
_COPIES = frozenset({"copy.copy", "copy.deepcopy"})
_Constants = Mapping[str, Collection[Value | None]]


def stated(program: Program, names: Collection[str]) -> set[str]:
    """Return which of some names are keywords that calls give several constants for, to be handed on."""
    given = _given(program)
    return {name for name in names if len(given.get(name, ())) > 1}


def handed(program: Program) -> frozenset[str]:
    """Return the names of what functions hand on in dictionaries."""
    return frozenset(_given(program))


def spelt(program: Program, names: Collection[str]) -> set[str]:
    """Return the last parts of how functions spell the items of dictionaries that they hand on, and of what holds these."""
    project = program.project
    held: set[str] = set()
    for function in program.relevant:
        own = function.parameters.kwarg
        held |= {own} if own is not None else set()
        for node in function.own_nodes:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
                held.update(t.id for t in node.targets if isinstance(t, ast.Name))
            elif isinstance(node, ast.Call):
                stars = [k.value for k in node.keywords if k.arg is None]
                held.update(n.id for n in stars if isinstance(n, ast.Name))
                copied = _copied(project, node)
                held |= {copied.id} if copied is not None else set()
    found = _given(program).keys() & names
    return {*held, *(f"{name!r}]" for name in found)} if found else set()


def said(
    program: Program, call: ast.Call, callee: Function, known: Assumption
) -> Iterator[tuple[Term, Value]]:
    """Yield what a function knows of the keywords that a call gives it beside its parameters, or unpacks for it, and of dictionaries."""
    site = program.project.site(call, callee)
    if site is None or site.partial:
        return
    passed = bind(site, callee)
    for name, node in passed.given.items():
        yield from _told(name, node, known)
    kwarg = callee.parameters.kwarg
    for name, value in _handed(passed, known) if kwarg or passed.double_stars else ():
        if name not in passed.given and name in callee.parameters.names:
            yield term_of_name(name), value
        elif kwarg is not None:
            yield _item(kwarg, name), value
    names = _given(program).keys()
    asked = names if kwarg is not None else callee.parameters.defaults.keys() & names
    for name in _left_out(asked, passed, known):
        default = callee.parameters.defaults.get(name)
        if name in passed.given or _may_be_placed(passed, callee, name):
            continue
        if name not in callee.parameters.names and kwarg is not None:
            yield _lack(kwarg, name), Known(True)
        elif default is not None and (told := _constant(default, NOTHING)) is not None:
            yield term_of_name(name), told


def stored(project: Project, point: Point, before: Assumption, left: Assumption) -> Assumption:
    """Return what is known behind a point with what it puts into a dictionary, or takes out of one."""
    node = point.node
    if point.kind is Kind.STORE and isinstance(node, ast.Name) and point.value is not None:
        copied = _copied(project, point.value)
        if copied is not None:
            for name, value in _held(copied.id, before):
                left = left.with_fact(_item(node.id, name), value)
        for item, told in _told(node.id, point.value, before):
            left = left.with_fact(item, told)
    elif point.kind is Kind.CALL and isinstance(node, ast.Call):
        for name, key in changed(project, node):
            gone = (f"{name}[" if key is None else f"{name}[{key!r}]", f"lacks({name}, ")
            left = left.only(partial(_is_kept, gone))
    return left


def _is_kept(gone: tuple[str, ...], asked: Term) -> bool:
    return not asked.text.startswith(gone)


def changed(project: Project, call: ast.Call) -> Iterator[tuple[str, str | None]]:
    """Yield the dictionaries of a function's own that a call may change, with the key where it is one alone."""
    func, module = call.func, project.module_of(call)
    if isinstance(func, ast.Attribute) and isinstance(holder := func.value, ast.Name):
        if func.attr == "pop" and call.args and isinstance(call.args[0], ast.Constant):
            yield holder.id, str(call.args[0].value)
        elif func.attr not in _LOOKING and _is_own(project, holder):
            yield holder.id, None
    if _copied(project, call) is None and module.scopes.builtin(func) not in LOOKS:
        for node in all_given(call):
            starred = any(k.value is node and k.arg is None for k in call.keywords)
            if isinstance(node, ast.Name) and not starred and _is_own(project, node):
                yield node.id, None


def _is_own(project: Project, name: ast.Name) -> bool:
    """Tell whether a variable holds a dictionary that its function makes, copies, or gets as ``**kwargs``."""
    module = project.module_of(name)
    values = {binding: assigned(module.tree, binding) for binding in module.scopes.bound(name)}
    kwarg = project.holder(name).parameters.kwarg
    return any(
        isinstance(value, ast.Dict)
        or (value is not None and _copied(project, value) is not None)
        or (isinstance(binding, ast.arg) and binding.arg == kwarg)
        for binding, value in values.items()
    )


def _may_be_placed(passed: Passed, callee: Function, name: str) -> bool:
    """Tell whether what a call unpacks by place may be a parameter."""
    free = callee.parameters.positional[passed.star_at :]
    return passed.star is not None and name in free


def may_be_unpacked(project: Project, call: ast.Call, callee: Function, name: str) -> bool:
    """Tell whether a call may give a parameter by unpacking what its function has got to hand on."""
    site = project.site(call, callee)
    if site is None:
        return False
    by_keyword, passed = forwards_keywords(site), bind(site, callee)
    if by_keyword and changes_keywords(site.function):
        return True
    if any(not _is_in_sight(site, node) for node in passed.double_stars):
        return True
    places = callee.parameters.positional[passed.star_at + site.bound :]
    by_place = forwards_positions(site) and name in places
    above = [site.function] if by_keyword or by_place else []
    for function in above:
        for other in project.calls_of(function):
            own = bind(other, function)
            if (by_keyword and name in own.keywords) or (by_place and own.extra):
                return True
            if forwards_keywords(other) or forwards_positions(other):
                above += {other.function}.difference(above)
    return False


def _is_in_sight(site: CallSite, node: ast.expr) -> bool:
    """Tell whether it is known of what a call unpacks by name which names it has."""
    held: ast.AST | None = node
    if isinstance(node, ast.Name):
        if node.id == site.function.parameters.kwarg:
            return True
        held = site.function.module.scopes.only_value(node)
    return isinstance(held, ast.Dict) and all(isinstance(key, ast.Constant) for key in held.keys)


def _handed(passed: Passed, known: Assumption) -> Iterator[tuple[str, Value]]:
    """Yield what a call gives by name for no parameter, and what it unpacks."""
    for node in passed.double_stars:
        if isinstance(node, ast.Name):
            yield from _held(node.id, known)
        for name, value in _items(node):
            if (found := _constant(value, known)) is not None:
                yield name, found
    for name, node in passed.keywords.items():
        if (found := _constant(node, known)) is not None:
            yield name, found


def _left_out(names: Iterable[str], passed: Passed, known: Assumption) -> Iterator[str]:
    """Yield which of some keywords a call certainly gives neither by name nor by what it unpacks."""
    for name in names:
        lacking = (
            isinstance(node, ast.Name) and known.get(_lack(node.id, name)) is not None
            for node in passed.double_stars
        )
        if name not in passed.keywords and all(lacking):
            yield name


def _told(name: str, node: ast.expr, known: Assumption) -> Iterator[tuple[Term, Value]]:
    """Yield what a dictionary that is written out holds, by a name that it gets."""
    for key, value in _items(node):
        if (found := _constant(value, known)) is not None:
            yield _item(name, key), found


def _items(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield the items of a dictionary that is written out, if it is made of nothing else."""
    if isinstance(node, ast.Dict) and None not in node.keys:
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, value


def _held(name: str, known: Assumption) -> Iterator[tuple[str, Known]]:
    """Yield what is known of the items of a dictionary."""
    begin, end = f"{name}['", "']"
    for fact in known.facts:
        text = fact.term.text
        if text.startswith(begin) and text.endswith(end) and isinstance(fact.value, Known):
            yield text[len(begin) : -len(end)], fact.value


def _copied(project: Project, node: ast.expr) -> ast.Name | None:
    """Return the variable of which a call makes a copy."""
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    module = project.module_of(node)
    given = node.args
    if not given and isinstance(node.func, ast.Attribute) and node.func.attr == "copy":
        given = [node.func.value]
    elif project.external(module, node.func) not in _COPIES:
        if module.scopes.builtin(node.func) != "dict":
            return None
    return given[0] if len(given) == 1 and isinstance(given[0], ast.Name) else None


def _constant(node: ast.expr, known: Assumption) -> Known | None:
    value = value_of(node, known)
    told = isinstance(value, Known) and isinstance(value.value, bool | str | None)
    return value if told and isinstance(value, Known) else None


@once
def _given(program: Program) -> _Constants:
    """Return the constants that calls give for keywords which functions take by ``**kwargs``, and dictionaries that are written out, by their names; None where one leaves it out."""
    calls: list[Mapping[str, ast.expr]] = []
    for function in program.relevant:
        if function.parameters.kwarg is not None:
            sites = program.project.calls_of(function)
            calls += [bind(site, function).keywords for site in sites]
        calls += [dict(_items(n)) for n in function.own_nodes if isinstance(n, ast.Dict)]
    found: dict[str, set[Value | None]] = {}
    for keywords in calls:
        for name, node in keywords.items():
            value = _constant(node, NOTHING)
            found.setdefault(name, set()).update(() if value is None else (value,))
    for name, values in found.items():
        values |= {None for keywords in calls if values and name not in keywords}
    return found


@cache
def _lack(name: str, key: str) -> Term:
    """Return the term of whether a dictionary holds nothing under a key."""
    return replace(_item(name, key), text=f"lacks({name}, {key})")


@cache
def _item(name: str, key: str) -> Term:
    """Return the term of what a dictionary holds under a key."""
    item = ast.Subscript(ast.Name(name, ast.Load()), ast.Constant(key), ast.Load())
    found = term(item)
    assert found is not None
    return found
