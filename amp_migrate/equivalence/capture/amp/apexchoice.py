"""Which apex a recorded program gets: the installed one, or the reference implementation."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from amp_migrate.equivalence.capture.amp import repairs
from amp_migrate.equivalence.capture.config import CaptureConfig
from amp_migrate.equivalence.capture.imports import ImportHooks


def offer_apex(
    hooks: ImportHooks,
    config: CaptureConfig,
    notes: dict[str, Any],
    attach: Callable[[ModuleType], None],
    others: Mapping[str, Callable[[ModuleType], None]],
) -> None:
    """Answer ``import apex`` by `config.apex`: "auto", "installed" or "reference".

    `attach` gets apex.amp, and what `others` has under their names further modules.

    Raises ImportError in the program where "installed" finds no apex with amp.
    """
    on_cpu = config.device == "cpu"

    def provide(spec: ModuleSpec | None) -> ModuleType | None:
        folder = _folder(spec)
        genuine = folder is not None and (folder / "amp" / "__init__.py").is_file()
        if folder is not None and not genuine:
            notes["apex_unrelated"] = str(folder)
        if config.apex == "installed" and not genuine:
            raise ImportError("no installed apex has apex.amp")
        if genuine and config.apex != "reference":
            notes["apex"] = f"installed Apex ({folder})"
            repairs.before_import(on_cpu)
            return None
        return _reference(config, notes, {"apex.amp": attach, **others})

    def repaired(amp: ModuleType) -> None:
        repairs.after_import(amp, on_cpu)
        attach(amp)

    hooks.provide("apex", provide)
    hooks.after("apex.amp", repaired)
    for name, follow in others.items():
        hooks.after(name, follow)


def _reference(
    config: CaptureConfig,
    notes: dict[str, Any],
    attached: Mapping[str, Callable[[ModuleType], None]],
) -> ModuleType:
    reference = importlib.import_module("amp_migrate.equivalence.reference")
    reference.install(device=config.device, casts=config.casts and not config.plain_fp32)
    notes["apex"] = str(reference.LABEL)
    for name, attach in attached.items():
        attach(sys.modules[name])
    return sys.modules["apex"]


def _folder(spec: ModuleSpec | None) -> Path | None:
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    return Path(spec.origin).parent if spec.origin else None
