"""Who is who in a project that uses an older interface of Apex: its calls, and the objects that it was given."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from amp_migrate.facts.paths import all_given, path
from amp_migrate.older.interface import FP16_UTILS as UTILS
from amp_migrate.older.interface import FUSED, Interface
from amp_migrate.project import Function, Module, Project
from amp_migrate.protocol.code.program import program_of
from amp_migrate.rules.guards.kept import FP16_UTILS
from amp_migrate.training.bindings import bound_value
from amp_migrate.training.gradients.handed_out import bases
from amp_migrate.training.optimizers import Optimizer, Optimizers
from amp_migrate.values.links.onward import Onward
from amp_migrate.values.values import Values

_FP16 = "apex.fp16_utils"
_FUSED = ("apex.optimizers", "apex.contrib.optimizers")
_OF_FUSED = frozenset({"FP16_Optimizer", "FusedAdam", "FusedLAMB", "FusedSGD"})
Groups = frozenset[int]


class Found:
    """The uses of Apex by name, and the optimizers and networks of a project."""

    def __init__(self, project: Project) -> None:
        self.project = project

    @cached_property
    def _values(self) -> Values:
        """What names hold, with all of them known: until then their numbers may change."""
        for module in self.project.modules.values():
            for node in module.tree.nodes(ast.Name, ast.Attribute):
                self.project.values.groups(module, node)
        return self.project.values

    @cached_property
    def optimizers(self) -> Optimizers:
        """The optimizers of the project, with what they train."""
        return Optimizers(self.project, program_of(self.project).training.objects)

    def groups(self, module: Module, node: ast.expr) -> Groups:
        """Return the names that may hold the object of an expression, and those of what makes it anew for each call."""
        return self._values.lineage(module, node)

    def onward(self, groups: Groups) -> Onward:
        """Return what tells, quickly, whether objects of some names can flow to an expression."""
        return self._values.onward(groups, items=True)

    def group(self, module: Module, node: ast.expr) -> Groups:
        """Return the name of what an expression gives by itself; none where it has no name."""
        found = self._values.group(module, node)
        return frozenset() if found is None else frozenset({found})

    def fp16_name(self, module: Module, node: ast.expr) -> str | None:
        """Return what an expression names of `apex.fp16_utils`: "FP16_Optimizer"."""
        if isinstance(node, ast.Name) and module.scopes.owner(node) is None:
            stars = any(s.module == _FP16 and not s.level for s in module.scopes.stars)
            return node.id if stars and node.id in FP16_UTILS else None
        name = self.project.apex(module, node) or ""
        base, _, last = name.rpartition(".")
        known = base == _FP16 or base.startswith(f"{_FP16}.")
        return last if known and last in FP16_UTILS else None

    def fp16_uses(self) -> Iterator[tuple[Module, ast.expr, str]]:
        """Yield the expressions that name something of `apex.fp16_utils`, outermost ones."""
        for module in self.project.modules.values():
            if "fp16_utils" not in module.tree.text:
                continue
            for node in module.tree.nodes(ast.Name, ast.Attribute):
                name = self.fp16_name(module, node) if isinstance(node.ctx, ast.Load) else None
                if name is not None:
                    yield module, node, name

    def fused_name(self, module: Module, node: ast.expr) -> str | None:
        """Return what an expression names of `apex.optimizers`, or of `apex.contrib.optimizers`: "FusedAdam"."""
        base, _, last = (self.project.apex(module, node) or "").rpartition(".")
        known = any(base == package or base.startswith(f"{package}.") for package in _FUSED)
        return last if known and last in _OF_FUSED else None

    def wrappers(self) -> Iterator[tuple[Module, ast.expr, Interface]]:
        """Yield the expressions that name an FP16_Optimizer, of either interface."""
        for module, node, name in self.fp16_uses():
            if name == "FP16_Optimizer":
                yield module, node, UTILS
        for module in self.project.modules.values():
            if "FP16_Optimizer" not in module.tree.text:
                continue
            for node in module.tree.nodes(ast.Name, ast.Attribute):
                if isinstance(node.ctx, ast.Load):
                    if self.fused_name(module, node) == "FP16_Optimizer":
                        yield module, node, FUSED

    def made_with(self, module: Module, node: ast.expr) -> list[Optimizer]:
        """Return the optimizers that an expression may hold, or makes itself."""
        inside = [o for o in self.optimizers.every if o.call is node]
        return inside or self.optimizers.stepped(module, node)

    def networks_at(self, module: Module, node: ast.expr, wanted: Groups) -> list[str]:
        """Return how the function around an expression calls some networks, where it can read them."""
        function = self.project.function_of(module, node)
        found: dict[Groups, str] = {}
        for name in self._readable(module, function):
            groups = self.groups(module, name)
            text = path(name)
            if text is not None and groups & wanted and not groups & frozenset().union(*found):
                found[groups] = text
        return list(found.values())

    def _readable(self, module: Module, function: Function) -> Iterator[ast.expr]:
        """Yield the parameters that a function reads, then its attributes of ``self``, then names of the file."""
        tree, scopes = module.tree, module.scopes
        names = [n for n in tree.nodes(ast.Name) if isinstance(n.ctx, ast.Load)]
        own = [n for n in names if self.project.function_of(module, n) is function]
        given = set(function.parameters.names) if function.node is not None else set()
        yield from (n for n in own if n.id in given)
        if function.receiver is not None:
            for attribute in tree.nodes(ast.Attribute):
                if function.is_receiver(attribute.value) and isinstance(attribute.ctx, ast.Load):
                    if self.project.function_of(module, attribute) is function:
                        yield attribute
        yield from (n for n in own if scopes.owner(n) is function.scope)
        yield from (n for n in own if isinstance(scopes.owner(n), ast.Module))

    def method_calls(self, name: str) -> list[tuple[Module, ast.Call]]:
        """Return the calls ``x.name(...)`` of the project."""
        return self.optimizers.method_calls(name)

    def owners(self, module: Module, node: ast.expr) -> Groups:
        """Return the names of what an expression takes parameters from."""
        found = (self.groups(module, base) for base in bases(module, node, set()))
        return frozenset().union(*found)

    def made_here(self, module: Module, optimizer: ast.expr) -> list[ast.Call]:
        """Return the calls that make an optimizer, where they stand in one function."""
        calls = [optimizer] if isinstance(optimizer, ast.Call) else []
        owner = module.scopes.owner(optimizer) if isinstance(optimizer, ast.Name) else None
        if owner is not None and isinstance(optimizer, ast.Name):
            values = (bound_value(module, b) for b in module.scopes.bindings(owner, optimizer.id))
            calls += [value for value in values if isinstance(value, ast.Call)]
        return calls

    def trained(self, module: Module, optimizer: ast.expr) -> Groups:
        """Return the names of the networks whose parameters the calls get that make an optimizer."""
        calls = self.made_here(module, optimizer)
        given = [a for c in calls for a in all_given(c)]
        found = {(module, base) for node in given for base in bases(module, node, set())}
        for node in given:  # of a helper that sorts them into groups
            for part in ast.walk(node):
                for callee in self.project.callees(part) if isinstance(part, ast.Call) else ():
                    scope = callee.scope
                    found |= {(callee.module, base) for base in bases(callee.module, scope, set())}
        return frozenset().union(*(self.groups(where, node) for where, node in found))

    def clips(self) -> Iterator[tuple[Module, ast.Call]]:
        """Yield the calls that clip gradients, of torch or of `apex.fp16_utils`."""
        for module, call in self.project.nodes(ast.Call):
            name = self.project.external(module, call.func) or ""
            of_torch = name.startswith("torch.nn.utils.") and "clip_grad_" in name
            if of_torch or self.fp16_name(module, call.func) == "clip_grad_norm":
                yield module, call
