"""Takes the GradScaler out of a training again: bfloat16 has the range of FP32, and needs none.

The name of the GradScaler is one that the files of the user do not have, so every use of it is one that was written.
Where functions ask it whether AMP is on, the answer itself travels in its place.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from amp_migrate.enable.described.draft import Draft
from amp_migrate.facts.constants import string
from amp_migrate.facts.imports import last_name
from amp_migrate.facts.paths import argument, arguments_of, tail
from amp_migrate.facts.tree import FunctionNode, Tree
from amp_migrate.project import Function, Module, Project, build

NAMES = ("use_amp", "amp_enabled", "autocast_enabled", "mixed_precision")
_GONE = ("unscale_", "update")
_ATOMS = ast.Name | ast.Attribute | ast.Call | ast.Subscript


class Kept(Exception):
    """A GradScaler that cannot be taken out: where it is used in a way of its own."""

    def __init__(self, path: str, line: int) -> None:
        super().__init__(f"{path}:{line}")
        self.path = path
        self.line = line


def without_scale(before: Mapping[str, Tree], after: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of a training without its GradScaler. Raises `Kept`."""
    trees = {**before, **{path: Tree(path, text) for path, text in after.items()}}
    project = build(trees)
    found = _Scaler(project, [m for path, m in project.modules.items() if path in after])
    taken = {word for path in after for word in _identifiers(before[path])}
    for module in found.modules:
        if found.names & set(_identifiers(before[module.path])):
            raise Kept(module.path, 1)
    return _Out(found, next(name for name in NAMES if name not in taken)).texts()


def _identifiers(tree: Tree) -> Iterator[str]:
    yield from (node.id for node in tree.nodes(ast.Name))
    yield from (node.attr for node in tree.nodes(ast.Attribute))
    yield from (node.arg for node in tree.nodes(ast.arg))


@dataclass
class _Scaler:
    """Every use of the GradScaler that was written: by what it is called, and who needs to know whether AMP is on."""

    project: Project
    modules: list[Module]
    names: set[str] = field(default_factory=set)
    asking: set[Function] = field(default_factory=set)

    def __post_init__(self) -> None:
        for module in self.modules:
            for made in module.tree.nodes(ast.Assign):
                if isinstance(made.value, ast.Call) and tail(made.value) == "GradScaler":
                    self.names |= {last_name(target) for target in made.targets}
        asked = [node for _, node in self.uses() if self._asked(node)]
        self.anywhere = bool(asked)
        self.by_attribute = any(isinstance(node, ast.Attribute) for node in asked)
        self._ask()

    def is_one(self, node: ast.AST) -> bool:
        """Tell whether a node is the GradScaler."""
        return isinstance(node, ast.Name | ast.Attribute) and last_name(node) in self.names

    def uses(self) -> Iterator[tuple[Module, ast.expr]]:
        """Yield the nodes that are the GradScaler."""
        for module in self.modules:
            for node in module.tree.nodes(ast.Name, ast.Attribute):
                if self.is_one(node):
                    yield module, node

    def needed(self, module: Module, node: ast.expr) -> bool:
        """Tell whether what stands in place of the GradScaler is read where it is bound or handed on."""
        if isinstance(node, ast.Attribute):
            return self.by_attribute
        return self.project.function_of(module, node) in self.asking

    def takes(self, call: ast.Call) -> bool:
        """Tell whether a call is one of a function that needs to know whether AMP is on."""
        return any(function in self.asking for function in self.project.callees(call))

    def _asked(self, node: ast.expr) -> bool:
        up = self.project.module_of(node).tree.parent(node)
        return isinstance(up, ast.Attribute) and up.attr == "is_enabled"

    def _ask(self) -> None:
        """Find the functions whose own GradScaler is asked, or handed on to one where it is."""
        for module, node in self.uses():
            stored = self._stores(module, node) and self.by_attribute
            given = isinstance(module.tree.parent(node), ast.Tuple) and self.anywhere
            if isinstance(node, ast.Name) and (self._asked(node) or stored or given):
                self.asking.add(self.project.function_of(module, node))
        grown = True
        while grown:
            around = {self._around(function) for function in self.asking} - self.asking
            self.asking |= around
            grown = bool(around)
            for module, node in self.uses():
                call = module.tree.user(node)
                if isinstance(call, ast.Call) and call.func is not node and self.takes(call):
                    function = self.project.function_of(module, node)
                    grown |= isinstance(node, ast.Name) and function not in self.asking
                    self.asking |= {function} if isinstance(node, ast.Name) else set()

    def _around(self, function: Function) -> Function:
        """Return the function whose variable a function reads, itself where it is its own."""
        if self.names.intersection(function.parameters.names) or function.node is None:
            return function
        own = {n.id for n in function.own_nodes if isinstance(n, ast.Name) and self._binds(n)}
        return function if own & self.names else function.parent or function.module.top

    @staticmethod
    def _binds(node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)

    @staticmethod
    def _stores(module: Module, node: ast.expr) -> bool:
        """Tell whether an attribute gets the GradScaler that a name has."""
        up = module.tree.parent(node)
        return isinstance(up, ast.Assign) and up.value is node


