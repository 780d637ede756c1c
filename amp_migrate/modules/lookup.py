"""What names mean across files, by imports, definitions and plain aliases alone."""

from __future__ import annotations

import ast
import builtins
import posixpath
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType

from amp_migrate.facts.closure import closure
from amp_migrate.facts.paths import tail
from amp_migrate.facts.scopes import ScopeNode, assigned
from amp_migrate.modules.bases import only_bases
from amp_migrate.modules.itself import asked_of, imports
from amp_migrate.modules.layout import Folder, Layout
from amp_migrate.modules.model import Class, Function, Module

Meaning = Module | Folder | Function | Class | str
_DEEPEST = 100
# What a star import of Apex brings that other star imports cannot be asked about.
_STARRED = {f"apex.{name}" for name in ("amp", "fp16_utils", "optimizers", "parallel", "RNN")}
_STARRED |= {
    f"apex.amp.{name}"
    for name in ("initialize", "scale_loss", "master_params", "state_dict", "load_state_dict")
}
_STARRED |= {
    f"apex.optimizers.Fused{name}" for name in ("Adam", "LAMB", "SGD", "NovoGrad", "Adagrad")
}
_STARRED |= {f"apex.normalization.Fused{name}Norm" for name in ("Layer", "RMS")}
_STARRED |= {
    f"apex.parallel.{name}"
    for name in ("DistributedDataParallel", "convert_syncbn_model", "SyncBatchNorm", "LARC")
}


