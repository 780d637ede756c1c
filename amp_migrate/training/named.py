"""An optimizer and a GradScaler, each with the names that hold it, and the calls that make what names hold."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property

from amp_migrate.facts.paths import all_given
from amp_migrate.project import Module, Project
from amp_migrate.training.gradients.handed_out import bases
from amp_migrate.training.steppers import is_optimizer_class, makes_optimizer

Groups = frozenset[int]
Call = tuple[Module, ast.Call]


@dataclass(eq=False)
class Optimizer:
    """An optimizer that a GradScaler steps or unscales.

    `groups` are the names that hold it; `networks` those of the modules whose parameters it was made with,
    None where that is not known; `within` are the modules that those are parts of, and `inside` the one name of
    each of either. `selves` are the names that the methods of those modules have for them: another object of such a
    class has the same. `text` is how the program calls it.
    """

    number: int
    groups: set[int]
    text: str
    networks: set[int] | None = None
    within: set[int] = field(default_factory=set)
    inside: set[int] = field(default_factory=set)
    selves: set[int] = field(default_factory=set)


@dataclass(eq=False)
class Scaler:
    """A GradScaler, and the numbers of its optimizers."""

    number: int
    groups: set[int]
    text: str
    optimizers: set[int] = field(default_factory=set)


class Results:
    """Finds the calls with arguments whose results some names may hold."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._by_name: dict[int, list[Call]] = {}

    def of(self, names: AbstractSet[int]) -> list[Call]:
        """Return the calls whose result some names may hold."""
        self._look_for(names - self._by_name.keys())
        return [call for name in names for call in self._by_name[name]]

    def from_outside(self, callees: Iterable[str], names: Groups) -> Iterator[Call]:
        """Yield those of them that call some functions of libraries, by their dotted names."""
        values = self._project.values
        for callee in callees:
            for call in self._by_callee.get(callee, ()):
                if names & values.groups(*call):
                    yield call

    def _look_for(self, names: AbstractSet[int]) -> None:
        if not names:
            return
        self._by_name |= {name: [] for name in names}
        values, calls = self._project.values, list(self._calls())
        for call in calls:
            values.group(*call)  # the graph stays as it is while it is asked
        near = values.onward(names, items=True)
        for call in calls:
            if near.reaches(*call):
                for name in values.groups(*call) & names:
                    self._by_name[name].append(call)

    @cached_property
    def _by_callee(self) -> dict[str, list[Call]]:
        found: dict[str, list[Call]] = {}
        for module, call in self._calls():
            name = self._project.external(module, call.func)
            if name is not None:
                found.setdefault(name, []).append((module, call))
        return found

    def _calls(self) -> Iterator[Call]:
        for module, call in self._project.nodes(ast.Call):
            if call.args or call.keywords:
                yield module, call


class Makers:
    """Finds the calls that make the optimizers of a project, each with its module."""

    def __init__(self, project: Project) -> None:
        self._project = project

    @cached_property
    def own(self) -> dict[ast.Call, Module]:
        """The calls that make an optimizer of torch."""
        found = {}
        for module, call in self._project.nodes(ast.Call):
            name = self._project.external(module, call.func) or ""
            if makes_optimizer(name):
                found[call] = module
        return found

    @property
    def calls(self) -> dict[ast.Call, Module]:
        """The same; where a function returns what it makes, the calls of that function."""
        return self._found[0]

    @property
    def groups(self) -> dict[ast.Call, Groups]:
        """The names of what each of those calls makes: of a pair that a function returns, those of the items."""
        return self._found[1]

    def networks(self, module: Module, call: ast.Call) -> Iterator[tuple[Groups, Groups]]:
        """Yield the networks of whose parameters the function that a call runs makes an optimizer, and their own names.

        Those that it is given, those that it makes for each call and returns beside the optimizer, and those that it has.
        """
        values = self._project.values
        run = self._project.callees(call) if call in self.calls else ()
        for making, where in self.own.items() if run else ():
            maker = self._project.function_of(where, making)
            given = self._project.given(call, maker) if maker in run else {}
            for argument in all_given(making) if maker in run else ():
                for base in bases(where, argument, set()):
                    handed = given.get(base.id) if isinstance(base, ast.Name) else None
                    if handed is not None:
                        yield values.with_receivers(module, handed)
                    elif isinstance(base, ast.Name) and where.scopes.owner(base) is maker.scope:
                        made = values.made_at(module, call, where, base)
                        yield made, values.with_receivers(where, base)[1]
                    else:
                        yield values.with_receivers(where, base)

    def made(self, call: ast.Call) -> Groups:
        """Return the names of the optimizer that a call makes, also of a class of the project; none where it is given one."""
        if call in self.calls:
            return self.groups[call]
        if not any(map(is_optimizer_class, self._project.constructed(call))):
            return frozenset()
        module, values = self._project.module_of(call), self._project.values
        given = [cls for node in all_given(call) for cls in values.instance_classes(module, node)]
        if any(map(is_optimizer_class, given)) or any(
            values.is_optimizer(module, node) for node in all_given(call)
        ):
            return frozenset()
        return _one(values.group(module, call))

    def is_of_torch(self, call: ast.Call) -> bool:
        """Tell whether a call of those makes an optimizer of torch, and not one that is only known by its name."""
        return call in self._found[2]

    @cached_property
    def _found(self) -> tuple[dict[ast.Call, Module], dict[ast.Call, Groups], set[ast.Call]]:
        values, external = self._project.values, self._project.external
        found = dict(self.own)
        torch = {c for c, m in found.items() if (external(m, c.func) or "").startswith("torch.")}
        groups = {call: _one(values.group(module, call)) for call, module in found.items()}
        queue = list(found.items())
        for call, module in queue:
            for site in self._project.calls_of(self._project.function_of(module, call)):
                where = site.function.module
                made = values.made_at(where, site.call, module, call)
                if made:
                    found.pop(call, None)
                    if site.call not in groups:
                        found[site.call] = where
                    if site.call not in groups or (call in torch and site.call not in torch):
                        queue.append((site.call, where))
                    torch |= {site.call} if call in torch else set()
                    groups[site.call] = groups.get(site.call, frozenset()) | made
        return found, groups, torch


def _one(group: int | None) -> Groups:
    return frozenset() if group is None else frozenset({group})


def merged(held: Iterable[tuple[str, Groups]]) -> list[tuple[str, set[int]]]:
    """Put together what shares a name: pairs of a text and of names."""
    found: list[tuple[str, set[int]]] = []
    for text, groups in held:
        if not groups:
            continue
        same = [entry for entry in found if entry[1] & groups]
        texts = [entry[0] for entry in same if entry[0]] + ([text] if text else [])
        every = set(groups).union(*(entry[1] for entry in same))
        found = [entry for entry in found if entry not in same]
        found.append((texts[0] if texts else "", every))
    return found


def sets_scale(call: ast.Call) -> ast.expr | None:
    """Return the loss scale that a method of a GradScaler sets: ``update(scale)``, or ``load_state_dict({..., "scale": scale})``."""
    func = call.func
    given = [*call.args[:1], *(k.value for k in call.keywords)]
    if not isinstance(func, ast.Attribute) or not given:
        return None
    if func.attr == "update":
        return given[0]
    state = given[0] if func.attr == "load_state_dict" else None
    return scale_in(state) if isinstance(state, ast.Dict) else None


def scale_in(state: ast.Dict) -> ast.expr | None:
    """Return the loss scale that the state of a GradScaler is written with."""
    entries = zip(state.keys, state.values, strict=True)
    return next((v for k, v in entries if isinstance(k, ast.Constant) and k.value == "scale"), None)
