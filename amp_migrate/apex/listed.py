"""Calls that change Apex's lists of what O1 casts: ``amp.lists.functional_overrides.FP16_FUNCS.append("softmax")``."""

from __future__ import annotations

import ast
from typing import NamedTuple

from amp_migrate.facts.constants import string

_LISTS = "apex.amp.lists."
_OWNERS = {
    "functional_overrides": "torch.nn.functional",
    "torch_overrides": "torch",
    "tensor_overrides": "torch.Tensor",
}
_HALF = {"FP16_FUNCS": True, "FP32_FUNCS": False}
_ADDED = {"append": True, "remove": False}


class Listed(NamedTuple):
    """A function that is added to one of two lists, or taken from it: of what runs in fp16 (`half`), and in fp32."""

    owner: str
    function: str
    half: bool
    added: bool


def listed(name: str, call: ast.Call) -> Listed | None:
    """Return what a call by a dotted name does to Apex's lists.

    None where it does something else, or takes away what autocast runs in fp16 in any case.
    """
    *path, held, method = name.removeprefix(_LISTS).split(".")
    owner = _OWNERS.get(".".join(path)) if name.startswith(_LISTS) else None
    half, added = _HALF.get(held), _ADDED.get(method)
    function = string(call.args[0]) if len(call.args) == 1 and not call.keywords else None
    if owner is None or half is None or added is None or function is None:
        return None
    if half and not added:
        return None
    return Listed(owner, function, half, added)
