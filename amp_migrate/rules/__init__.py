"""The rules: one module each, found by its name."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amp_migrate.rules.base import Rule


@cache
def modules() -> tuple[ModuleType, ...]:
    """Return the rule modules in order of their codes."""
    found = pkgutil.walk_packages(__path__, f"{__name__}.")
    names = {m.name.rpartition(".")[2]: m.name for m in found}
    rules = sorted(name for name in names if name.startswith("amp"))
    return tuple(importlib.import_module(names[name]) for name in rules)


@cache
def rules() -> tuple[Rule, ...]:
    """Return every rule with its documentation, and the reasons to leave code, in order of their codes."""
    from amp_migrate.rules import enabling, left, unenabled

    own = (replace(module.RULE, doc=module.__doc__ or "") for module in modules())
    return (*own, *enabling.RULES, *unenabled.RULES, *left.RULES)


def __getattr__(name: str) -> tuple[Rule, ...]:
    if name == "RULES":
        return rules()
    raise AttributeError(name)
