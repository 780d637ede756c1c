"""Losses by their use: no network, whatever their name."""

from __future__ import annotations

from collections.abc import Hashable

from amp_migrate.project import Project


def known_losses(project: Project) -> set[Hashable]:
    """Return the values that are given to ``amp.scale_loss``, or run a backward by themselves."""
    found: set[Hashable] = set()
    for module in project.modules.values():
        for name in ("backward", "scale_loss"):
            for node in module.tree.attributes(name):
                call = module.tree.call_of(node)
                if call is None:
                    continue
                own = node.value if name == "backward" and not call.args else None
                loss = next(iter(call.args), None) if name == "scale_loss" else own
                group = None if loss is None else project.values.group(module, loss)
                found |= {group} - {None}
    return found


def is_loss_class(name: str) -> bool:
    """Tell whether what has a dotted name is a loss of torch that is made once and called."""
    return name.startswith("torch.nn.") and name.endswith("Loss")


def is_loss(name: str) -> bool:
    """Tell whether a function of `torch.nn.functional` computes a loss."""
    return name.endswith("_loss") or "cross_entropy" in name or name in ("kl_div", "ctc_loss")
