"""A program that never initializes Apex scores with the class of one that does: it stays fp32."""

from __future__ import annotations

from check.trainings.planted import Training
from fixture_support import ROOT

_CASE = ROOT / "evaluate" / "scored_by_another_program"
_SCORES = "        return [self.loss(x, y).item() for x, y in batches]"


def _texts(side: str) -> dict[str, str]:
    return {
        path.name: path.read_text(encoding="utf-8") for path in sorted((_CASE / side).glob("*.py"))
    }


def _cast(enabled: str) -> tuple[tuple[str, str], ...]:
    block = f"        with torch.cuda.amp.autocast({enabled}):\n    {_SCORES}"
    return ((_SCORES, block),)


SCORING = (
    Training(
        "a program that scores with the class of another one",
        _texts("before"),
        _texts("after"),
        {
            "it is cast": _cast(""),
            "it is cast by a flag that it does not have": _cast("enabled=self.args.fp16"),
        },
    ),
)
