"""Why a rewrite that was made is not used: it failed a check, or the user asked to leave a line of it alone."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath

from amp_migrate.apex.sites import Site
from amp_migrate.plan.cannot import Cannot
from amp_migrate.plan.model import (
    AddArgument,
    AddDecorator,
    AddImport,
    AddParameter,
    DropKeyword,
    Edit,
    Move,
    RenameKeyword,
    RenameParameter,
    Wrap,
)
from amp_migrate.project import Module, Project
from amp_migrate.protocol.faults import Place, Trouble
from amp_migrate.source.align import changes
from amp_migrate.source.mentions import skipped_lines

_BY_HAND = "remove the comment and run again, or migrate by hand what works with this line"
_WOULD = "migrated, this training would go wrong: {}"
_ADVICE = (
    "change the code so that gradients are touched only between the last backward and the step, or migrate it by "
    "hand and compare with `amp-migrate verify`"
)
_PUT_UNDER = (
    "put it under `with torch.cuda.amp.autocast(enabled=...):` with what turns Apex on, in a function other than the one "
    "that calls amp.initialize, then run again"
)
_CALL_UNDER = (
    "migrate it by hand: write `with torch.cuda.amp.autocast():` around the call of it in the program that initializes "
    "Apex, so that the other programs keep fp32"
)
_WITH_LOGITS = (
    "give F.binary_cross_entropy_with_logits what the sigmoid is given, in place of binary cross entropy on what the "
    "sigmoid gives, then run again"
)
_IN_SIGHT = "write what it does here (scale the loss, run the backward, clip, step) in place of the call, then run again"
_WITHOUT_IT = (
    "delete the step before the first backward, as it finds no gradients there, then run again"
)
_ONE_BACKWARD = (
    "run one backward for each step and change its gradients, or migrate it by hand: leave them multiplied by the loss "
    "scale until scaler.step() divides them, and compare with `amp-migrate verify`"
)
_ONCE = "give all that is trained here the same setting, or set it once, in front of amp.initialize, then run again"
_DROP_COPIES = (
    "write `torch.clear_autocast_cache()` behind what runs without gradients there, which does nothing as long as Apex "
    "casts, then run again"
)
_FIRST = "change what keeps Apex in the other programs that run this file, as their findings say, then run again"
_ADVICES = {
    Trouble.GRADIENTS: _ADVICE,
    Trouble.CASTS_MISSING: _PUT_UNDER,
    Trouble.CASTS_ADDED: _CALL_UNDER,
    Trouble.REFUSED_LOSS: _WITH_LOGITS,
    Trouble.OUT_OF_SIGHT: _IN_SIGHT,
    Trouble.TOO_EARLY: _WITHOUT_IT,
    Trouble.HELD_BACK: _FIRST,
    Trouble.KEPT: _ONE_BACKWARD,
    Trouble.CACHED: _DROP_COPIES,
    Trouble.SET_ANEW: _ONCE,
}
OPTED_OUT = "`# amp-migrate: skip` keeps this line, and Apex code that works together is migrated whole or not at all"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The rewrite of a file that is not used, and why.

    `line` is that of a comment that asks to skip it, or 0. `place` is where the training would go wrong, None where
    the text itself failed, and `program` are the files of the one in which it would, where that is known.
    """

    path: str
    reason: str
    line: int = 0
    place: Place | None = None
    trouble: Trouble = Trouble.GRADIENTS
    program: frozenset[str] = frozenset()

    @property
    def code(self) -> str:
        """The rule that reports it."""
        if self.place is not None:
            return "AMP913"
        return "AMP911" if self.line else "AMP910"


def edited_against_a_comment(before: str, after: str, edits: Iterable[Edit]) -> int | None:
    """Return the first line with ``# amp-migrate: skip`` that a rewrite changes, moves or removes."""
    skipped = sorted(skipped_lines(before))
    if not skipped:
        return None
    found = changes(before.split("\n"), after.split("\n"))
    edited = [range(change.start + 1, change.end + 1) for change in found]
    moved = [edit.span for edit in edits if isinstance(edit, Move)]
    edited += [range(span.line, span.end_line + 1) for span in moved]
    return next((line for line in skipped if any(line in lines for lines in edited)), None)


def edited_lines(edit: Edit) -> range:
    """Return the lines among which those are that an edit changes."""
    if isinstance(edit, AddImport):
        return range(0)
    if isinstance(edit, Wrap):
        return range(edit.first.line, edit.last.end_line + 1)
    if isinstance(edit, AddDecorator | AddParameter | RenameParameter):
        span = edit.function
    elif isinstance(edit, AddArgument | DropKeyword | RenameKeyword):
        span = edit.call
    else:
        span = edit.span
    return range(span.line, span.end_line + 1)


def refuse_skipped(found: list[Site]) -> None:
    """Raise `Cannot` for a unit with a use of Apex that a comment asks to skip."""
    for site in found:
        if site.span.line in skipped_lines(site.module.tree.text):
            raise Cannot("AMP911", *site.at, OPTED_OUT, _BY_HAND)


def refused_unit(found: list[Site], refusal: Refusal, project: Project) -> Cannot:
    """Say why a unit is left whose rewrite is not used."""
    site = next((s for s in found if s.module.path in refusal.program), found[0])
    if refusal.place is not None:
        advice = _ADVICES[refusal.trouble]
        message = _WOULD.format(refusal.reason)
        at = _statement(project, site, refusal)
        return Cannot("AMP913", *at, message, advice, program=refusal.program)
    if not refusal.line:
        advice = "report this to amp-migrate, and migrate this code by hand"
        reason = f"the rewrite of {PurePath(refusal.path).name} failed its check: {refusal.reason}"
        return Cannot("AMP910", *site.at, reason, advice)
    module, node = _at(project, refusal.path, refusal.line, site)
    return Cannot("AMP911", module, node, refusal.reason, _BY_HAND)


def _statement(project: Project, site: Site, refusal: Refusal) -> tuple[Module, ast.AST]:
    place = refusal.place
    if place is None or place.path not in project.modules:
        return site.module, site.node
    return _at(project, place.path, place.line, site)


def _at(project: Project, path: str, line: int, otherwise: Site) -> tuple[Module, ast.AST]:
    """Return the innermost statement of a file at a line, its decorators included."""
    module = project.modules[path]
    around = [
        node
        for node in ast.walk(module.tree.module)
        if isinstance(node, ast.stmt) and _begins(node) <= line <= (node.end_lineno or node.lineno)
    ]
    if not around:
        return otherwise.module, otherwise.node
    return module, max(around, key=lambda node: node.lineno)


def _begins(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])
