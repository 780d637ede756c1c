"""Whether a scale_loss is given several optimizers, whose steps Apex skipped together."""

from __future__ import annotations

import pytest

from amp_migrate.placement.steps.untrained import are_several
from tests.placement.training import BACKWARD, FORWARD, Training, looped

SECOND = """\
net = Net()
second = torch.optim.SGD(net.parameters(), lr=0.1)
net, second = amp.initialize(net, second)
"""
JOINT: dict[str, tuple[str, str, bool]] = {
    "one": ("", "optimizer", False),
    "a list of one": ("", "[optimizer]", False),
    "two": ("", "[optimizer, second]", True),
    "a tuple of two": ("", "(optimizer, second)", True),
    "by a name": ("both = [optimizer, second]\n", "both", True),
    "by a name of one": ("both = [optimizer]\n", "both", False),
    "an attribute": (
        "class Kept:\n    pass\nkept = Kept()\nkept.own = [optimizer, second]\n",
        "kept.own",
        True,
    ),
    "an attribute of another object": (
        "class Kept:\n    pass\nclass Shown:\n    pass\nkept, shown = Kept(), Shown()\n"
        "kept.own = optimizer\nshown.own = [optimizer, second]\n",
        "kept.own",
        False,
    ),
    "a part of what a function hands on": (
        "def build():\n    return net, second, 3\ndef chosen():\n    return build()\n"
        "_, own, count = chosen()\n",
        "own",
        False,
    ),
    "a part of what one of several functions hands on": (
        "def first():\n    return net, second\ndef other():\n    return first()\n"
        "made = {'a': first, 'b': other}\ndef chosen(kind):\n    return made[kind](), 3\n"
        "(_, own), count = chosen('b')\n",
        "own",
        False,
    ),
    "a list in what a function hands on": (
        "def build():\n    return net, [optimizer, second]\ndef chosen():\n    return build()\n"
        "_, own = chosen()\n",
        "own",
        True,
    ),
    "a part of what comes back round": (
        "def build(again):\n    return build(False) if again else (net, second)\n"
        "_, own = build(True)\n",
        "own",
        False,
    ),
    "a comprehension": ("both = [o for o in every]\n", "both", True),
}


@pytest.mark.parametrize(("before", "given", "several"), JOINT.values(), ids=JOINT)
def test_scale_loss_of_several_optimizers(before: str, given: str, several: bool) -> None:
    """Apex skipped the steps of all of them together."""
    body = (
        BACKWARD.replace("loss, optimizer", f"loss, {given}") + "optimizer.step()\nsecond.step()\n"
    )
    training = Training(looped(FORWARD + body, SECOND + before))
    (block,) = training.context.scaled.values()
    assert are_several(training.unit, block) is several
