"""Whether what native AMP is switched by has to do with what Apex was switched by."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from amp_migrate.check.apex.assumed import Initialize, guards
from amp_migrate.check.apex.flags.behind import Behind, jumped, names_behind
from amp_migrate.check.apex.given import SWITCHES
from amp_migrate.facts.constants import is_false, number, string
from amp_migrate.project import Function
from amp_migrate.project.reach import upwards
from amp_migrate.protocol.code.program import Program
from amp_migrate.training.contexts import scaling_calls

_Place = tuple[Function, ast.expr]
_TRAINED = ("models", "optimizers")


class Related:
    """Follows flags back to where they come from: those that share no name with what Apex asked for are others."""

    def __init__(self, program: Program, every: Sequence[Initialize]) -> None:
        self._program = program
        self._every = every

    def other(
        self,
        program: Program,
        function: Function,
        enabled: ast.expr,
        truth: Callable[[ast.expr], bool | None],
    ) -> str | None:
        """Return a part of a condition of the new text that has nothing to do with what Apex asked for.

        Beside a part that has a `truth` with AMP on, one that has none is another.
        """
        parts = list(_joined(enabled))
        told = [truth(part) for part in parts]
        for part, known in zip(parts, told, strict=True):
            asked = (self._is_asked(program, function, node) for node in _operands(part))
            if known is None and any(told) and not any(asked):
                if names_behind(program, function, part):
                    return ast.unparse(part)
            if any(self._is_other_entry(node) for node in _operands(part)):
                return ast.unparse(part)
            if known is None and self._is_compared_otherwise(part):
                return ast.unparse(part)
        for part in parts:
            behind = Behind(program)
            found = behind.names([(function, part)])
            if found and not behind.unknown and not found & self._asked:
                return ast.unparse(part)
        return None

    def _is_asked(self, program: Program, function: Function, node: ast.expr) -> bool:
        """Tell whether an operand is asked for Apex, as it is written or by what all calls hand in for the parameter in it."""
        if not self._tests.isdisjoint(_spelt(program, node)):
            return True
        names = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
        root = names[0] if len(names) == 1 else None
        seen: set[tuple[Function, str]] = set()
        queue = [(function, root)]
        for where, name in queue:
            given = _handed(program, where, name) if name is not None else []
            if root is None or not given:
                return False
            for giver, argument in given:
                text = ast.unparse(_Put(root, argument).visit(copy.deepcopy(node)))
                if text in self._tests or (giver, text) in seen:
                    continue
                seen.add((giver, text))
                queue.append((giver, argument if isinstance(argument, ast.Name) else None))
        return True

    def _is_other_entry(self, node: ast.expr) -> bool:
        """Tell whether a dictionary is asked for an entry, and none that switches Apex of what `amp.initialize` unpacks."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return False
        if node.func.attr != "get" or not node.args or not self._unpacked:
            return False
        held, text = ast.unparse(node.func.value), ast.unparse(node)
        known = {f"{held}.get({key!r}, {value!r})" for key, value in SWITCHES.items()}
        of_it = held in self._unpacked
        return text not in known if of_it else string(node.args[0]) in SWITCHES

    def _is_compared_otherwise(self, part: ast.expr) -> bool:
        """Tell whether what Apex was asked by is compared with something else than it was there."""
        if isinstance(part, ast.UnaryOp):
            return self._is_compared_otherwise(part.operand)
        asked = isinstance(part, ast.Compare) and ast.unparse(part.left) in self._compared
        return asked and ast.unparse(part) not in self._tests

    @cached_property
    def _compared(self) -> frozenset[str]:
        """What is held against numbers there."""
        parts = (part for _, node in self._places for part in ast.walk(node))
        tests = (part for part in parts if isinstance(part, ast.Compare))
        return frozenset(
            ast.unparse(t.left) for t in tests if all(number(c) is not None for c in t.comparators)
        )

    @cached_property
    def _unpacked(self) -> frozenset[str]:
        """The dictionaries that `amp.initialize` unpacks."""
        keywords = (k for item in self._every for k in item.call.keywords)
        return frozenset(ast.unparse(k.value) for k in keywords if k.arg is None)

    @cached_property
    def _asked(self) -> frozenset[str]:
        """The names behind what decides whether Apex is initialized, and how."""
        entries = SWITCHES if self._unpacked else ()
        return Behind(self._program).names(self._places).union(entries)

    @cached_property
    def _tests(self) -> frozenset[str]:
        """What is asked there, by the text of each part."""
        project = self._program.project
        scaling = ((module, call) for call, module in scaling_calls(project).items())
        guarding = (t for m, c in scaling for t, _ in guards(project.function_of(m, c), c))
        nodes = [*(node for _, node in self._places), *guarding, *self._kept_under]
        parts = (part for node in nodes for part in ast.walk(node))
        texts = [ast.unparse(part) for part in parts if isinstance(part, ast.expr)]
        for held in self._unpacked:
            texts += [f"{held}[{key!r}]" for key in SWITCHES]
            texts += [f"{held}.get({key!r}, {value!r})" for key, value in SWITCHES.items()]
        return frozenset(texts)

    @property
    def _kept_under(self) -> Iterator[ast.expr]:
        """The tests under which an object keeps Apex, for others to ask whether it has it."""
        project, objects = self._program.project, self._program.training.objects
        for module, target, value in (kept for held in objects.stored.values() for kept in held):
            if (project.external(module, value) or "").partition(".")[0] == "apex":
                function = project.function_of(module, target)
                yield from (test for test, _ in guards(function, target))
                yield from (test for _, test in jumped(self._program, function, target))

    @cached_property
    def _places(self) -> list[_Place]:
        """What decides whether Apex is initialized, and how."""
        project = self._program.project
        above = upwards(project, *(item.function for item in self._every))
        calls = [(s.function, s.call) for f in above for s in project.callers(f)]
        calls += [(item.function, item.call) for item in self._every]
        places = [(f, test) for f, call in calls for test, _ in guards(f, call)]
        places += [place for f, call in calls for place in jumped(self._program, f, call)]
        for item in self._every:
            given = [k.value for k in item.call.keywords if k.arg not in _TRAINED]
            given += item.call.args[len(_TRAINED) :]
            places += [(item.function, node) for node in given]
        return places


