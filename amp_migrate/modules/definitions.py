"""The functions and classes that a file defines."""

from __future__ import annotations

import ast

from amp_migrate.facts.imports import last_name
from amp_migrate.facts.scopes import Scopes
from amp_migrate.facts.tree import FunctionNode, Tree
from amp_migrate.modules.model import Class, Function, Module, Parameters

_PROPERTIES = {"property", "cached_property", "lazy_property", "abstractproperty"}


def module_of(path: str, name: str, names: tuple[str, ...], tree: Tree) -> Module:
    """Return a module with its functions and classes; the bases of its classes are not linked yet."""
    module = Module(path, name, names, tree, Scopes(tree))
    module.functions[tree.module] = Function(module, None, "<module>")
    _Definer(module).visit(tree.module, module.top, None, "")
    return module


class _Definer:
    def __init__(self, module: Module) -> None:
        self.module = module

    def visit(self, root: ast.AST, function: Function, cls: Class | None, prefix: str) -> None:
        """Define what stands in the body of `root`, at any depth of `if`, `try`, `with` and loops."""
        stack = [root]
        while stack:
            for node in ast.iter_child_nodes(stack.pop()):
                if isinstance(node, FunctionNode):
                    self._function(node, function, cls, prefix)
                elif isinstance(node, ast.ClassDef):
                    self._class(node, function, prefix)
                elif isinstance(node, (ast.stmt, ast.ExceptHandler, ast.match_case)):
                    stack.append(node)

    def _function(
        self, node: FunctionNode, parent: Function, cls: Class | None, prefix: str
    ) -> None:
        decorators = {last_name(item) for item in node.decorator_list}
        accessor = bool(decorators & {"setter", "deleter"})
        function = Function(
            self.module,
            node,
            f"{prefix}{node.name}",
            cls,
            parent if parent.node is not None else None,
            parameters_of(node.args),
            is_static=cls is not None and ("staticmethod" in decorators or node.name == "__new__"),
            is_class=cls is not None
            and ("classmethod" in decorators or node.name == "__init_subclass__"),
            is_property=cls is not None and (accessor or bool(decorators & _PROPERTIES)),
        )
        self.module.functions[node] = function
        if cls is not None and not (accessor and node.name in cls.methods):
            cls.methods[node.name] = function
        self.visit(node, function, None, f"{function.qualname}.<locals>.")

    def _class(self, node: ast.ClassDef, function: Function, prefix: str) -> None:
        cls = Class(self.module, node, f"{prefix}{node.name}")
        self.module.classes[node] = cls
        self.visit(node, function, cls, f"{cls.qualname}.")


def parameters_of(args: ast.arguments) -> Parameters:
    """Return the parameters that a function or lambda declares."""
    positional = [*args.posonlyargs, *args.args]
    names = tuple(item.arg for item in positional)
    keyword_only = tuple(item.arg for item in args.kwonlyargs)
    count = len(args.defaults)
    defaults = dict(zip(names[len(names) - count :], args.defaults, strict=True)) if count else {}
    for name, value in zip(keyword_only, args.kw_defaults, strict=True):
        if value is not None:
            defaults[name] = value
    return Parameters(
        names,
        keyword_only,
        defaults,
        args.vararg.arg if args.vararg else None,
        args.kwarg.arg if args.kwarg else None,
    )
