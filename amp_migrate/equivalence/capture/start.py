"""Prepare a process of a recorded run: paths, seeds, and what to do once torch is imported."""

from __future__ import annotations

import random
import sys
from types import ModuleType

from amp_migrate.equivalence.capture import crash
from amp_migrate.equivalence.capture.config import CaptureConfig
from amp_migrate.equivalence.capture.imports import ImportHooks
from amp_migrate.equivalence.capture.standins import shims
from amp_migrate.equivalence.capture.standins.stubs import Stubs


def start(config_path: str) -> None:
    """Begin: called by sitecustomize, before any line of the program."""
    config = CaptureConfig.read(config_path)
    crash.watch(config.record_dir, config.roots)
    move_import_paths(config.roots)
    random.seed(config.seed)
    if config.stubs:
        Stubs(config.stubs).install()
    hooks = ImportHooks()
    hooks.install()

    def with_torch(module: ModuleType) -> None:
        # torch is needed below, and must not be imported for processes that never use it.
        from amp_migrate.equivalence.capture.session import install

        install(config, hooks)

    def with_numpy(module: ModuleType) -> None:
        module.random.seed(config.seed)

    hooks.after("numpy", with_numpy)
    hooks.after("torch", with_torch)
    hooks.before("apex", "torch")
    for shim in config.shims:
        shims.install(shim, hooks)


def move_import_paths(roots: tuple[tuple[str, str], ...]) -> None:
    """Point import paths and editable installs of the original project to its copy."""
    sys.path[:] = [_moved(entry, roots) for entry in sys.path]
    for name, module in list(sys.modules.items()):
        if not name.startswith("__editable__"):
            continue
        mapping = vars(module).get("MAPPING")
        if isinstance(mapping, dict):
            mapping.update({key: _moved(path, roots) for key, path in mapping.items()})


def _moved(entry: str, roots: tuple[tuple[str, str], ...]) -> str:
    for old, new in roots:
        if entry == old or entry.startswith(old + "/"):
            return new + entry[len(old) :]
    return entry
