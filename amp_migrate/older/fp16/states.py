"""The state of an `FP16_Optimizer` in checkpoints, written as that of the optimizer beside that of today's amp."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import path
from amp_migrate.facts.stand_ins import ALIAS
from amp_migrate.older.found import Found
from amp_migrate.older.fp16.training import Fp16
from amp_migrate.project import Module

_KEY = "amp"
_OLD = (
    "checkpoints written by FP16_Optimizer hold a state of its own here: what the optimizer of torch loads is their "
    "`optimizer_state_dict`"
)
_UNSAVED = "the loss scale was part of this state, and that of the GradScaler is not saved: after a resume it starts anew"


def write_states(training: Fp16, found: Found, dynamic: bool) -> None:
    """Save and load the loss scale beside the optimizer, where it moves and both are seen."""
    saves = _of(training, found, "state_dict")
    loads = _of(training, found, "load_state_dict")
    wanted = dynamic and bool(saves)
    followed = all(_entry(m, c) for m, c in saves) and all(_base(m, c) for m, c in loads)
    free = not any(_has_key(module) for module, _ in (*saves, *loads))
    for module, call in saves:
        sheet = training.sheets[module]
        if wanted and followed and free:
            sheet.put(call, f'{sheet.text(call)}, "{_KEY}": {ALIAS}.state_dict()')
        elif wanted:
            sheet.say(call, _UNSAVED, migrated=False)
    for module, call in loads:
        sheet = training.sheets[module]
        statement = sheet.tree.statement(call)
        if wanted and followed and free and sheet.tree.stands_alone(statement):
            more = f'{ALIAS}.load_state_dict({_base(module, call)}["{_KEY}"])'
            sheet.put(statement, f"{sheet.text(call)}; {more}")
        sheet.say(call, _OLD, migrated=False)


def _of(training: Fp16, found: Found, method: str) -> list[tuple[Module, ast.Call]]:
    return [
        (module, call)
        for module, call in found.method_calls(method)
        if isinstance(call.func, ast.Attribute)
        and found.groups(module, call.func.value) & training.groups
    ]


def _entry(module: Module, call: ast.Call) -> bool:
    """Tell whether a state is an entry of a dictionary, on one line."""
    tree = module.tree
    return isinstance(tree.parent(call), ast.Dict) and call.lineno == call.end_lineno


def _base(module: Module, call: ast.Call) -> str | None:
    """Return the dictionary out of which a statement loads a state."""
    statement = module.tree.statement(call)
    alone = isinstance(statement, ast.Expr) and statement.value is call and len(call.args) == 1
    held = call.args[0] if alone else None
    return path(held.value) if isinstance(held, ast.Subscript) else None


def _has_key(module: Module) -> bool:
    return module.tree.says(_KEY)
