"""How a program calls its things, and where they are reached from."""

from __future__ import annotations

from dataclasses import dataclass, replace

from generated.choices.sets import GANS, Features

_WORDS = {
    "first": ("images", "labels", "i", "optimizer", "scaled_loss", "fp16", "output"),
    "second": ("inputs", "targets", "step", "optimizer", "scaled_loss", "use_amp", "outputs"),
    "third": ("data", "target", "batch_idx", "optim", "scaled", "apex", "logits"),
}
_HELD = ("args", "model", "criterion", "loader", "scheduler", "ema", "teacher", "head")
_AMP = {"whole": "apex.amp", "alias": "apex_amp"}


@dataclass(frozen=True, slots=True)
class Names:
    """The names of one program as one scope spells them; `flag` is empty where nothing is guarded."""

    args: str
    model: str
    criterion: str
    loader: str
    optimizers: tuple[str, ...]
    scheduler: str
    ema: str
    teacher: str
    head: str
    x: str
    y: str
    index: str
    output: str
    scaled: str
    flag: str
    switch: str
    amp: str

    @property
    def optimizer(self) -> str:
        """The first or only optimizer."""
        return self.optimizers[0]

    def of_self(self) -> Names:
        """Return the names as methods spell them."""
        held = {name: f"self.{getattr(self, name)}" for name in _HELD}
        return replace(
            self,
            **held,
            optimizers=tuple(f"self.{name}" for name in self.optimizers),
            flag=self.flag.replace("args.", "self.args."),
            switch=self.switch.replace("args.", "self.args."),
        )


def names(f: Features) -> Names:
    """Return the names as a function spells them that holds or receives everything."""
    x, y, index, optimizer, scaled, switch, output = _WORDS[f["words"]]
    guards = {
        "none": "",
        "flag": f"args.{switch}",
        "renamed_flag": f"args.{switch}",
        "parameter": f"args.{switch}",
        "truthy_amp": "amp",
        "is_not_none": "amp is not None",
    }
    optimizers: tuple[str, ...] = (optimizer,)
    if f["losses"] == "two_optimizers":
        optimizers = (f"{optimizer}_body", f"{optimizer}_head")
    if f["losses"] in GANS:
        optimizers = (f"{optimizer}_d", f"{optimizer}_g")
    return Names(
        args="args",
        model="model",
        criterion="criterion",
        loader="train_loader",
        optimizers=optimizers,
        scheduler="scheduler",
        ema="ema",
        teacher="teacher",
        head="head",
        x=x,
        y=y,
        index=index,
        output=output,
        scaled=scaled,
        flag=guards[f["guard"]],
        switch=f"args.{switch}",
        amp=_AMP.get(f["imports"], "amp"),
    )
