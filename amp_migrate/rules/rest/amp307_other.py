"""Everything else of Apex: what is gone, and what still exists.

## What it does
Reports each use: modules that are gone with what to write in their place, modules that still exist with their
counterpart in torch.

## Why
`apex.RNN`, `apex.reparameterization`, `apex.pyprof`, `apex.transformer` and parts of `apex.contrib` were removed from
Apex at different times; programs that use them do not start.

## Example
    losses = SoftmaxCrossEntropyLoss.apply(logits, labels, 0.1)

## Use instead
    losses = F.cross_entropy(logits, labels, reduction="none", ignore_index=0, label_smoothing=0.1)

## Safety
Report only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.plan.model import Decision, Status
from amp_migrate.rules.base import FileContext, Rule, Safety, decision
from amp_migrate.rules.rest.found.uses import ORDER, names_what_is_held, uses

RULE = Rule("AMP307", "other parts of Apex", Safety.REPORT, order=ORDER)

_ELSEWHERE = (
    "apex.parallel.DistributedDataParallel", "apex.parallel.SyncBatchNorm", "apex.parallel.LARC",
    "apex.parallel.convert_syncbn_model", "apex.parallel.create_syncbn_process_group",
    "apex.optimizers.", "apex.normalization.", "apex.fp16_utils.",
    "apex.contrib.optimizers.FP16_Optimizer",
)  # fmt: skip

GONE = {
    "apex.parallel.Reducer": "all-reduce the gradients with torch.distributed.all_reduce and divide them by the "
    "world size after the backward pass; broadcast the parameters once at the start",
    "apex.parallel.multiproc": "start the processes with torchrun",
    "apex.parallel.distributed.flat_dist_call": "call torch.distributed.broadcast, or all_reduce and a division by "
    "the world size, for each tensor",
    "apex.parallel": "use torch.nn.parallel, torch.nn.SyncBatchNorm and torch.distributed",
    "apex.RNN": "use torch.nn.LSTM, GRU or RNN; mLSTM has no counterpart",
    "apex.reparameterization": "use torch.nn.utils.parametrizations.weight_norm, or torch.nn.utils.weight_norm for "
    "the parameter names of old checkpoints",
    "apex.pyprof": "use torch.profiler or torch.autograd.profiler.emit_nvtx()",
    "apex.transformer": "use Megatron Core, from which it was taken",
    "apex.contrib.multihead_attn": "use torch.nn.MultiheadAttention or F.scaled_dot_product_attention; rows of "
    "in_proj_weight are interleaved by head in Apex and have to be reordered for old checkpoints",
    "apex.contrib.fmha": "use torch.nn.functional.scaled_dot_product_attention",
    "apex.contrib.gpu_direct_storage": "use torch.cuda.gds (torch >= 2.7) or kvikio",
}
STAYS = {
    "apex.contrib.xentropy": "F.cross_entropy(logits, labels, reduction='none', ignore_index=padding_idx, "
    "label_smoothing=smoothing); label 0 is ignored by default in Apex",
    "apex.contrib.clip_grad": "torch.nn.utils.clip_grad_norm_",
    "apex.contrib.layer_norm": "torch.nn.LayerNorm",
    "apex.contrib.group_norm": "torch.nn.GroupNorm, followed by torch.nn.SiLU where act='silu'",
    "apex.contrib.groupbn": "torch.nn.SyncBatchNorm, followed by torch.nn.ReLU where fuse_relu",
    "apex.contrib.cudnn_gbn": "torch.nn.SyncBatchNorm",
    "apex.contrib.focal_loss": "torchvision.ops.sigmoid_focal_loss, whose arguments differ",
    "apex.contrib.optimizers": "torch.distributed.optim.ZeroRedundancyOptimizer for DistributedFusedAdam",
    "apex.contrib": "",
    "apex.mlp": "torch.nn.Sequential of Linear and activation, which Apex has after the last layer too",
    "apex.fused_dense": "torch.nn.Linear, and GELU(approximate='tanh') between two for FusedDenseGeluDense",
    "apex.multi_tensor_apply": "the torch._foreach_ functions",
    "apex.__version__": "",
    "apex.__file__": "",
    "apex.__path__": "",
}

_OF_EVERY_MODULE = re.compile(r"^apex\.__\w+__$")


def decide_file(context: FileContext) -> Iterator[Decision]:
    """Report what no other rule speaks about."""
    if not context.settings.enabled(RULE.code):
        return
    elsewhere = set(uses(context, *_ELSEWHERE))
    for site in context.of(Kind.OTHER):
        if site not in elsewhere and not names_what_is_held(context, site):
            yield _report(site)


def _report(site: Site) -> Decision:
    gone = _longest(site.name, GONE)
    stays = _longest(site.name, STAYS)
    name = site.name
    if gone is None and stays is None and _OF_EVERY_MODULE.search(name):
        return decision(RULE, Status.NOTE, site.module, site.node, f"{name} still exists and stays")
    if gone is None and stays is not None:
        message = f"{name} still exists in Apex and stays"
        advice = f"keep it, or use {STAYS[stays]}" if STAYS[stays] else ""
        return decision(RULE, Status.NOTE, site.module, site.node, message, advice=advice)
    message = f"{name} was removed from Apex" if gone else f"{name} is not known to exist in Apex"
    advice = GONE[gone] if gone else "look whether the Apex that you have still holds it"
    return decision(RULE, Status.LEFT, site.module, site.node, message, advice=advice)


def _longest(name: str, table: dict[str, str]) -> str | None:
    found = [key for key in table if name == key or name.startswith(f"{key}.")]
    return max(found, key=len, default=None)
