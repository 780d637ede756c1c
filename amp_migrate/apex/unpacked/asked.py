"""Options of `amp.initialize` that only a run can tell: what is asked of the mapping that holds them."""

from __future__ import annotations

import ast
from collections.abc import Collection

from amp_migrate.apex.sites import Site
from amp_migrate.apex.unpacked.entries import entries
from amp_migrate.apex.unpacked.writes import Entries
from amp_migrate.facts.paths import is_place
from amp_migrate.plan.cannot import Cannot
from amp_migrate.project import Project

_ALL = ("opt_level", "enabled", "loss_scale")


def unpacked(
    project: Project, site: Site, mapping: ast.expr, options: Collection[str]
) -> tuple[Entries | None, tuple[str, ...]]:
    """Return the arguments that an initialize unpacks from a mapping, else None and those to ask for at run time.

    Raises `Cannot` where the mapping cannot be asked, or holds what is none of the `options`.
    """
    held = entries(project, site.module, mapping, site.call)
    if held is not None and set(held) <= set(options):
        return held, ()
    if held is None and _may_be_asked(mapping):
        return None, _ALL
    text = site.module.tree.segment(mapping)
    raise Cannot(
        "AMP909",
        *site.at,
        f"amp.initialize takes its options from `{text}`, and not all that it holds can be read here",
        "write the options into the call of amp.initialize, or into one dictionary above it, then run again",
    )


def is_partly_unread(project: Project, site: Site, mapping: ast.expr) -> bool:
    """Tell whether a variable, attribute or item holds a mapping of which not all can be read, or an entry of another one."""
    return _may_be_asked(mapping) and entries(project, site.module, mapping, site.call) is None


def _may_be_asked(mapping: ast.expr) -> bool:
    """Tell whether an expression gives the same mapping again: a place, or what a place has under a constant key, as ``options.get("amp", {})``."""
    if not isinstance(mapping, ast.Call) or not isinstance(mapping.func, ast.Attribute):
        return is_place(mapping)
    key, *default = mapping.args or [mapping]
    gets = mapping.func.attr == "get" and len(default) < 2 and not mapping.keywords
    fixed = all(isinstance(node, ast.Dict) and not node.keys for node in default)
    return gets and fixed and isinstance(key, ast.Constant) and _may_be_asked(mapping.func.value)


def remark(mapping: str) -> str:
    """Return what is said of a mapping that is asked at run time."""
    read = "opt_level, enabled and loss_scale are read"
    return f"of `{mapping}` {read}: give GradScaler what else it may hold, as max_loss_scale"