class _Out:
    """Writes the files without the GradScaler; `name` is what tells whether AMP is on."""

    def __init__(self, scaler: _Scaler, name: str) -> None:
        self._scaler = scaler
        self._name = name

    def texts(self) -> dict[str, str]:
        """Return the new texts."""
        drafts = {module: Draft(module.tree) for module in self._scaler.modules}
        for module, use in self._scaler.uses():
            self._use(module.tree, module, use, drafts[module])
        for module, draft in drafts.items():
            for node in module.functions:
                if isinstance(node, FunctionNode):
                    self._parameter(module, node, draft)
            self._listed(module.tree, draft)
        return {module.path: draft.text() for module, draft in drafts.items()}

    def _use(self, tree: Tree, module: Module, node: ast.expr, draft: Draft) -> None:
        up = tree.parent(node)
        call = tree.parent(up) if isinstance(up, ast.Attribute | ast.keyword) else None
        if isinstance(up, ast.Attribute) and isinstance(call, ast.Call) and call.func is up:
            self._method(tree, node, up.attr, call, draft)
        elif isinstance(up, ast.Assign):
            self._bound(tree, module, node, up, draft)
        elif isinstance(up, ast.Tuple):
            if self._scaler.anywhere:
                self._renamed(tree, node, draft)
            else:
                draft.drop_item(node, node)
        elif isinstance(up, ast.Call) or isinstance(call, ast.Call):
            given = up if isinstance(up, ast.keyword) else node
            called = call if isinstance(call, ast.Call) else up
            assert isinstance(called, ast.Call)
            if self._scaler.takes(called):
                self._renamed(tree, node, draft)
                if isinstance(given, ast.keyword) and given.arg in self._scaler.names:
                    start = tree.span(given)
                    end = (start.line, start.column + len(given.arg or ""))
                    draft.put(start[:2], end, self._name)
            else:
                draft.drop_item(given, given)
        else:
            raise Kept(module.path, node.lineno)

    def _method(
        self, tree: Tree, node: ast.expr, method: str, call: ast.Call, draft: Draft
    ) -> None:
        span = tree.span(call)
        if method == "scale":
            loss = tree.segment(call.args[0])
            alone = isinstance(call.args[0], _ATOMS) and "\n" not in loss
            draft.put(span[:2], span[2:], loss if alone else f"({loss})")
        elif method == "step":
            rest = ", ".join(tree.segment(argument) for argument in call.args[1:])
            draft.put(span[:2], span[2:], f"{tree.segment(call.args[0])}.step({rest})")
        elif method == "is_enabled":
            held = tree.segment(node)
            draft.put(span[:2], span[2:], held.removesuffix(last_name(node)) + self._name)
        elif method in _GONE and isinstance(tree.parent(call), ast.Expr):
            draft.drop(tree.statement(call))
        else:
            raise Kept(tree.path, call.lineno)

    def _bound(
        self, tree: Tree, module: Module, node: ast.expr, made: ast.Assign, draft: Draft
    ) -> None:
        target = made.targets[0]
        if not self._scaler.needed(module, target):
            if made.value is not node:
                draft.drop(made)
            elif self._scaler.is_one(target):
                return
            else:
                raise Kept(module.path, node.lineno)
            return
        self._renamed(tree, node, draft)
        value = made.value
        if isinstance(value, ast.Call) and node is target and not self._scaler.is_one(value):
            enabled = argument(value, "enabled")
            span = tree.span(value)
            draft.put(span[:2], span[2:], tree.segment(enabled) if enabled else "True")

    def _renamed(self, tree: Tree, node: ast.expr, draft: Draft) -> None:
        end = tree.span(node)[2:]
        draft.put((end[0], end[1] - len(last_name(node))), end, self._name)

    def _parameter(self, module: Module, node: FunctionNode, draft: Draft) -> None:
        arguments = node.args
        every = arguments_of(arguments)
        for parameter in every:
            if parameter.arg in self._scaler.names:
                if module.functions[node] in self._scaler.asking:
                    span = module.tree.span(parameter)
                    draft.put(span[:2], (span.line, span.column + len(parameter.arg)), self._name)
                else:
                    draft.drop_item(parameter, _default(arguments, parameter) or parameter)

    def _listed(self, tree: Tree, draft: Draft) -> None:
        """Take out the lines of docstrings that speak of the GradScaler."""
        for node in tree.nodes(ast.Expr):
            if string(node.value) is not None:
                for number in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                    if "GradScaler" in tree.lines[number - 1]:
                        draft.put((number, 0), (number + 1, 0), "")


def _default(arguments: ast.arguments, argument: ast.arg) -> ast.expr | None:
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(
            positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True
        ),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return next((default for held, default in pairs if held is argument), None)
