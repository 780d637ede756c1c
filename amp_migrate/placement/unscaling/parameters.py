"""What to clip natively where Apex clipped `amp.master_params(optimizer)`."""

from __future__ import annotations

import ast
import copy

from amp_migrate.apex.sites import Site
from amp_migrate.facts.below import behind_docstring
from amp_migrate.facts.paths import (
    all_given,
    argument,
    may_be_apart,
    path,
    same,
    stored,
    tail,
    walk,
)
from amp_migrate.facts.variables import put_in
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.unscaling.made_of import Frame, MadeOf
from amp_migrate.project import Module
from amp_migrate.project.programs import beside
from amp_migrate.project.rounds import graph_of, points_of, points_of_all
from amp_migrate.training.gradients.chosen import covers, goes_over_twice
from amp_migrate.training.origins.meant import in_turns, is_one_of_several

_LISTS = (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.GeneratorExp)


def parameters_text(unit: Unit, site: Site) -> str:
    """Return the native text for a `master_params` site: ``model.parameters()`` where that is the same list."""
    optimizer = all_given(site.call)[0]
    model = _model_of(unit, site, optimizer)
    if model is not None:
        return f"{model}.parameters()"
    return _listed(site, optimizer)


def _listed(site: Site, optimizer: ast.expr) -> str:
    text = site.module.tree.segment(optimizer)
    return f'[p for group in {text}.param_groups for p in group["params"]]'


def _model_of(unit: Unit, site: Site, optimizer: ast.expr) -> str | None:
    """Return how `site`'s function names the model whose `.parameters()` the optimizer was built from."""
    values = unit.project.values
    wanted = values.group(site.module, optimizer)
    if wanted is None:
        return None
    built = _built_from(unit, wanted)
    models = {values.group(module, node) for module, node in unit.models()}
    if built is None or built not in models:
        return None
    if len(models) > 1 and is_one_of_several(unit.project, site.module, optimizer):
        return None
    return _name_in(unit, site, built)


def _built_from(unit: Unit, optimizer: int, *, any_order: bool = False) -> int | None:
    """Return the model of which the optimizer has all parameters; None where that is not told of every call that makes it."""
    project, objects = unit.project, unit.losses.objects
    made_of = MadeOf(project, unit.losses.reached, any_order=any_order)
    found = {
        made_of.optimizer(Frame(project.function_of(module, call)), call)
        for module, call in objects.results.of({optimizer})
        if _is_constructor(call)
    }
    added = any(
        isinstance(call.func, ast.Attribute)
        and optimizer in project.values.groups(module, call.func.value)
        for module, call in objects.method_calls.get("add_param_group", ())
    )
    return found.pop() if len(found) == 1 and not added else None


def _is_constructor(call: ast.Call) -> bool:
    return tail(call) not in ("initialize", "load_state_dict")


def _name_in(unit: Unit, site: Site, group: object) -> str | None:
    """Return the shortest path by which a function names an object on every way to a site, of the object that has the optimizer."""
    values, function = unit.project.values, site.function
    optimizer = path(all_given(site.call)[0])
    found = {
        text
        for node in walk(function.scope)
        if isinstance(node, ast.Name | ast.Attribute)
        and (text := path(node)) is not None
        and not text.endswith(".module")
        and values.group(function.module, node) == group
        and _is_bound(unit, site, text.partition(".")[0])
        and not may_be_apart(text, optimizer)
    }
    return min(found, key=lambda text: (len(text), text), default=None)


def _is_bound(unit: Unit, site: Site, name: str) -> bool:
    """Tell whether a name has its value on every way to a site."""
    function = site.function
    made = function.module.scopes.bindings(function.scope, name)
    here = points_of(unit.project, function, site.node)[:1]
    if name in function.parameters.names or not made or not here:
        return True
    order = graph_of(unit.project, function).order(exceptions=False)
    bound = points_of_all(unit.project, function, made)
    return order.must_pass(graph_of(unit.project, function).entry, here[0], bound)


def _alike(one: ast.expr, other: ast.expr) -> bool:
    """Tell whether two expressions give the same, whatever their comprehensions call what they go through, in a list or one by one."""
    return same(_Numbered().visit(one), _Numbered().visit(copy.deepcopy(other)))


