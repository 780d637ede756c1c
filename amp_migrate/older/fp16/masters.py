"""Master weights kept by hand, `prep_param_lists` and what goes with it: with fp32 weights they are the weights themselves.

Loss and gradients stay scaled as the program does it; only the casts are those of today's amp.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from amp_migrate.facts.constants import is_false
from amp_migrate.facts.paths import path
from amp_migrate.facts.stand_ins import ALIAS
from amp_migrate.older.found import Found, Groups
from amp_migrate.older.fp16.clips import write_clips
from amp_migrate.older.fp16.copies import refuse_apart
from amp_migrate.older.fp16.halves import write_halves
from amp_migrate.older.sheet import ALONE, Sheet, Sheets, lines_of
from amp_migrate.older.words import MASTERS, Words
from amp_migrate.older.wraps import named
from amp_migrate.plan.cannot import Unwritable
from amp_migrate.project import Module

_COPIES = ("model_grads_to_master_grads", "master_params_to_model_params")
_KNOWN = frozenset(
    {
        *_COPIES,
        "prep_param_lists",
        "network_to_half",
        "FP16Model",
        "convert_network",
        "BN_convert_float",
        "to_python_float",
        "clip_grad_norm",
    }
)
_PREPARED = ("model", "flat_master")
_COPIED = ("model_params", "master_params", "flat_master")


@dataclass(eq=False)
class Masters:
    """A call of `prep_param_lists`, and the calls that copy between its lists."""

    module: Module
    call: ast.Call
    copies: list[tuple[Module, ast.Call, str]] = field(default_factory=list)
    networks: Groups = frozenset()
    sheets: Sheets = field(default_factory=Sheets)

    @property
    def words(self) -> Words:
        """How it is spoken of."""
        return MASTERS

    @property
    def places(self) -> list[tuple[str, int]]:
        """The line of the call, then those of the copies."""
        own = [(self.module, self.call), *((m, c) for m, c, _ in self.copies)]
        return lines_of(own)

    def describe(self, found: Found) -> dict[Module, Sheet]:
        """Return its files with it written as today's amp. Raises `Unwritable`."""
        self.sheets = Sheets()
        _refuse_other_uses(self, found)
        network = _network(self)
        self.networks = found.groups(self.module, network)
        write_halves(found, self.networks, self.sheets, self, "this network")
        for module, call, name in self.copies:
            _copy(self.sheets[module], call, name)
        refuse_apart(self, found)
        write_clips(self.sheets, found)
        _prepare(self, network)
        return self.sheets


def masters(found: Found) -> list[Masters]:
    """Return the calls of `prep_param_lists`, each with the copies of its file; of all files, where there is one."""
    result: list[Masters] = []
    copies: list[tuple[Module, ast.Call, str]] = []
    for module, node, name in found.fp16_uses():
        call = module.tree.call_of(node)
        if call is not None:
            if name == "prep_param_lists":
                result.append(Masters(module, call))
            elif name in _COPIES:
                copies.append((module, call, name))
    for one in result:
        one.copies = [c for c in copies if len(result) == 1 or c[0] is one.module]
    return result


def _refuse_other_uses(training: Masters, found: Found) -> None:
    for module, node, name in found.fp16_uses():
        call = module.tree.call_of(node)
        if name not in _KNOWN or call is None:
            raise Unwritable(
                module,
                node,
                f"{name} is used beside master weights that are kept by hand, and goes another way",
                "write amp.initialize and amp.scale_loss in place of all of apex.fp16_utils, then run again",
            )
        if name in _COPIES and not any(call is other for _, other, _ in training.copies):
            if module is training.module:
                continue
            raise Unwritable(
                module,
                node,
                "several networks have master weights here, and it is not known whose this copies",
                "call it in the file that calls prep_param_lists, then run again",
            )


def _network(training: Masters) -> ast.expr:
    given = named(training.sheets[training.module], training.call, _PREPARED)
    flat = given.get("flat_master")
    whole = flat is None or is_false(flat)
    if "model" not in given or not whole or path(given["model"]) is None:
        raise Unwritable(
            training.module,
            training.call,
            "flat_master keeps all weights in one tensor, or the network has no name here",
            "leave out flat_master, and give prep_param_lists a network by its name, then run again",
        )
    return given["model"]


def _prepare(training: Masters, network: ast.expr) -> None:
    """Let both lists be that of the weights, and AMP be on for the network."""
    sheet = training.sheets[training.module]
    statement = sheet.tree.statement(training.call)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    parts = target.elts if isinstance(target, ast.Tuple | ast.List) else []
    names = [text for part in parts if (text := path(part)) is not None]
    alone = isinstance(statement, ast.Assign) and statement.value is training.call
    if not alone or len(names) != 2 or not sheet.tree.stands_alone(statement):
        raise Unwritable(
            training.module,
            training.call,
            "the two lists are not assigned to two names in a statement of its own",
            ALONE,
        )
    text = sheet.text(network)
    values = f"[param for param in {text}.parameters() if param.requires_grad]"
    on = f'{ALIAS}.initialize({text}, opt_level="O2")'
    sheet.put(statement, f"{names[0]} = {names[1]} = {values}; {on}")
    sheet.say(training.call, "both lists are that of the weights, which stay fp32")


def _copy(sheet: Sheet, call: ast.Call, name: str) -> None:
    given = named(sheet, call, _COPIED)
    statement = sheet.tree.statement(call)
    alone = (
        isinstance(statement, ast.Expr)
        and statement.value is call
        and sheet.tree.stands_alone(statement)
    )
    if not alone or "flat_master" in given:
        raise Unwritable(
            sheet.module, call, f"{name} shares its line, or copies flat masters", ALONE
        )
    sheet.drop(statement)
    what = "gradients" if name == _COPIES[0] else "weights"
    sheet.say(call, f"goes: the {what} of the masters are those of the network")


def every(found: Found) -> Iterator[Masters]:
    """Yield the trainings with master weights by hand, where nothing else drives them."""
    if not any(name == "FP16_Optimizer" for _, _, name in found.fp16_uses()):
        yield from masters(found)
