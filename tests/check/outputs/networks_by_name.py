"""Networks that are made by a name, so that no call is seen to run their forwards: the calls of a block do."""

from __future__ import annotations

from check.trainings.planted import Training

_TRAIN = """

def main(kinds, name, loader):
    model = kinds[name].from_preset(name)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    {made}
    for x, seen in loader:
        {loss}
        optimizer.zero_grad()
        {backward}


main({{"tuned": Tuned}}, "tuned", [])
"""
_FORWARD = """    def forward(self, x, seen):
        with torch.no_grad():
            target = {run}(seen)
{cleared}        scores = {run}(x)
        return F.mse_loss(scores, target)
"""
_HEAD = "    def __init__(self):\n        super().__init__()\n        self.head = torch.nn.Linear(4, 3)\n\n"
_CLEARED = "        torch.clear_autocast_cache()\n"


def _named(name: str, begun: str, run: str) -> Training:
    before, after = (
        "import torch\nimport torch.nn.functional as F\n"
        + (apex + begun + _FORWARD.format(run=run, cleared=cleared))
        + _TRAIN.format(made=made, loss=loss, backward=backward)
        for apex, cleared, made, loss, backward in (
            (
                "from apex import amp\n",
                "",
                'model, optimizer = amp.initialize(model, optimizer, opt_level="O1")',
                "loss = model(x, seen)",
                "with amp.scale_loss(loss, optimizer) as scaled:\n            scaled.backward()\n"
                "        optimizer.step()",
            ),
            (
                "",
                _CLEARED,
                "scaler = torch.cuda.amp.GradScaler()",
                "with torch.cuda.amp.autocast():\n            loss = model(x, seen)",
                "scaler.scale(loss).backward()\n        scaler.step(optimizer)\n        scaler.update()",
            ),
        )
    )
    fault = {"the copies stay": ((_CLEARED, ""),)}
    return Training(name, {"main.py": before}, {"main.py": after}, fault)


_OF_A_LIBRARY = "from backbones import Backbone\n\n\nclass Tuned(Backbone):\n"

NETWORKS_BY_NAME = (
    _named(
        "a module of torch by its name", f"\n\nclass Tuned(torch.nn.Module):\n{_HEAD}", "self.head"
    ),
    _named("a network of a library by its name", f"{_OF_A_LIBRARY}{_HEAD}", "self.head"),
    _named(
        "a module of a library by its name",
        f"from lightning import pytorch as pl\n\n\nclass Tuned(pl.LightningModule):\n{_HEAD}",
        "self.head",
    ),
)
