"""Where `amp` is put beside what a checkpoint saves: whether all that becomes of it there is that its state is asked for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.constants import is_none
from amp_migrate.facts.imports import last_name
from amp_migrate.facts.paths import LOOKS
from amp_migrate.project import Module, Project
from amp_migrate.project.reach import where_read
from amp_migrate.training.beliefs import SAVES_STATES

_STATE = frozenset({"state_dict", "load_state_dict"})
_KEYS = frozenset({"keys", "clear", "setdefault"})
_PAIRS, _VALUES, _ITEMS = "items", "values", frozenset({"get", "pop"})
_SAME = frozenset({"copy.copy", "copy.deepcopy"})
_LOOKING = LOOKS | {"hasattr", "list", "sorted"}
_TESTS = (ast.Compare, ast.If, ast.Assert, ast.UnaryOp, ast.FormattedValue, ast.Expr)


class _Place:
    """An expression that gives `amp` itself, or, `within`, a dictionary that may hold it."""

    def __init__(self, module: Module, node: ast.expr, within: bool) -> None:
        self.module = module
        self.node = node
        self.within = within
        self.up = module.tree.parent(node)


def only_saved(project: Project, module: Module, node: ast.expr | ast.stmt) -> bool:
    """Tell whether all uses of an object are seen that goes into a dictionary or an argument: they ask for its state."""
    if not isinstance(node, ast.expr):
        return False
    queue = [_Place(module, node, within=False)]
    seen = {(node, False)}
    asked = False
    for place in queue:
        onward = _onward(project, place)
        asked = asked or _asks_for_state(project, place)
        if onward is None:
            return False
        for found in onward:
            if (found.node, found.within) not in seen:
                seen.add((found.node, found.within))
                queue.append(found)
    return asked


def _asks_for_state(project: Project, place: _Place) -> bool:
    """Tell whether the state of an object is asked for where it stands, or a library does that."""
    up = place.module.tree.parent(place.up) if isinstance(place.up, ast.keyword) else place.up
    if isinstance(up, ast.Call):
        return bool(SAVES_STATES.search(project.external(place.module, up.func) or ""))
    return not place.within and isinstance(up, ast.Attribute) and up.attr in _STATE


def _onward(project: Project, place: _Place) -> list[_Place] | None:
    """Return where an object, or the dictionary that holds it, is seen next; None where that is not known."""
    module, node, up = place.module, place.node, place.up
    if isinstance(up, ast.Dict) and node in up.values:
        return [_Place(module, up, within=True)]
    if isinstance(up, ast.keyword):
        call = module.tree.parent(up)
        return _given(project, place, call, up.arg) if isinstance(call, ast.Call) else None
    if isinstance(up, ast.Call) and node is not up.func:
        return _given(project, place, up, "")
    if isinstance(up, ast.Attribute):
        return _asked(place, up)
    if isinstance(up, ast.Subscript) and place.within and node is up.value:
        return [_Place(module, up, within=False)] if isinstance(up.ctx, ast.Load) else []
    if isinstance(up, ast.IfExp) and node is not up.test:
        return [_Place(module, up, place.within)]
    if isinstance(up, ast.DictComp) and node is up.value:
        return [_Place(module, up, within=True)]
    if isinstance(up, ast.Return):
        return _returned(project, place)
    if isinstance(up, ast.Assign):
        found = [_stored(project, place, target) for target in up.targets]
        return None if None in found else [p for each in found for p in each or ()]
    if isinstance(up, ast.For | ast.comprehension) and place.within and node is up.iter:
        return []  # its keys
    tests = _TESTS if place.within or _is_of_none(up) else (ast.FormattedValue, ast.Expr)
    return [] if isinstance(up, tests) else None


def _is_of_none(up: ast.AST | None) -> bool:
    """Tell whether a test asks for no more than whether something is None."""
    return isinstance(up, ast.Compare) and len(up.ops) == 1 and is_none(up.comparators[0])


def _returned(project: Project, place: _Place) -> list[_Place] | None:
    """Return the calls of the function that returns something; None where it is used as a value, or none is seen."""
    function = project.function_of(place.module, place.node)
    sites = project.callers(function)
    if not sites or project.escapes(function) or len(project.family(function)) > 1:
        return None
    return [_Place(site.function.module, site.call, place.within) for site in sites]


def _given(
    project: Project, place: _Place, call: ast.Call, keyword: str | None
) -> list[_Place] | None:
    """Return where a call takes what it is given; `keyword` is None for ``**``, empty for a position."""
    module, node = place.module, place.node
    builtin, name = module.scopes.builtin(call.func), last_name(call)
    if builtin == "dict":
        return [_Place(module, call, within=True)]
    if builtin in _LOOKING:
        return []
    if project.external(module, call.func) in _SAME:
        return [_Place(module, call, place.within)]
    if isinstance(call.func, ast.Attribute) and name == "update" and place.within:
        return _loads(project, module, call.func.value, within=True)
    if SAVES_STATES.search(project.external(module, call.func) or ""):
        return []
    found: list[_Place] = []
    callees = project.callees(call)
    for function in callees:
        taker = function.parameters.kwarg if keyword is None else None
        if keyword is not None:
            given = project.given(call, function)
            named = [n for n, v in given.items() if v is node and n in function.parameters.names]
            taker = named[0] if named else function.parameters.kwarg if keyword else None
        if taker is None:
            return None
        within = place.within or taker == function.parameters.kwarg
        loads = function.module.scopes.reads(function.scope, taker)
        found += [_Place(function.module, load, within) for load in loads]
    return found if callees else None


def _asked(place: _Place, up: ast.Attribute) -> list[_Place] | None:
    """Return where goes what is asked of the object, or of the dictionary that holds it."""
    module = place.module
    if not place.within:
        return [] if up.attr in _STATE else None
    call = module.tree.call_of(up)
    if call is None:
        return None
    if up.attr in _ITEMS:
        return [_Place(module, call, within=False)]
    if up.attr in _KEYS or up.attr == "update":
        return []
    if up.attr not in (_PAIRS, _VALUES):
        return None
    loop = module.tree.parent(call)
    if not isinstance(loop, ast.For | ast.comprehension):
        return None
    target = loop.target
    if up.attr == _PAIRS:
        pair = isinstance(target, ast.Tuple) and len(target.elts) == 2
        target = target.elts[1] if pair and isinstance(target, ast.Tuple) else target
    return [*_named(module, target)] if isinstance(target, ast.Name) else None


def _named(module: Module, target: ast.Name, within: bool = False) -> Iterator[_Place]:
    """Yield the reads of a variable."""
    for node in module.scopes.reads(module.scopes.owner(target), target.id):
        yield _Place(module, node, within)


def _stored(project: Project, place: _Place, target: ast.expr) -> list[_Place] | None:
    if isinstance(target, ast.Subscript):
        return _loads(project, place.module, target.value, within=True)
    return _loads(project, place.module, target, place.within)


def _loads(project: Project, module: Module, target: ast.expr, within: bool) -> list[_Place] | None:
    """Return the reads of a variable, or of any attribute of a name."""
    if isinstance(target, ast.Name):
        return [*_named(module, target, within)]
    if not isinstance(target, ast.Attribute):
        return None
    return [_Place(where, node, within) for where, node in where_read(project, target.attr)]
