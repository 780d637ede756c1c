"""The program's optimizers, in the order they were made, with the parameters they were given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from amp_migrate.equivalence.capture.patching import wrap


class Registry:
    """Optimizers by index and the parameters handed to each.

    The parameters are those of the model: Apex O2 later puts fp32 copies in their place.
    """

    def __init__(self) -> None:
        self._indices: dict[int, int] = {}
        self._optimizers: list[Any] = []
        self._parameters: list[list[Tensor]] = []

    def install(self) -> None:
        """Follow every ``add_param_group``, which optimizers' constructors call too."""

        def make(original: Any) -> Any:
            def add_param_group(optimizer: Any, group: Any) -> Any:
                result = original(optimizer, group)
                self.given(optimizer).extend(optimizer.param_groups[-1]["params"])
                return result

            return add_param_group

        wrap(torch.optim.Optimizer, "add_param_group", make)

    def index(self, optimizer: Any) -> int:
        """Return the number of `optimizer`; one never seen gets the next."""
        if id(optimizer) not in self._indices:
            self._indices[id(optimizer)] = len(self._optimizers)
            self._optimizers.append(optimizer)
            self._parameters.append([])
        return self._indices[id(optimizer)]

    def given(self, optimizer: Any) -> list[Tensor]:
        """Return the parameters given to `optimizer` by the program."""
        return self._parameters[self.index(optimizer)]

    def per_optimizer(self) -> Iterator[list[Tensor]]:
        """Yield, per optimizer, the parameters given and those that took their place."""
        for optimizer, given in zip(self._optimizers, self._parameters, strict=True):
            seen = {id(parameter): parameter for parameter in given}
            seen.update({id(parameter): parameter for parameter in current(optimizer)})
            yield list(seen.values())

    def order(self) -> dict[int, int]:
        """Return the place of every parameter, by its id, in the order of registration."""
        places: dict[int, int] = {}
        for parameters in self.per_optimizer():
            for parameter in parameters:
                places.setdefault(id(parameter), len(places))
        return places

    def grads_clean(self) -> bool:
        """Return whether every gradient is None or zero."""
        return not any(
            bool(parameter.grad.any())
            for parameters in self.per_optimizer()
            for parameter in parameters
            if parameter.grad is not None and not parameter.grad.is_sparse
        )


def current(optimizer: Any) -> Iterator[Tensor]:
    """Yield the parameters in the optimizer's groups now."""
    for group in optimizer.param_groups:
        yield from group["params"]
