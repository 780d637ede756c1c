"""Flags that something else than the class of the trainer sets while AMP is on: it is the same object all the same."""

from __future__ import annotations

from check.trainings.planted import Training

_TRAINER = """BASES
class Trainer(OWN):
    def __init__(self, half):
        self.half = half
        self.model = torch.nn.Linear(7, 3)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        INIT

    def train(self, batches):
        for inputs, labels in batches:
            self.optimizer.zero_grad()
            STEP

    def evaluate(self, inputs):
        with torch.no_grad()EVALUATED:
            return self.model(inputs)

"""
_BEFORE = {
    "INIT": """if self.half:
            self.model, self.optimizer = amp.initialize(
                self.model, self.optimizer, opt_level="O1"
            )""",
    "STEP": """loss = F.cross_entropy(self.model(inputs), labels)
            if self.half:
                with amp.scale_loss(loss, self.optimizer) as scaled_loss:
                    scaled_loss.backward()
            else:
                loss.backward()
            self.optimizer.step()""",
    "EVALUATED": "",
}
_ASKED = ", torch.cuda.amp.autocast(enabled=self.scaler.is_enabled())"
_AFTER = {
    "INIT": "self.scaler = torch.cuda.amp.GradScaler(enabled=self.half)",
    "STEP": """with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):
                loss = F.cross_entropy(self.model(inputs), labels)
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()""",
    "EVALUATED": _ASKED,
}
_RUN = """def main(batches):
    trainer = Trainer(True)
    trainer.train(batches)
    DONE
    print(trainer.evaluate(batches[0][0]))

"""


def _training(name: str, done: str, own: str = "", bases: str = "", other: str = "") -> Training:
    def filled(parts: dict[str, str], imports: str) -> dict[str, str]:
        text = f"import torch\nimport torch.nn.functional as F\n{imports}{_TRAINER}{_RUN}"
        for mark, part in {**parts, "OWN": own, "BASES": bases, "DONE": done}.items():
            text = text.replace(mark, part)
        return {"train.py": text} | ({"other.py": other} if other else {})

    before = filled(_BEFORE, "from apex import amp\n")
    fault = ((_ASKED, ", torch.cuda.amp.autocast(enabled=self.half)"),)
    return Training(name, before, filled(_AFTER, ""), {"the evaluation asks the flag": fault})


_OFF = "    def done(self):\n        self.half = False\n"
TURNED_OFF = (
    _training("by a base class", "trainer.done()", "Base", f"class Base:\n{_OFF}\n"),
    _training("by a mixin of another file", "trainer.done()", "Mixin", "from other import Mixin", f"class Mixin:\n{_OFF}"),
    _training("by a base class of a base class", "trainer.done()", "Base", f"class Far:\n{_OFF}\nclass Base(Far):\n    pass\n"),
    _training("by what runs it", "trainer.half = False"),
    _training("by a function", "off(trainer)", bases="def off(running):\n    running.half = False\n"),
    _training("by another object", "Hook(trainer).done()", bases="class Hook:\n    def __init__(self, whose):\n        self.whose = whose\n\n    def done(self):\n        self.whose.half = False\n"),
)  # fmt: skip
