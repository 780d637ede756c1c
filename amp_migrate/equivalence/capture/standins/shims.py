"""What stands in for one name of a module, with ``--shim``."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from amp_migrate.equivalence.capture.imports import ImportHooks
from amp_migrate.equivalence.capture.patching import put


def install(text: str, hooks: ImportHooks) -> None:
    """Set ``module:attr`` to what ``file:object`` holds; a module that is not there is made."""
    target, _, source = text.partition("=")
    module_name, _, attribute = target.partition(":")
    path, _, name = source.rpartition(":")

    def replace(module: ModuleType) -> None:
        held = vars(_load(Path(path)))
        if name not in held:
            raise ImportError(f"--shim {target}: {path} has no {name}")
        put(module, attribute, held[name])

    def make_missing(spec: ModuleSpec | None) -> ModuleType | None:
        return ModuleType(module_name) if spec is None else None

    parts = module_name.split(".")
    for depth in range(1, len(parts)):
        _package_if_missing(".".join(parts[:depth]), hooks)
    hooks.provide(module_name, make_missing)
    hooks.after(module_name, replace)


def _package_if_missing(name: str, hooks: ImportHooks) -> None:
    def make(spec: ModuleSpec | None) -> ModuleType | None:
        if spec is not None:
            return None
        package = ModuleType(name)
        package.__path__ = []
        return package

    hooks.provide(name, make)


def _load(path: Path) -> ModuleType:
    name = f"amp_migrate_shim_{path.stem}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load the shim file {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