def _handed(program: Program, function: Function, name: ast.Name) -> list[_Place]:
    """Return what all calls hand in for a parameter that nothing else is bound to; nothing where one is not seen."""
    bound = list(function.module.scopes.bound(name))
    if not bound or not all(isinstance(binding, ast.arg) for binding in bound):
        return []
    if name.id not in function.parameters.names:
        return []
    found = list(program.project.received(function, name.id, itself=True))
    places = [(giver, given) for _, giver, given in found if given is not None]
    return places if len(places) == len(found) else []


class _Put(ast.NodeTransformer):
    """Puts an expression in the place of the variable of that name."""

    def __init__(self, name: ast.Name, instead: ast.expr) -> None:
        self._name = name.id
        self._instead = instead

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._instead if node.id == self._name else node


def _spelt(program: Program, node: ast.expr) -> Iterator[str]:
    """Yield how an operand is written, and of an attribute how what it holds is."""
    yield ast.unparse(node)
    name = node.attr if isinstance(node, ast.Attribute) else ""
    yield from (ast.unparse(v) for _, _, v in program.training.objects.stored.get(name, ()))


def _operands(part: ast.expr) -> list[ast.expr]:
    """Return what a part of a condition asks for."""
    if isinstance(part, ast.UnaryOp):
        return _operands(part.operand)
    found = [part.left, *part.comparators] if isinstance(part, ast.Compare) else [part]
    return [node for node in found if not isinstance(node, ast.Constant)]


def _joined(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BoolOp):
        for part in node.values:
            yield from _joined(part)
    elif isinstance(node, ast.IfExp) and is_false(node.orelse):
        yield from _joined(node.test)
        yield from _joined(node.body)
    else:
        yield node
