"""What the rules about native code share."""

from __future__ import annotations

import ast
import re

from amp_migrate.facts.native import Native
from amp_migrate.plan import Decision, Finding, Status
from amp_migrate.rules.base import Rule

_AMP = re.compile(r"amp|fp16|half|scaler|mixed|precision", re.I)


def note(rule: Rule, native: Native, node: ast.AST, message: str, advice: str) -> Decision:
    """Make a note about a place of a file."""
    span = native.tree.span(node)
    return Decision(Finding(native.tree.path, span, rule.code, Status.NOTE, message, advice))


def asks_for_amp(native: Native, node: ast.AST) -> bool:
    """Tell whether a place stands under a test that may speak of mixed precision."""
    return any(
        isinstance(up, ast.If | ast.IfExp) and _AMP.search(native.tree.segment(up.test))
        for up in native.tree.ancestors(node)
    )
