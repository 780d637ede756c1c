"""Losses by their use: no network, whatever their name."""

from __future__ import annotations

from collections.abc import Hashable

from amp_migrate.facts.paths import argument
from amp_migrate.project import Project
from amp_migrate.training.contexts import scaling_calls


def known_losses(project: Project) -> set[Hashable]:
    """Return the values that are given to ``amp.scale_loss``, or run a backward by themselves."""
    losses = [
        (module, loss)
        for call, module in scaling_calls(project).items()
        if (loss := argument(call, "loss", 0)) is not None
    ]
    for module in project.modules.values():
        for node in module.tree.attributes("backward"):
            call = module.tree.call_of(node)
            if call is not None and not call.args:
                losses.append((module, node.value))
    groups = {project.values.group(module, loss) for module, loss in losses}
    return {group for group in groups if group is not None}


def is_loss_class(name: str) -> bool:
    """Tell whether what has a dotted name is a loss of torch that is made once and called."""
    return name.startswith("torch.nn.") and name.endswith("Loss")


def is_loss(name: str) -> bool:
    """Tell whether a function of `torch.nn.functional` computes a loss."""
    return name.endswith("_loss") or "cross_entropy" in name or name in ("kl_div", "ctc_loss")
