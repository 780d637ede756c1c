"""The state of the GradScaler in checkpoints: saved beside that of the optimizer, and loaded where there is one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from amp_migrate.enable.described.describe import ALIAS
from amp_migrate.enable.described.draft import Draft
from amp_migrate.enable.described.trainings import Training
from amp_migrate.facts.constants import string
from amp_migrate.facts.paths import path
from amp_migrate.project import Module
from amp_migrate.training.objects import Objects
from amp_migrate.training.optimizers import Optimizers

KEYS = ("scaler", "grad_scaler", "amp_scaler")


@dataclass(frozen=True, eq=False)
class Place:
    """Where a program saves or loads the state of an optimizer; `node` is the call."""

    module: Module
    node: ast.Call


class Checkpoints:
    """Finds where trainings save and load the state of their optimizers, and adds that of the GradScaler."""

    def __init__(self, optimizers: Optimizers, objects: Objects) -> None:
        self._optimizers = optimizers
        self._calls = objects.method_calls

    def write(self, training: Training, drafts: dict[Module, Draft]) -> list[tuple[Place, str]]:
        """Write the state into drafts; return the places with what is said about them."""
        saves = list(self._saves(training))
        if not saves:
            return []
        key = next(k for k in KEYS if not any(_has_key(place, k) for place, _ in saves))
        told = []
        for place, holder in saves:
            draft = drafts.setdefault(place.module, Draft(place.module.tree))
            if isinstance(holder, ast.Dict):
                _add(holder, place.node, key, draft)
            else:
                mapping = place.module.tree.segment(holder.value)
                quote = _quote(place.module, holder.slice)
                text = f"{mapping}[{quote}{key}{quote}] = {ALIAS}.state_dict()"
                draft.below(place.module.tree.statement(place.node), text)
            told.append((place, f"the checkpoint gets the state of the GradScaler as `{key}`"))
        for place, held in self._loads(training):
            tree = place.module.tree
            statement = tree.statement(place.node)
            base = tree.segment(held.value)
            quote = _quote(place.module, held.slice)
            named = f"{quote}{key}{quote}"
            draft = drafts.setdefault(place.module, Draft(tree))
            draft.below(
                statement,
                f"if {base}.get({named}):",
                f"{draft.step}{ALIAS}.load_state_dict({base}[{named}])",
            )
            told.append(
                (
                    place,
                    "a checkpoint with the state of a GradScaler gives it back; older ones load as before",
                )
            )
        return told

    def _saves(self, training: Training) -> Iterator[tuple[Place, ast.Dict | ast.Subscript]]:
        """Yield the calls whose result goes into a dictionary, the first for each, with what holds it."""
        seen: set[ast.AST | str] = set()
        for place in self._of(training, "state_dict"):
            tree = place.module.tree
            up = tree.parent(place.node)
            if isinstance(up, ast.Dict) and up not in seen:
                seen.add(up)
                yield place, up
            elif isinstance(up, ast.Assign) and isinstance(up.targets[0], ast.Subscript):
                target = up.targets[0]
                mapping = path(target.value) or ""
                if string(target.slice) is not None and mapping not in seen:
                    seen.add(mapping)
                    yield place, target

    def _loads(self, training: Training) -> Iterator[tuple[Place, ast.Subscript]]:
        """Yield the statements that load what stands in a dictionary, the first in each block."""
        seen: set[tuple[int, str]] = set()
        for place in self._of(training, "load_state_dict"):
            tree = place.module.tree
            statement = tree.statement(place.node)
            held = place.node.args[0] if place.node.args else None
            alone = isinstance(statement, ast.Expr) and statement.value is place.node
            if not alone or not isinstance(held, ast.Subscript) or path(held.value) is None:
                continue
            block = (id(tree.block(statement)), tree.segment(held.value))
            if string(held.slice) is not None and block not in seen:
                seen.add(block)
                yield place, held

    def _of(self, training: Training, method: str) -> Iterator[Place]:
        for module, call in self._calls.get(method, ()):
            assert isinstance(call.func, ast.Attribute)
            held = self._optimizers.stepped(module, call.func.value)
            if any(optimizer in training.optimizers for optimizer in held):
                yield Place(module, call)


def _add(holder: ast.Dict, call: ast.Call, key: str, draft: Draft) -> None:
    """Write one more entry of a dictionary behind that of the optimizer, on a line of its own where those are."""
    index = next(n for n, value in enumerate(holder.values) if value is call)
    before = holder.keys[index]
    tree = draft.tree
    assert before is not None
    quote = tree.segment(before)[:1] if tree.segment(before)[:1] in "\"'" else '"'
    entry = f"{quote}{key}{quote}: {ALIAS}.state_dict()"
    line = tree.lines[before.lineno - 1]
    margin = tree.margin(before)
    own = not line[: tree.span(before).column].strip() and before.lineno != holder.lineno
    end = tree.span(call)[2:]
    draft.put(end, end, f",\n{margin}{entry}" if own else f", {entry}")


def _has_key(place: Place, key: str) -> bool:
    """Tell whether a function speaks of a key already."""
    return place.module.tree.says(key)


def _quote(module: Module, node: ast.expr) -> str:
    return module.tree.segment(node)[:1]
