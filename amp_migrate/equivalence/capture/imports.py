"""Run something right after a module is imported, or provide a module that is not there."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from types import ModuleType

AfterImport = Callable[[ModuleType], None]
Provider = Callable[[importlib.machinery.ModuleSpec | None], ModuleType | None]


class _ReadyMade(Loader):
    """A loader for a module object that exists already."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        return None


class ImportHooks(MetaPathFinder):
    """A finder that goes first on ``sys.meta_path``.

    A provider is asked with what the other finders found (or None) and answers with a module,
    or with None to let theirs be imported.
    """

    def __init__(self) -> None:
        self._after: dict[str, list[AfterImport]] = {}
        self._providers: dict[str, Provider] = {}
        self._before: dict[str, str] = {}
        self._busy: set[str] = set()

    def install(self) -> None:
        """Put this finder first."""
        sys.meta_path.insert(0, self)

    def after(self, name: str, callback: AfterImport) -> None:
        """Call `callback` with module `name` once it is imported (at once if it is already)."""
        if name in sys.modules:
            callback(sys.modules[name])
        else:
            self._after.setdefault(name, []).append(callback)

    def provide(self, name: str, provider: Provider) -> None:
        """Ask `provider` for module `name` when it is first imported."""
        self._providers[name] = provider

    def before(self, name: str, other: str) -> None:
        """Import module `other` before module `name`, which imports it itself."""
        self._before[name] = other

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find `fullname` with the other finders and attach what was asked for."""
        if fullname in self._before:
            importlib.import_module(self._before.pop(fullname))
        wanted = fullname in self._after or fullname in self._providers
        if not wanted or fullname in self._busy:
            return None
        self._busy.add(fullname)
        try:
            spec = self._find_elsewhere(fullname, path, target)
            provider = self._providers.get(fullname)
            module = provider(spec) if provider is not None else None
        finally:
            self._busy.discard(fullname)
        if module is not None:
            # Import would load the spec of a module that it finds there, not this one.
            sys.modules.pop(fullname, None)
            spec = importlib.machinery.ModuleSpec(fullname, _ReadyMade(module), is_package=True)
        if spec is not None and spec.loader is not None:
            self._attach(spec.loader, self._after.pop(fullname, []))
        return spec

    def _find_elsewhere(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> importlib.machinery.ModuleSpec | None:
        for finder in sys.meta_path:
            if finder is self:
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                return spec
        return None

    @staticmethod
    def _attach(loader: Loader, callbacks: list[AfterImport]) -> None:
        original = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            original(module)
            for callback in callbacks:
                callback(module)

        loader.exec_module = exec_module  # type: ignore[method-assign]
