"""The ways in which the norm of still scaled gradients leaves out a step, each with the `update()` past it and without."""

from __future__ import annotations

from textwrap import indent

from check.trainings.planted import Training, files

_BEFORE = """
# file: train.py
import math

import torch
from apex import amp


def clipped(optimizer):
    return torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)


{helpers}def train(model, optimizer, loader, logs):
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
{ending}
"""
_AFTER = """
# file: train.py
import math

import torch


def clipped(optimizer, scaler):
    scaler.unscale_(optimizer)
    return torch.nn.utils.clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], 1.0)


{helpers}def train(model, optimizer, loader, logs):
    scaler = torch.cuda.amp.GradScaler()
    for x, y in loader:
        with torch.cuda.amp.autocast():
            loss = torch.nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
{ending}
"""
_SKIPPED = "scaler.update()  # without a step"
_ALONE = "scaler.step(optimizer)  # and no update"
_TOGETHER = "scaler.step(optimizer)\n{0}scaler.update()"
_CLIP = (
    "    scaler.unscale_(optimizer)\n    return torch.nn.utils.clip_grad_norm_("
    '[p for group in optimizer.param_groups for p in group["params"]], 1.0)'
)
_SCALED = (
    "    return torch.nn.utils.clip_grad_norm_("
    '[p for group in optimizer.param_groups for p in group["params"]], 1.0 * scaler.get_scale()) / scaler.get_scale()'
)
_WAYS = {
    "a match with two cases": """
        norm = clipped(HANDED)
        match math.isfinite(norm):
            case True:
                STEP
            case _:
                SKIP
                logs.append(norm)
        optimizer.zero_grad()
    """,
    "one of three cases": """
        norm = clipped(HANDED)
        match int(norm):
            case 0:
                STEP
            case 1:
                STEP
            case over:
                SKIP
                logs.append(over)
        optimizer.zero_grad()
    """,
    "a loop that asks": """
        norm = clipped(HANDED)
        while norm < 10:
            STEP
            break
        else:
            SKIP
            logs.append(norm)
        optimizer.zero_grad()
    """,
    "a part of an expression": """
        def advance(HANDED):
            ALONE


        ---
        norm = clipped(HANDED)
        norm < 10 and advance(HANDED)
        SKIP
        optimizer.zero_grad()
    """,
    "an expression with two arms": """
        def advance(HANDED):
            ALONE


        ---
        norm = clipped(HANDED)
        advance(HANDED) if norm < 10 else logs.append(norm)
        SKIP
        optimizer.zero_grad()
    """,
    "a test that names the norm": """
        if (norm := clipped(HANDED)) < 10:
            STEP
        else:
            SKIP
            logs.append(norm)
        optimizer.zero_grad()
    """,
    "a test of the clip itself": """
        if clipped(HANDED) < 10:
            STEP
        else:
            SKIP
            logs.append(loss)
        optimizer.zero_grad()
    """,
    "a flag that a test sets": """
        norm = clipped(HANDED)
        bad = False
        if not math.isfinite(norm):
            bad = True
        if not bad:
            STEP
        else:
            SKIP
            logs.append(norm)
        optimizer.zero_grad()
    """,
    "one of two reasons": """
        norm = clipped(HANDED)
        if logs or norm < 10:
            STEP
        else:
            SKIP
            logs.append(norm)
        optimizer.zero_grad()
    """,
    "a round that ends early": """
        norm = clipped(HANDED)
        if not math.isfinite(norm):
            SKIP
            optimizer.zero_grad()
            continue
        STEP
        optimizer.zero_grad()
    """,
    "what is raised and caught": """
        try:
            norm = clipped(HANDED)
            if not math.isfinite(norm):
                raise ArithmeticError(norm)
            STEP
        except ArithmeticError:
            SKIP
            logs.append(loss)
        optimizer.zero_grad()
    """,
    "a helper that returns early": """
        def advance(HANDED):
            norm = clipped(HANDED)
            if not math.isfinite(norm):
                SKIP
                return
            STEP


        ---
        advance(HANDED)
        optimizer.zero_grad()
    """,
    "a helper that is handed the norm": """
        def advance(norm, HANDED):
            if math.isfinite(norm):
                STEP
            else:
                SKIP
                print(norm)


        ---
        advance(clipped(HANDED), HANDED)
        optimizer.zero_grad()
    """,
    "a helper that says whether": """
        def is_small(norm):
            if norm < 10:
                return True
            return False


        ---
        norm = clipped(HANDED)
        if not is_small(norm):
            SKIP
            optimizer.zero_grad()
            continue
        STEP
        optimizer.zero_grad()
    """,
    "a helper that raises": """
        def advance(HANDED):
            norm = clipped(HANDED)
            if not math.isfinite(norm):
                raise ArithmeticError(norm)
            STEP


        ---
        try:
            advance(HANDED)
        except ArithmeticError:
            SKIP
            logs.append(loss)
        optimizer.zero_grad()
    """,
    "an attribute that another method reads": """
        class Progress:
            def clip(self, HANDED):
                self.norm = clipped(HANDED)

            def advance(self, HANDED):
                if self.norm < 10:
                    STEP
                else:
                    SKIP
                    print(self.norm)


        ---
        progress = Progress()
        progress.clip(HANDED)
        progress.advance(HANDED)
        optimizer.zero_grad()
    """,
}


def _filled(template: str, way: str, *, native: bool) -> str:
    lines = [line[8:] for line in way.rstrip().lstrip("\n").split("\n")]
    found: list[str] = []
    for line in lines:
        word, space = line.strip(), line[: len(line) - len(line.lstrip())]
        if word == "STEP":
            step = _TOGETHER.format(space) if native else "optimizer.step()"
            found.append(f"{space}{step}")
        elif word != "SKIP" or native:
            line = line.replace("SKIP", _SKIPPED)
            line = line.replace("ALONE", _ALONE if native else "optimizer.step()")
            found.append(line.replace("HANDED", "optimizer, scaler" if native else "optimizer"))
    helpers, _, ending = "\n".join(found).rpartition("---\n")
    return template.format(helpers=helpers, ending=indent(ending, "        "))


STUCK_WAYS = tuple(
    Training(
        f"a step left out by {name}",
        files(_filled(_BEFORE, way, native=False)),
        files(_filled(_AFTER, way, native=True)),
        {
            "past it, nothing updates the scale": (
                (_CLIP, _SCALED),
                *((_ALONE, _TOGETHER.format("    ")) for _ in range("ALONE" in way)),
                (_SKIPPED, "pass"),
            )
        },
        (("AMP106", "train.py", 1, 60, True),),
    )
    for name, way in _WAYS.items()
)
