"""How autocast and GradScaler are written: `torch.cuda.amp` or `torch.amp`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spelling:
    """The API that the written code uses; `remembers`: the GradScaler is one that remembers an overflow.

    `dtype` is what autocast casts to, of which float16 is its default.
    """

    torch_amp: bool = False
    remembers: bool = False
    dtype: str = "float16"

    def autocast(self, enabled: str = "", *more: str) -> str:
        """Return an autocast call; `enabled` is the text of its condition, empty where it is always on.

        `more` are the texts of further arguments.
        """
        arguments = ['"cuda"'] if self.torch_amp else []
        if self.dtype != "float16" and enabled != "False":
            arguments.append(f"dtype=torch.{self.dtype}")
        arguments += [f"enabled={enabled}"] if enabled else []
        arguments += more
        return f"{self._base}.autocast({', '.join(arguments)})"

    def scaler(self, arguments: list[str]) -> str:
        """Return a GradScaler call with some keyword arguments."""
        given = ['"cuda"', *arguments] if self.torch_amp else arguments
        return f"{self.class_name}({', '.join(given)})"

    def of_function(self, decorator: str, method: str) -> str:
        """Return the call of `custom_fwd` or `custom_bwd` on a method of an ``autograd.Function``."""
        device = ', device_type="cuda"' if self.torch_amp else ""
        return f"{self._base}.{decorator}({method}{device})"

    def decorator(self, name: str) -> str:
        """Return `custom_fwd` or `custom_bwd` as a decorator."""
        device = '(device_type="cuda")' if self.torch_amp else ""
        return f"{self._base}.{name}{device}"

    @property
    def class_name(self) -> str:
        """The class that the written code makes a GradScaler of."""
        return "OverflowGradScaler" if self.remembers else self.plain_class

    @property
    def plain_class(self) -> str:
        """The GradScaler of torch."""
        return f"{self._base}.GradScaler"

    @property
    def _base(self) -> str:
        return "torch.amp" if self.torch_amp else "torch.cuda.amp"
