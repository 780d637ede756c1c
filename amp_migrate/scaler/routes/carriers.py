"""`amp` itself handed along: as a parameter, as an attribute of an object that travels."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from amp_migrate.apex.emptied import Empty, emptied
from amp_migrate.apex.sites import HANDED_ON, SCALE_LOSS, Kind, Site, amp_expression
from amp_migrate.availability.truths import is_asked
from amp_migrate.facts.constants import is_none
from amp_migrate.facts.paths import path, spreads
from amp_migrate.facts.scopes import global_name
from amp_migrate.flow import NOTHING, Known
from amp_migrate.flow.evaluate import value_of
from amp_migrate.flow.refine import refine
from amp_migrate.plan.cannot import Cannot, spoken
from amp_migrate.project import CallSite, Function, Project, Received
from amp_migrate.scaler.reach.kept import only_saved
from amp_migrate.scaler.routes.tested import Blank, Tested, tested
from amp_migrate.values.unpacking import unpackings

_CONTAINERS = ("dict", "list", "set", "tuple", "frozenset", "zip")
_TESTS = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.If, ast.IfExp, ast.Assert, ast.While)


@dataclass(frozen=True, eq=False, slots=True)
class Stored:
    """``args.amp = amp``: the statement, and the object that carries the attribute."""

    site: Site
    statement: ast.Assign
    owner: str


@dataclass(frozen=True, eq=False, slots=True)
class Entry:
    """``{"amp": amp}`` or ``saved["amp"] = amp``: `amp` beside what a checkpoint saves; `key` is its key where that is written."""

    site: Site
    key: ast.Constant | None


@dataclass(frozen=True, eq=False, slots=True)
class Passed:
    """``train(model, amp)``: a call that hands `amp` on as an argument."""

    site: Site
    call: ast.Call
    keyword: str | None

    @property
    def is_function(self) -> bool:
        """Whether it is a function of amp, which is called where it arrives."""
        return self.site.name == SCALE_LOSS

    @property
    def unfollowed(self) -> tuple[str, str]:
        """Why nothing is known of what it is given to, and what to do."""
        function = self.call.func
        name = path(function) or "a function"
        if self.is_function:
            message = f"amp.scale_loss is passed to {name}() here, and what calls it is not known"
            return (
                message,
                "write `with amp.scale_loss(...)` where the block begins, then run again",
            )
        own = isinstance(function, ast.Name) and self.site.module.scopes.owner(function)
        if name in _CONTAINERS and not own:
            message = f"amp is put into a {name} here, and what takes it out again is not known"
            return message, "import amp where it is used instead, then run again"
        if hasattr(builtins, name) and not own:
            message = (
                f"amp is passed to {name}() here, for which a GradScaler would be something else"
            )
            return message, "pass the flag that turns AMP on instead, then run again"
        message = f"amp is passed to {name}(), which is not in the files given"
        advice = f"give amp-migrate the file that defines {name}() as well, or import amp where it is used"
        return message, f"{advice}, then run again"


class Carriers:
    """Which functions receive `amp`, and through what it is reached; `published`: ``globals()["amp"] = amp``.

    `empty`: the constructors that give the attribute None, before amp is stored in it.
    """

    def __init__(self, project: Project, sites: list[Site]) -> None:
        self._project = project
        self.parameters: dict[Function, str] = {}
        self.paths: dict[Function, str] = {}
        self.stored: list[Stored] = []
        self.passed: list[Passed] = []
        self.entries: list[Entry] = []
        self.published: list[Site] = []
        self.empty: list[Empty] = []
        self.tested: list[Tested | Blank] = []
        for site in sites:
            self._receive(site)
        for site in sites:
            if site.kind is Kind.VALUE:
                self._hand_on(site)

    @property
    def blank(self) -> list[Blank]:
        """What makes an attribute with amp None for a whole class."""
        return [item for item in self.tested if isinstance(item, Blank)]

    def _receive(self, site: Site) -> None:
        """Note the parameter or attribute through which a site reaches `amp`."""
        node = amp_expression(site)
        taking = _taking(site.function, node) if isinstance(node, ast.Name) else None
        if isinstance(node, ast.Name) and taking is not None:
            if self._project.external(site.module, node) not in HANDED_ON:
                return  # an object that keeps a function of amp by its own name
            self._refuse_inside(site)
            self.parameters[taking] = node.id
        elif isinstance(node, ast.Attribute) and site.kind is not Kind.IMPORT:
            base = path(node.value)
            if base is not None and self._project.external(site.module, node.value) is None:
                self.paths[site.function] = base

    def _hand_on(self, site: Site) -> None:
        tree = site.module.tree
        parent = tree.parent(site.node)
        if _is_arm(site.node, parent) or isinstance(parent, ast.Return):
            self._enter(site, None)
            return
        if isinstance(parent, _TESTS):
            if isinstance(parent, ast.BoolOp) and not self._is_asked(site):
                self._refuse(site)
            return
        if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
            target = parent.targets[0]
            owner = path(target.value) if isinstance(target, ast.Attribute) else None
            if owner is not None and isinstance(target, ast.Attribute):
                self.empty += (empty := emptied(self._project, site, target))
                known = () if empty else tested(self._project, site, target)
                self.tested += [item for item in known if item not in self.tested]
                self.stored.append(Stored(site, parent, owner))
                return
            if isinstance(target, ast.Subscript) and global_name(target) is not None:
                self.published.append(site)
                return
            if isinstance(target, ast.Subscript):
                self._enter(site, target.slice)
                return
        if isinstance(parent, ast.Dict) and site.node in parent.values:
            self._enter(site, dict(zip(parent.values, parent.keys, strict=True)).get(site.node))
            return
        if isinstance(parent, ast.Call) and site.node in parent.args:
            self.passed.append(Passed(site, parent, None))
            return
        if isinstance(parent, ast.Tuple | ast.List):
            calls = unpackings(site.module.scopes, parent) or []
            passed = [Passed(site, call, None) for call in calls]
            if not passed or not all(self.receives(item) for item in passed):
                self._refuse(site)
            self.passed += passed
            return
        if isinstance(parent, ast.keyword):
            call = tree.parent(parent)
            if isinstance(call, ast.Call):
                self.passed.append(Passed(site, call, parent.arg))
                return
        self._refuse(site)

    def _is_asked(self, site: Site) -> bool:
        return isinstance(site.node, ast.expr) and is_asked(self._project, site.module, site.node)

    def _enter(self, site: Site, key: ast.expr | None) -> None:
        """Note an entry of a dictionary whose values are asked for nothing but their state."""
        if not only_saved(self._project, site.module, site.node):
            self._refuse(site)
        self.entries.append(Entry(site, key if isinstance(key, ast.Constant) else None))

    @staticmethod
    def _refuse(site: Site) -> NoReturn:
        raise Cannot(
            "AMP909",
            *site.at,
            "amp is passed on here in a way that cannot be followed to its use",
            "import amp where it is used instead of passing it on, then run again",
        )

    def _refuse_inside(self, site: Site) -> None:
        """A function that initializes by the `amp` it is given makes the scaler that others cannot give it."""
        if site.kind is Kind.INITIALIZE:
            raise Cannot(
                "AMP909",
                *site.at,
                f"{spoken(site.function)} calls initialize on an amp that it is given, which may be None",
                f"import amp in {spoken(site.function)} and give it the flag in place of amp, then run again",
            )

    def receives(self, passed: Passed) -> list[tuple[Function, str]]:
        """Return the functions of the project that a call hands `amp` to, and their parameter's name."""
        return [
            (function, name)
            for function in self._project.callees(passed.call)
            for name, node in self._project.given(passed.call, function).items()
            if node is passed.site.node
        ]

    def calls(self, function: Function) -> list[Received]:
        """Return what the calls of a function that receives `amp` give it."""
        return self._project.received(function, self.parameters[function])

    def switched_off(self, function: Function) -> Iterator[tuple[CallSite, ast.expr | None]]:
        """Yield the calls that give a function None for `amp`, with that None, or leave it at its default."""
        default = function.parameters.defaults.get(self.parameters[function])
        for site, _, given in self.calls(function):
            left_out = given is None and not spreads(site.call)
            if is_none(default if left_out else given):
                yield site, given

    @property
    def sometimes(self) -> bool:
        """Whether functions that receive `amp` get None from some of their callers."""
        return any(any(self.switched_off(function)) for function in self.parameters)


def _is_arm(node: ast.AST, parent: ast.AST | None) -> bool:
    """Tell whether a conditional expression gives amp, and neither asks it nor gives it where it is None."""
    if not isinstance(parent, ast.IfExp) or parent.test is node or not isinstance(node, ast.expr):
        return False
    held = refine(NOTHING, parent.test, parent.body is node)
    return held is None or value_of(node, held) != Known(None)


def _taking(function: Function, name: ast.Name) -> Function | None:
    """Return the function whose parameter a name is, the one that it stands in or one around that."""
    owner = function.module.scopes.find(function.scope, name.id)
    around = next((f for f in function.outward if f.scope is owner), None)
    return around if around is not None and name.id in around.parameters.names else None
