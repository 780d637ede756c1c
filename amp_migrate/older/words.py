"""What the planner says of today's amp, in the words of the interface that the program uses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from amp_migrate.facts.stand_ins import ALIAS, SCALED

Words = Mapping[str, str]

_OUTPUTS = r", and behind its block what the network gives may be fp16, which was fp32"
FP16 = MappingProxyType(
    {
        _OUTPUTS: "",
        r"opt_level O2 becomes autocast: weights stay fp32 \(O2 kept": (
            "the network runs under autocast: its weights stay fp32 (FP16_Optimizer kept"
        ),
        r", and at O0 scales nothing": "",
        r"_scale_seq_len": "scale_window",
        r"amp\.initialize": "FP16_Optimizer",
        r"amp\.scale_loss branch": "optimizer.backward branch",
        r"amp\.scale_loss\(": "optimizer.backward(",
        r"amp\.scale_loss": "optimizer.backward",
        r"amp\.master_params\(\w+\)": "clip_master_grads",
    }
)

FUSED = MappingProxyType(
    {
        **FP16,
        r"a number stays the scale, but unlike Apex GradScaler skips a step whose gradients overflow": (
            "a number stays the scale, and a step whose gradients overflow is skipped, as FP16_Optimizer did"
        ),
        r"unlike Apex, GradScaler skips a step whose gradients overflow": (
            "a step whose gradients overflow is skipped, as FP16_Optimizer did"
        ),
        r"where Apex counted backward passes in scale_window": "as FP16_Optimizer did in scale_window",
    }
)

HANDLE = MappingProxyType(
    {r"amp\.initialize": "wrap_optimizer", r"amp\.scale_loss": "optimizer.scale_loss"}
)

MASTERS = MappingProxyType(
    {
        _OUTPUTS: "",
        r"opt_level O2 becomes autocast: weights stay fp32 \(O2 kept fp16 weights with fp32 masters\)": (
            "the network runs under autocast: its weights stay fp32 (they were fp16, with fp32 copies)"
        ),
        r"amp\.initialize": "prep_param_lists",
    }
)


def in_words(text: str, words: Words) -> str:
    """Return a sentence in the words of an interface."""
    text = re.sub(rf"\b{ALIAS}\b", "amp", re.sub(rf"\b{SCALED}\b", "the scaled loss", text))
    for said, instead in words.items():
        text = re.sub(said, instead, text)
    return text
