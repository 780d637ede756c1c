"""Code that nothing in the files given uses."""

from __future__ import annotations

import ast

from amp_migrate.project import Class, Function, Module, Project


def is_run(project: Project, function: Function) -> bool:
    """Tell whether a function has callers, or is the top-level code of a file."""
    return function.node is None or bool(project.callers(function))


def is_unused(project: Project, cls: Class) -> bool:
    """Tell whether nothing in the files given makes, extends, imports or mentions a class: dead code."""
    registered = bool(cls.node.decorator_list)
    return (
        not cls.children
        and not registered
        and not any(_mentions(m, cls) for m in project.modules.values())
    )


def _mentions(module: Module, cls: Class) -> bool:
    tree = module.tree
    if any(a.name == cls.name for n in tree.nodes(ast.ImportFrom) for a in n.names):
        return True
    if module is not cls.module:
        return False
    named = any(n.id == cls.name for n in tree.nodes(ast.Name))
    return named or any(tree.attributes(cls.name))


def is_uncalled(project: Project, function: Function) -> bool:
    """Tell whether nothing in the files given mentions a function of a module, not even in a string: dead code."""
    node = function.node
    if node is None or function.cls is not None or function.parent is not None:
        return False
    if node.decorator_list or node.name == "main":
        return False
    return not any(_says(module, node.name) for module in project.modules.values())


def is_dead_local(function: Function) -> bool:
    """Tell whether a function stands in another one that never reads its name: nothing can run it."""
    node, around = function.node, function.parent
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or around is None:
        return False
    if function.cls is not None or node.decorator_list:
        return False
    scopes = function.module.scopes
    owner = scopes.find(scopes.scope_of(node), node.name)
    return not scopes.reads(owner, node.name)


def _says(module: Module, name: str) -> bool:
    tree = module.tree
    if name not in tree.text:
        return False
    found: list[str] = [n.id for n in tree.nodes(ast.Name)]
    found += [n.attr for n in tree.nodes(ast.Attribute)]
    found += [a.name for n in tree.nodes(ast.ImportFrom) for a in n.names]
    texts = (n.value for n in tree.nodes(ast.Constant))
    found += [t.rpartition(":")[2].rpartition(".")[2] for t in texts if isinstance(t, str)]
    return name in found