class Lookup:
    """Follows names to definitions: imports, re-exports, star imports, ``name = other.name``.

    Every answer lists all meanings that a name may have (`try` and `except` may import it differently);
    a dotted string is something outside the project. No answer means a plain variable.
    """

    def __init__(
        self,
        modules: Mapping[str, Module],
        layout: Layout,
        meant: Mapping[tuple[str, str], str] = MappingProxyType({}),
    ) -> None:
        """Start; `meant` says what a name that nothing in the file of a path binds stands for."""
        self.modules = modules
        self.layout = layout
        self.meant = meant
        self._names: dict[tuple[Module, ScopeNode, str], tuple[Meaning, ...]] = {}
        self._depth: dict[tuple[Module, ScopeNode, str], int] = {}
        self._cycle = sys.maxsize
        self._partial: dict[tuple[Module, ScopeNode, str], tuple[Meaning, ...]] = {}
        self._nesting = 0
        self._stars: dict[Module, list[Module]] = {}
        self._known: dict[ast.expr, tuple[Meaning, ...]] = {}
        self._linked = False

    def expression(self, module: Module, node: ast.expr) -> tuple[Meaning, ...]:
        """Return what a Name, an Attribute or an import call means at its place."""
        known = self._known.get(node)
        if known is not None:
            return known
        if self._nesting > _DEEPEST:
            return ()
        self._nesting += 1
        found = self._expression(module, node)
        self._nesting -= 1
        if self._linked and not self._nesting and not self._depth:
            self._known[node] = found
        return found

    def _expression(self, module: Module, node: ast.expr) -> tuple[Meaning, ...]:
        if isinstance(node, ast.Name):
            return self.seen_from(module, module.scopes.scope_of(node), node.id)
        if isinstance(node, ast.Attribute):
            found: list[Meaning] = []
            for base in self.expression(module, node.value):
                found += self.member(base, node.attr)
            return _distinct(found)
        if isinstance(node, ast.IfExp):
            both = (*self.expression(module, node.body), *self.expression(module, node.orelse))
            return _distinct(both)
        if isinstance(node, ast.Call):
            return self._import_call(module, node)
        return ()

    def link(self) -> None:
        """Give every class its bases, and every base its children; what names mean stays from then on."""
        link_classes(self.modules.values(), self)
        self._linked = True

    @cached_property
    def _only_bases(self) -> frozenset[Class]:
        """The classes that programs only derive from."""
        return only_bases(self.modules.values(), self)

    def made(self, classes: list[Class]) -> list[Class]:
        """Return those of some classes that objects may be of: not the ones that programs only derive from, if others are left."""
        if len(classes) < 2:
            return classes
        return [cls for cls in classes if cls not in self._only_bases] or classes

    def called(self, module: Module, call: ast.Call) -> str:
        """Return the last name of what a call calls, by which it was imported; "" where it has none."""
        outside = [m for m in self.expression(module, call.func) if isinstance(m, str)]
        return outside[0].rpartition(".")[2] if outside else tail(call)

    def seen_from(self, module: Module, scope: ScopeNode, name: str) -> tuple[Meaning, ...]:
        """Return what `name` means in `scope`."""
        owner = module.scopes.find(scope, name)
        if owner is None:
            meant = self.meant.get((module.path, name))
            return (meant,) if meant is not None else self._starred(module, name)
        return self.bound(module, owner, name)

    def bound(self, module: Module, scope: ScopeNode, name: str) -> tuple[Meaning, ...]:
        """Return what `name` is bound to in the very scope `scope`."""
        key = (module, scope, name)
        known = self._names.get(key, self._partial.get(key))
        if known is not None:
            return known
        if key in self._depth:
            self._cycle = min(self._cycle, self._depth[key])
            return ()
        depth = self._depth[key] = len(self._depth)
        if depth > _DEEPEST:
            del self._depth[key]
            self._cycle = 0
            return ()
        found: list[Meaning] = []
        for binding in module.scopes.bindings(scope, name):
            found += self._binding(module, binding)
        del self._depth[key]
        if self._cycle >= depth:
            # Otherwise the answer leans on a name that is still being followed: it may be partial.
            self._names[key] = _distinct(found)
            self._cycle = sys.maxsize
        else:
            self._partial[key] = _distinct(found)
        if depth == 0:
            self._cycle = sys.maxsize
            self._partial.clear()
        return _distinct(found)

    def member(self, meaning: Meaning, name: str) -> tuple[Meaning, ...]:
        """Return what ``meaning.name`` means."""
        if isinstance(meaning, str):
            return (f"{meaning}.{name}",)
        if isinstance(meaning, Folder):
            return self._entry(self.layout.entry(meaning.path, [name]))
        if isinstance(meaning, Module):
            return self._of_module(meaning, name)
        if isinstance(meaning, Class):
            return self._of_class(meaning, name)
        return ()

    def imported(self, module: Module, alias: ast.alias) -> tuple[Meaning, ...]:
        """Return what the name bound by `alias` means."""
        statement = module.tree.parents.get(alias)
        if isinstance(statement, ast.ImportFrom):
            source = self.source(module, statement)
            if source is None:
                return (f"{statement.module}.{alias.name}",) if not statement.level else ()
            return self.member(source, alias.name)
        name = alias.name if alias.asname else alias.name.partition(".")[0]
        return self._entry(self._absolute(module, name)) or (name,)

    def source(self, module: Module, statement: ast.ImportFrom) -> Module | Folder | None:
        """Return the module of the project that a ``from`` statement reads; None if it is not here."""
        if statement.level:
            where = self.layout.relative(module.path, statement.level, statement.module or "")
        else:
            where = self._absolute(module, statement.module or "")
        return self.modules.get(where) if isinstance(where, str) else where

    def _absolute(self, module: Module, dotted: str) -> str | Folder | None:
        """Return what an import in a file reads: the file itself, where that has all that is asked of what is imported."""
        found = self.layout.absolute(module.path, dotted)
        stem = posixpath.basename(module.path).removesuffix(".py")
        if found is not None or dotted.rpartition(".")[2] != stem:
            return found
        asked = set(asked_of(module, dotted))
        top = module.tree.module
        own = asked and all(
            any(not isinstance(b, ast.alias) for b in module.scopes.bindings(top, name))
            for name in asked
        )
        return module.path if own else None

    def starred_from(self, module: Module) -> list[Module]:
        """Return the modules of the project whose names `module` has by star imports, through others too."""
        if module not in self._stars:
            self._stars[module] = closure([module], self._star_sources)[1:]
        return self._stars[module]

    def _star_sources(self, reader: Module) -> Iterator[Module]:
        sources = (self.source(reader, statement) for statement in reader.scopes.stars)
        return (source for source in sources if isinstance(source, Module))

    def _binding(self, module: Module, binding: ast.AST) -> tuple[Meaning, ...]:
        if isinstance(binding, ast.alias):
            return self.imported(module, binding)
        if isinstance(binding, ast.ClassDef):
            return (module.classes[binding],) if binding in module.classes else ()
        if binding in module.functions:
            return (module.functions[binding],)
        if isinstance(binding, (ast.Name, ast.Subscript)):
            value = assigned(module.tree, binding)
            return self.expression(module, value) if value is not None else ()
        return ()

    def _of_module(self, module: Module, name: str) -> tuple[Meaning, ...]:
        top = module.tree.module
        if module.scopes.bindings(top, name):
            found = self.bound(module, top, name)
        else:
            found = self._starred(module, name)
        if not found and self.layout.package(module.path):
            folder = module.path.removesuffix("__init__.py").rstrip("/")
            return self._entry(self.layout.entry(folder, [name]))
        return found

    def _of_class(self, cls: Class, name: str) -> tuple[Meaning, ...]:
        for base in cls.mro():
            if name in base.methods:
                return (base.methods[name],)
            found = self.bound(base.module, base.node, name)
            if found:
                return found
        return ()

    def _starred(self, module: Module, name: str) -> tuple[Meaning, ...]:
        if not module.scopes.stars or name.startswith("_"):
            return ()
        found: list[Meaning] = []
        for source in self.starred_from(module):
            found += self.bound(source, source.tree.module, name)
        if found or hasattr(builtins, name):
            return _distinct(found)
        outside = [
            f"{statement.module}.{name}"
            for reader in (module, *self.starred_from(module))
            for statement in reader.scopes.stars
            if not statement.level and self.source(reader, statement) is None
        ]
        known = [dotted for dotted in outside if dotted in _STARRED]
        if known or len(outside) != 1 or outside[0].startswith("apex."):
            return tuple(known)
        return tuple(outside)

    def _import_call(self, module: Module, node: ast.Call) -> tuple[Meaning, ...]:
        name = imports(node)
        if name is None:
            return ()
        return self._entry(self._absolute(module, name)) or (name,)

    def _entry(self, where: str | Folder | None) -> tuple[Meaning, ...]:
        if isinstance(where, Folder):
            return (where,)
        found = self.modules.get(where) if where is not None else None
        return (found,) if found is not None else ()


def link_classes(modules: Iterable[Module], lookup: Lookup) -> None:
    """Give every class its bases, and every base its children."""
    classes = [cls for module in modules for cls in module.classes.values()]
    for cls in classes:
        external: list[str] = []
        for node in cls.node.bases:
            meanings = lookup.expression(cls.module, node)
            known = [item for item in meanings if isinstance(item, Class) and item is not cls]
            cls.bases += known
            outside = [item for item in meanings if isinstance(item, str)]
            if not known or outside:
                external.append(outside[0] if outside else ast.unparse(node))
        cls.external_bases = tuple(external)
        for base in cls.bases:
            base.children.append(cls)
    for cls in classes:
        cls.settle()


def _distinct(meanings: Iterable[Meaning]) -> tuple[Meaning, ...]:
    return tuple(dict.fromkeys(meanings))
