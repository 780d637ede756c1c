"""Whether the condition of an initialize can be asked in another function, with the same answer."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.apex.sites import Site
from amp_migrate.facts.paths import arguments_of
from amp_migrate.flow.condition import Condition, as_bool, names
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.making.creation import Creation
from amp_migrate.placement.making.lasting import changed, given_once
from amp_migrate.project import Function
from amp_migrate.project.relatives import family
from amp_migrate.training.bindings import is_one_variable, named
from amp_migrate.training.flags.subcommands import may_lack


class Asked:
    """Answers for the initializes of a unit."""

    def __init__(self, unit: Unit, creations: list[Creation]) -> None:
        self._unit = unit
        self._creations = creations
        self._changes: dict[tuple[Site, str], ast.AST | None] = {}

    def told(
        self, text: str, function: Function, creations: list[Creation], training: bool
    ) -> bool:
        """Tell whether a condition of some initializes can be asked in a function, and is there what it was at these."""
        return (
            all(self._same_name(name, function, creations, training) for name in names(text))
            and not any(self._changed(creation, text) for creation in creations)
            and not may_lack(self._unit.project, function, ast.parse(text, mode="eval"))
        )

    def respelt(self, text: str, function: Function, creations: list[Creation]) -> str | None:
        """Return a condition by what an evaluation holds the same objects in: parameters of other names, attributes of its object.

        What it sees of a variable of theirs is what that was given.
        """
        found = self._respelt(text, function, creations)
        given = self._spelt_out(text, creations) if found is None else None
        if given is not None:
            known = self.told(given, function, creations, False)
            found = given if known else self._respelt(given, function, creations)
            if found is not None:
                return as_bool(Condition(None, found), self._unit.not_bools).text
        return found

    def _respelt(self, text: str, function: Function, creations: list[Creation]) -> str | None:
        if any(self._changed(creation, text) for creation in creations):
            return None
        tree, places = ast.parse(text, mode="eval"), {}
        if may_lack(self._unit.project, function, tree):
            return None
        based = {
            node.value for node in ast.walk(tree) if isinstance(node, ast.Attribute | ast.Subscript)
        }
        for node in (n for n in ast.walk(tree) if isinstance(n, ast.Name)):
            if not self._same_name(node.id, function, creations, False):
                held = self._held_by(node.id, function, creations) if node in based else None
                if held is None:
                    return None
                places[node] = held
        for node in sorted(places, key=lambda n: n.col_offset, reverse=True):
            text = text[: node.col_offset] + places[node] + text[node.end_col_offset :]
        return text

    def _spelt_out(self, text: str, creations: list[Creation]) -> str | None:
        """Return a condition by what the variables of some initializes' functions were given that it reads; None for none."""
        found = {self._of_given(text, creation.site) for creation in creations}
        return found.pop() if len(found) == 1 else None

    def _of_given(self, text: str, site: Site) -> str | None:
        tree = ast.parse(text, mode="eval")
        alone, places = tree.body, dict[ast.Name, str]()
        for name in (n for n in ast.walk(tree) if isinstance(n, ast.Name)):
            value = given_once(self._unit, site, name.id)
            if value is not None:
                own = site.module.tree.segment(value)
                plain = name is alone or isinstance(value, ast.Name | ast.Attribute | ast.Subscript)
                places[name] = own if plain else f"({own})"
        for name in sorted(places, key=lambda n: n.col_offset, reverse=True):
            text = text[: name.col_offset] + places[name] + text[name.end_col_offset :]
        return text if places else None

    def _held_by(self, name: str, function: Function, creations: list[Creation]) -> str | None:
        """Return what a function surely holds in one of what some initializes hold in a variable."""
        values = self._unit.project.values
        known = [
            values.sources(creation.site.module, ours)
            for creation in creations
            if (ours := named(creation.site.function, name)) is not None
        ]
        for text, node in _own(function):
            given = values.sources(function.module, node)
            if given and given <= frozenset().union(*known) and all(given & k for k in known):
                return text
        return None

    def set_later(self, creations: list[Creation], text: str) -> int | None:
        """Return the line that may set a part of a condition once an initialize has run; None if nothing does."""
        return next((node.lineno for node in self.settings(creations, text)), None)

    def settings(self, creations: list[Creation], text: str) -> list[ast.expr]:
        """Return what may set a part of a condition once an initialize has run."""
        found = [self._changed(c, text) for c in creations] if text else []
        return [node for node in found if isinstance(node, ast.expr)]

    def _changed(self, creation: Creation, text: str) -> ast.AST | None:
        key = creation.site, text
        if key not in self._changes:
            self._changes[key] = changed(self._unit, *key)
        return self._changes[key]

    def _same_name(
        self, name: str, function: Function, creations: list[Creation], training: bool
    ) -> bool:
        """Tell whether `name` is the same variable in `function` as where Apex was initialized."""
        for creation in creations:
            origin = creation.site.function
            if is_one_variable(self._unit.project, name, origin, function):
                continue
            if name == function.receiver == origin.receiver and origin.cls is not None:
                if function.cls in family(origin.cls):
                    continue
            if not self._same_value(name, creation, function, training):
                return False
        return True

    def _same_value(
        self, name: str, creation: Creation, function: Function, training: bool
    ) -> bool:
        module = creation.site.module
        ours = named(creation.site.function, name)
        theirs = named(function, name)
        if ours is None or theirs is None:
            return False
        values = self._unit.project.values
        group, own = values.group(module, ours), values.group(function.module, theirs)
        if group is not None and group == own:
            return True
        several = values.groups(function.module, theirs)
        known = values.groups(module, ours)
        given = several - {own} or several
        if not training and given and given <= known:
            return True  # one of those that programs hand to what initializes
        return (
            bool(known)
            and known <= several
            and (not training or several - {own} <= self._of_programs(name))
        )

    def _of_programs(self, name: str) -> frozenset[int]:
        """Return what a variable holds in the programs of the unit, each with an initialize of its own."""
        values = self._unit.project.values
        found: set[int] = set()
        for creation in self._creations:
            node = named(creation.site.function, name)
            if node is not None:
                found |= values.groups(creation.site.module, node)
        return frozenset(found)


def _own(function: Function) -> Iterator[tuple[str, ast.expr | ast.arg]]:
    """Yield the parameters of a function, and the attributes that the constructor of its object gives that."""
    if function.node is not None:
        yield from ((p.arg, p) for p in arguments_of(function.node.args))
    constructor = function.cls.method("__init__") if function.cls is not None else None
    if constructor is None or function.receiver is None:
        return
    for node in constructor.own_nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if constructor.is_receiver(node.value):
                yield f"{function.receiver}.{node.attr}", node
