"""Parts of networks that every object of their class makes for itself: two objects share none of their weights."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from amp_migrate.facts.paths import all_given, tail
from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.training.bindings import returned
from amp_migrate.training.objects import Objects
from amp_migrate.training.reads.variables import given_to, put_into, taken_out_of
from amp_migrate.values.objects import Instance, Made, Written
from amp_migrate.values.wrappers import SELF_METHODS

_HOLDERS = frozenset(
    [
        "Sequential", "ModuleList", "ModuleDict", "Parameter", "ParameterList", "ParameterDict", "DataParallel",
    ]
)  # fmt: skip
_SETS = frozenset({"setattr", "__setattr__", "add_module", "register_module"})
_INSIDES = frozenset({"__dict__", "_modules"})
_PLAIN = frozenset({"staticmethod", "classmethod"})


@dataclass(frozen=True, slots=True)
class _Part:
    """The question whether an attribute of the objects of a class holds what methods of it made for their object."""

    cls: Class
    name: str


@dataclass(frozen=True, slots=True)
class _New:
    """The question whether an expression holds no network but those it makes; `plain`: a name may hold something else."""

    function: Function
    node: ast.AST
    plain: bool = False

    def of(self, *nodes: ast.AST, plain: bool | None = None) -> list[_Question]:
        """Return the same question about other expressions of the function."""
        kept = self.plain if plain is None else plain
        return [_New(self.function, node, kept) for node in nodes]


_Question = _Part | _New


class Own:
    """Asks whether ``self.part`` is made anew for each object; whatever is not known to be may be shared.

    A question is answered with no by itself, or with yes where all that it needs is: so it is one unless it leads to
    a question that is answered with no.
    """

    def __init__(self, project: Project, objects: Objects) -> None:
        self._project = project
        self._objects = objects
        self._known: dict[_Question, bool] = {}

    def is_own(self, function: Function, part: ast.expr) -> bool:
        """Tell whether an expression in a method is a part that its object has made for itself."""
        asked = self._asked(function, part)
        return asked is not None and all(map(self._answer, asked))

    def _asked(
        self, function: Function, node: ast.expr, seen: frozenset[ast.expr] = frozenset()
    ) -> list[_Question] | None:
        """Return the questions about a part of the object of a method, or about a part of that; None for anything else."""
        if node in seen:
            return []
        seen |= {node}
        part = self._part(function, node)
        if part is not None:
            return [part]
        if isinstance(node, ast.Name):
            asked = [
                None if one is None else self._asked(function, one, seen)
                for one in taken_out_of(function.module, node)
            ]
            known = [questions for questions in asked if questions is not None]
            return [*chain(*known)] if known and len(known) == len(asked) else None
        if not isinstance(node, ast.Attribute | ast.Subscript):
            return None
        around = self._asked(function, node.value, seen)
        if around is None or isinstance(node, ast.Subscript):
            return around
        classes = self._project.instance_classes(function.module, node.value)
        if classes:
            return [*around, *(_Part(cls, node.attr) for cls in classes)]
        stored = self._objects.stored.get(node.attr, ())
        put = [_New(self._project.function_of(m, target), value) for m, target, value in stored]
        return [*around, *put, *self._put_by_name(node.attr)]

    def _part(self, function: Function, node: ast.expr) -> _Part | None:
        """Return the question about an attribute of the object of a method."""
        if not isinstance(node, ast.Attribute) or not self.is_receiver(function, node.value):
            return None
        assert function.cls is not None
        return _Part(function.cls, node.attr)

    @staticmethod
    def is_receiver(function: Function, node: ast.expr) -> bool:
        """Tell whether an expression is the object of the method it stands in, which nothing else gets the name of."""
        if function.is_class or not isinstance(node, ast.Name) or not function.is_receiver(node):
            return False
        return len(function.module.scopes.bindings(function.scope, node.id)) == 1

    def _answer(self, asked: _Question) -> bool:
        """Answer a question: with no where it leads to one that is answered so."""
        if asked in self._known:
            return self._known[asked]
        led: dict[_Question, _Question | None] = {asked: None}
        queue = [asked]
        for question in queue:
            needs = self._needs(question)
            if needs is None or any(self._known.get(need) is False for need in needs):
                way: _Question | None = question
                while way is not None:
                    self._known[way] = False
                    way = led[way]
                return False
            for need in needs:
                if need not in led and need not in self._known:
                    led[need] = question
                    queue.append(need)
        self._known |= dict.fromkeys(queue, True)
        return True

    def _needs(self, question: _Question) -> list[_Question] | None:
        """Return what must be answered with yes for a question to be; None where nothing helps."""
        if isinstance(question, _Part):
            return self._of_part(question)
        return self._of_expression(question)

    def _of_part(self, part: _Part) -> list[_Question] | None:
        name = part.name
        family = {one for base in part.cls.mro() for one in (base, *base.subclasses())}
        if any(c.module.scopes.bindings(c.node, name) or c.method(name) for c in family):
            return None
        if self._is_opened(family):
            return None
        made = []
        for module, target, value in self._objects.stored.get(name, ()):
            function = self._project.function_of(module, target)
            inside = self.is_receiver(function, target.value)
            if inside and function.cls not in family:
                continue
            if not inside:
                return None
            made.append(_New(function, value))
        return [*made, *self._put_by_name(name)] if made else None

    def _is_opened(self, family: set[Class]) -> bool:
        """Tell whether some code takes the dictionary of attributes of an object of some classes."""
        return any(
            family & {*self._project.instance_classes(module, node.value)}
            for module, node in self._opening
        )

    @cached_property
    def _opening(self) -> list[tuple[Module, ast.Attribute]]:
        """Where code takes the dictionary of attributes of an object."""
        nodes = self._project.nodes(ast.Attribute)
        return [(module, node) for module, node in nodes if node.attr in _INSIDES]

    def _put_by_name(self, name: str) -> list[_Question]:
        """Return the questions about what may be put into an attribute of a name, and into what it holds."""
        holding = self._setting
        return [*holding.get(name, ()), *holding.get(None, ()), *self._putting.get(name, ())]

    @cached_property
    def _putting(self) -> dict[str, list[_Question]]:
        """What code puts into what an attribute holds, by the name of the attribute."""
        found: dict[str, list[_Question]] = {}
        for module, node in self._project.nodes(ast.Call, ast.Subscript):
            for holder, value in put_into(module, node):
                if isinstance(holder, ast.Attribute):
                    function = self._project.function_of(module, node)
                    plain = not self.is_receiver(function, holder.value)
                    found.setdefault(holder.attr, []).append(_New(function, value, plain))
        return found

    @cached_property
    def _setting(self) -> dict[object, list[_Question]]:
        """What calls put into an attribute which they name, by that name; by None where it is not written out."""
        found: dict[object, list[_Question]] = {}
        for module, call in self._project.nodes(ast.Call):
            if len(call.args) > 1 and tail(call) in _SETS:
                named = call.args[-2]
                name = named.value if isinstance(named, ast.Constant) else None
                put = _New(self._project.function_of(module, call), call.args[-1], plain=True)
                found.setdefault(name, []).append(put)
        return found

    def _of_expression(self, asked: _New) -> list[_Question] | None:
        node = asked.node
        if isinstance(node, ast.Constant | ast.JoinedStr):
            return []
        if isinstance(node, ast.Call):
            return self._of_call(asked, node)
        if isinstance(node, ast.Name | ast.Attribute):
            return self._of_name(asked, node)
        if isinstance(node, ast.Lambda | ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom):
            return None
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
            return asked.of(node.elt)
        if isinstance(node, ast.IfExp):
            return asked.of(node.body, node.orelse)
        if isinstance(node, ast.Subscript):
            return asked.of(node.value)
        return asked.of(*[p for p in ast.iter_child_nodes(node) if isinstance(p, ast.expr)])

    def _of_name(self, asked: _New, node: ast.Name | ast.Attribute) -> list[_Question] | None:
        function = asked.function
        if asked.plain and self._is_no_network(function.module, node):
            return []
        if not isinstance(node, ast.Name):
            part = self._part(function, node)
            return None if part is None else [part]
        scopes = function.module.scopes
        if function.node is None or scopes.owner(node) is not function.scope:
            return None
        values = [given_to(function.module, b) for b in scopes.bindings(function.scope, node.id)]
        held = [value for value in values if value is not None]
        kept = [
            value
            for part in function.all_nodes
            for holder, value in put_into(function.module, part)
            if isinstance(holder, ast.Name) and holder.id == node.id
        ]
        return asked.of(*held, *kept, plain=False) if len(held) == len(values) else None

    def _is_no_network(self, module: Module, node: ast.expr) -> bool:
        """Tell whether nothing that is made as an object is known to be in an expression."""
        if self._objects.is_network(module, node):
            return False
        facts = self._project.values.facts(module, node)
        return not any(isinstance(fact, Instance | Made | Written) for fact in facts)

    def _of_call(self, asked: _New, call: ast.Call) -> list[_Question] | None:
        given = all_given(call)
        name = self._project.external(asked.function.module, call.func)
        if name is not None:
            kind = name.rpartition(".")[2]
            if name == "copy.deepcopy":
                return []
            if any((k.arg or "").startswith("_") for k in call.keywords):
                return None
            if name == f"torch.nn.{kind}" and kind not in _HOLDERS:
                return []
            return asked.of(*given, plain=not name.startswith(("torch.", "collections.")))
        made = self._project.constructed(call)
        if made:
            if any(c.method("__new__") or c.method("__call__") for c in made):
                return None
            return asked.of(*given, plain=True)
        callees = self._project.callees(call)
        if callees:
            return _of_results(callees)
        method = call.func if isinstance(call.func, ast.Attribute) else None
        if method is None or method.attr not in SELF_METHODS:
            return None
        return asked.of(method.value, plain=False)


def _of_results(functions: Iterable[Function]) -> list[_Question] | None:
    """Return what makes functions make what they return, each time that they are called."""
    needs: list[_Question] = []
    for function in functions:
        if not isinstance(function.node, ast.FunctionDef) or is_decorated(function.node):
            return None
        values = returned(function)
        if not values:
            return None
        needs += [_New(function, value) for value in values]
    return needs


def is_decorated(node: ast.FunctionDef | ast.ClassDef) -> bool:
    """Tell whether a decorator may keep what a function or class makes."""
    plain = (isinstance(d, ast.Name) and d.id in _PLAIN for d in node.decorator_list)
    return not all(plain)
