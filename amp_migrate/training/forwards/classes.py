"""Which classes are networks: modules of torch, and classes derived from those of libraries, with a forward of their own."""

from __future__ import annotations

import ast

from amp_migrate.project import Class, Function, Module, Project

_OTHERS = ("object", "abc.ABC", "torch.autograd.")
_MAKE_NO_MODULE = tuple(
    f"torch.nn.{part}" for part in ("functional.", "init.", "utils.", "Parameter", "parameter.")
)


def makes_module(name: str) -> bool:
    """Tell whether calling what has a dotted name makes a module of torch: a layer, a network or a loss."""
    return name.startswith("torch.nn.") and not name.startswith(_MAKE_NO_MODULE)


def holds_module(project: Project, module: Module, node: ast.expr) -> bool:
    """Tell whether an attribute is seen to hold a module, whatever a method of its name would do: ``self.update_gate``."""
    if not isinstance(node, ast.Attribute):
        return False
    made = any(map(makes_module, project.values.made_by(module, node)))
    return made or any(map(is_network_class, project.instance_classes(module, node)))


def is_network_class(cls: Class) -> bool:
    """Tell whether the objects of a class are networks, as far as that is seen: what a base out of sight is, its `forward` tells."""
    bases = cls.externals()
    if "torch.nn.Module" in bases:
        return True
    known = all(base.startswith(_OTHERS) for base in bases)
    return not known and cls.method("forward") is not None


def is_of_network(function: Function) -> bool:
    """Tell whether a function is a method of such a class."""
    return function.cls is not None and is_network_class(function.cls)


def is_forward(function: Function) -> bool:
    """Tell whether a function is what calling a module or an autograd function runs, or a class may lend it to one.

    That of an object of another kind is a method like any other.
    """
    cls = function.cls
    if cls is None or function.name != "forward":
        return False
    derived = any(base.startswith("torch.autograd.") for base in cls.externals())
    return derived or any(map(is_network_class, (cls, *cls.subclasses())))


def run_given(project: Project, module: Module, call: ast.Call) -> list[ast.expr]:
    """Return what a call gives to a function, or to a module of the project, that calls it: ``criterion(model, batch)``."""
    if not call.args:
        return []
    callees = project.callees(call)
    run = [f for f in callees if f.cls is None]
    run += [] if callees else project.methods(module, call.func, "forward")
    found: dict[ast.expr, None] = {}
    for function in run:
        called = {n.func.id for n in function.calls if isinstance(n.func, ast.Name)}
        names = function.parameters.positional[function.takes_receiver :]
        for name, given in zip(names, call.args, strict=False):
            if name in called and not isinstance(given, ast.Starred):
                found[given] = None
    return list(found)
