"""`clip_grad_norm` of `apex.fp16_utils`, which is that of torch."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from amp_migrate.older.found import Found
from amp_migrate.older.sheet import Sheet
from amp_migrate.plan.cannot import Unwritable
from amp_migrate.project import Module


def write_clips(sheets: Mapping[Module, Sheet], found: Found) -> None:
    """Write `clip_grad_norm` of fp16_utils as that of torch, which it is."""
    for module, call in found.clips():
        sheet = sheets.get(module)
        if sheet is not None and found.fp16_name(module, call.func) is not None:
            need_torch(sheet, call)
            sheet.put(call.func, "torch.nn.utils.clip_grad_norm_")
            sheet.say(call, "becomes torch.nn.utils.clip_grad_norm_, which it was")


def need_torch(sheet: Sheet, call: ast.Call) -> None:
    """Refuse where the name `torch` is not at hand."""
    if not any(
        isinstance(n, ast.Import) and any(a.name == "torch" and not a.asname for a in n.names)
        for n in sheet.tree.module.body
    ):
        raise Unwritable(
            sheet.module,
            call,
            "torch.nn.utils.clip_grad_norm_ takes the place of this call, and torch is not imported at the top of this file",
            "write `import torch` at the top of this file, then run again",
        )