class _Numbered(ast.NodeTransformer):
    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        for part in node.generators:
            for name in stored(part.target):
                self._names[name] = f"{len(self._names)}"
        return self.generic_visit(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        return self.visit_ListComp(ast.ListComp(node.elt, node.generators))

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._names.get(node.id, node.id)
        return node


def replaced_parameters(unit: Unit, site: Site) -> tuple[str, ast.expr]:
    """Return the native text and what it replaces: a conditional whose other arm is the plain list goes too."""
    tree = site.module.tree
    text = parameters_text(unit, site)
    parent = tree.parent(site.node)
    if isinstance(parent, ast.IfExp) and isinstance(site.node, ast.expr):
        other = parent.orelse if parent.body is site.node else parent.body
        func = other.func if isinstance(other, ast.Call) and not all_given(other) else None
        plain = isinstance(func, ast.Attribute) and func.attr == "parameters"
        spelt = (text, _listed(site, all_given(site.call)[0]))
        if (plain and not _is_more(unit, site, other)) or any(
            _alike(ast.parse(one, mode="eval").body, _given_back(unit, other)) for one in spelt
        ):
            return tree.segment(other), parent
    return text, site.call


def _given_back(unit: Unit, node: ast.expr) -> ast.expr:
    """Return what an expression stands for: of a call of a function that does nothing but return it, what that returns."""
    callees = unit.project.callees(node) if isinstance(node, ast.Call) else []
    if not isinstance(node, ast.Call) or len(callees) != 1 or callees[0].node is None:
        return node
    function = callees[0].node
    body = behind_docstring(function) if isinstance(function, ast.FunctionDef) else []
    if len(body) != 1 or not isinstance(body[0], ast.Return) or body[0].value is None:
        return node
    if any(
        path(item) not in ("staticmethod", "classmethod") for item in callees[0].node.decorator_list
    ):
        return node
    return put_in(body[0].value, unit.project.given(node, callees[0]))


def _is_more(unit: Unit, site: Site, plain: ast.expr) -> bool:
    """Tell whether parameters are not just those of the optimizer of a site, as that is one of several of a loop, or of a network."""
    optimizer = all_given(site.call)[0]
    beside = in_turns(unit.project, site.module, optimizer)
    others = bool(beside) and not beside & unit.losses.objects.owners(site.module, plain)
    return others or shares_network(unit, site, plain)


def shares_network(unit: Unit, site: Site, plain: ast.expr) -> bool:
    """Tell whether the optimizer of a site has a part of the parameters of a network alone, and another one the rest, or none."""
    objects, optimizer = unit.losses.objects, all_given(site.call)[0]
    owners, own = objects.owners(site.module, plain), objects.optimizers_of(site.module, optimizer)
    near = beside(unit.project, site.module.path)
    training = {
        o.number
        for o in objects.optimizers
        if owners & (o.networks or set())
        and any(m.path in near for m in objects.made_in(o.number) or [site.module])
    }
    if not own:
        return False
    wanted = unit.project.values.group(site.module, optimizer)
    if training <= own and (wanted is None or not _are_chosen(unit, wanted)):
        return False
    return wanted is None or _built_from(unit, wanted, any_order=True) not in owners


def _are_chosen(unit: Unit, optimizer: int) -> bool:
    """Tell whether a test in sight chooses the parameters that an optimizer is made with: others may get gradients, too."""
    project, reached = unit.project, unit.losses.reached
    made = [
        (project.function_of(module, call), given)
        for module, call in unit.losses.objects.results.of({optimizer})
        if _is_constructor(call) and (given := argument(call, "params", 0)) is not None
    ]
    lists: list[tuple[Module, ast.ListComp | ast.GeneratorExp]] = []
    for function, node in made:
        for part in ast.walk(node):
            if isinstance(part, ast.ListComp | ast.GeneratorExp):
                lists.append((function.module, part))
            elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                values = (v for v in reached.of(function, part) if isinstance(v, _LISTS))
                made += [each for v in values if (each := (function, v)) not in made]
    return goes_over_twice(lists) or not covers(chosen for _, chosen in lists)
