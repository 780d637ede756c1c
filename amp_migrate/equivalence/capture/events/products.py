"""Count the products of one iteration: how large they are, and whether tensor cores take their dimensions."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from amp_migrate.equivalence.capture.events.backward import Backward
from amp_migrate.equivalence.capture.recorder import Recorder

EVEN = 8
"""What the dimensions of a product in 16 bits have to be multiples of."""
_COUNTED = 2


class Products(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds up the multiplications of a forward pass, in matrix products and convolutions, and counts all operators."""

    def __init__(self, recorder: Recorder, backward: Backward) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.recorder = recorder
        self.backward = backward
        self.multiplications = 0
        self.uneven = 0
        self.operators = 0
        self.largest: tuple[int, tuple[int, ...]] = (0, ())
        self._state = "ahead"

    def install(self) -> None:
        """Begin with the backward of one iteration; end with that of the next."""
        self.backward.before.append(lambda tensors: self._boundary())

    def _boundary(self) -> None:
        iteration = self.recorder.iteration
        index = iteration.index if iteration is not None else 0
        if self._state == "ahead" and index == _COUNTED:
            self._state = "inside"
            self.__enter__()  # type: ignore[no-untyped-call]
        elif self._state == "inside" and index > _COUNTED:
            self._state = "done"
            self.__exit__(None, None, None)  # type: ignore[no-untyped-call]
            self._write()

    def _write(self) -> None:
        self.recorder.notes["products"] = {
            "multiplications": self.multiplications,
            "uneven": self.uneven,
            "operators": self.operators,
            "largest_uneven": list(self.largest[1]),
        }

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run `func` and count it."""
        result = func(*args, **(kwargs or {}))
        self.operators += 1
        dimensions = _dimensions(func.overloadpacket.__name__, args, result)
        if dimensions is not None and not self.backward.running():
            number, edges = dimensions
            self.multiplications += number
            if any(edge % EVEN for edge in edges):
                self.uneven += number
                self.largest = max(self.largest, (number, edges))
        return result


def _dimensions(name: str, args: Any, result: Any) -> tuple[int, tuple[int, ...]] | None:
    """Return how many multiplications an operator makes, and the dimensions that tensor cores see."""
    if name in ("addmm", "baddbmm"):
        args = args[1:]
    if name in ("mm", "addmm", "bmm", "baddbmm"):
        rows, inner = args[0].shape[-2:]
        columns = args[1].shape[-1]
        copies = args[0].shape[0] if args[0].dim() > 2 else 1
        return copies * rows * inner * columns, (rows, inner, columns)
    if name == "convolution" and isinstance(result, Tensor):
        weight: Tensor = args[1]
        return result.numel() * weight[0].numel(), (weight.shape[1], weight.shape[0])
    return None
