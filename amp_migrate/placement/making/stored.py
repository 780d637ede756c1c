"""The tests that stay around ``network.amp = amp`` when it leaves those for AMP."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import partial

from amp_migrate.apex.sites import Site
from amp_migrate.facts.paths import calls_anything, defs, mentions, prefixes, uses
from amp_migrate.placement.making.creation import Creation
from amp_migrate.plan.cannot import Cannot
from amp_migrate.project import Project
from amp_migrate.project.order import in_branch, inside, levels
from amp_migrate.project.rounds import runs_before
from amp_migrate.scaler.routes.carriers import Stored


def kept_guards(project: Project, stored: Stored, creation: Creation) -> list[str]:
    """Return the tests, inner first, under which amp is stored and that the scaler is made outside of.

    Raises `Cannot` where the object or a test may change between the two places.
    """
    tree = stored.site.module.tree
    found: list[str] = []
    read = prefixes(stored.owner)
    for level in levels(tree, stored.statement):
        if level is stored.statement or inside(tree, creation.site.node, level):
            continue
        if inside(tree, creation.top, level):
            break
        if not isinstance(level, ast.If):
            raise _moved(stored, level)
        read |= uses(level.test)
        text = tree.segment(level.test)
        found.append(text if in_branch(tree, stored.statement, level.body) else f"not ({text})")
    runs = partial(runs_before, project, stored.site.function)
    for node in stored.site.function.own_nodes:
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete):
            if defs(node) & read and runs(creation.top, node) and runs(node, stored.statement):
                raise _moved(stored, node)
    return found


def made_at(stored: Stored, inits: Sequence[Site]) -> ast.stmt:
    """Return a statement that finds the scaler for an object made: that which stores amp, or one behind the initialize.

    Amp may be stored just in front of that: nothing asks the object for it between the two.
    """
    tree, last = stored.site.module.tree, stored.statement
    block = tree.block(last)
    site = next((s for s in inits if s.statement in block[block.index(last) + 1 :]), None)
    if site is None:
        return last
    between = block[block.index(last) + 1 : block.index(site.statement)]
    root = stored.owner.partition(".")[0]
    if any(mentions(stmt, root) or calls_anything(stmt) for stmt in between):
        return last
    for level in levels(tree, site.statement):
        beside = tree.block(level)
        if level is not beside[-1]:
            return beside[beside.index(level) + 1]
    return last


def _moved(stored: Stored, node: ast.AST) -> Cannot:
    return Cannot(
        "AMP909",
        stored.site.module,
        node,
        f"this needs the GradScaler of `{stored.owner}`, which is given amp only behind it",
        f"store amp on `{stored.owner}` before this, then run again",
    )
