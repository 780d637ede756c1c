"""``--scaler module``: the GradScaler as a variable of the file that initializes, or a finding that says why not."""

from __future__ import annotations

import pytest
from fixture_support import cases
from rules.advice.example_programs import HEAD, IMPORT, INIT, PARTS, TRAIN_STEP

from amp_migrate.engine import migrate
from amp_migrate.outcome import Result
from amp_migrate.plan.model import Status
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

START = f"{HEAD}from elsewhere import call, register\n{IMPORT}{PARTS}"
REGISTERED = f"@register\n{TRAIN_STEP}"
MAIN = f"def main(model, optimizer):\n    {INIT}    call(train_step, model, optimizer)\nmain(model, optimizer)\n"
METHOD = "".join(f"    {line}\n" for line in REGISTERED.splitlines())
INIT_METHOD = "    def __init__(self, model, optimizer):\n        model, self.optimizer = amp.initialize(model, optimizer)\n"
CLASS = f"class Trainer:\n{INIT_METHOD}" + METHOD.replace("(model,", "(self, model,").replace(
    "optimizer, images", "images"
).replace("loss, optimizer", "loss, self.optimizer").replace(
    "    optimizer.", "    self.optimizer."
)
PROGRAMS = {
    "at the top": f"{START}{INIT}{REGISTERED}call(train_step)\n",
    "at the top, below": f"{START}{REGISTERED}{INIT}call(train_step)\n",
    "in main": f"{START}{REGISTERED}{MAIN}",
    "under a flag": f"{START}{REGISTERED}{MAIN}".replace(
        f"    {INIT}", f"    if args.fp16:\n        {INIT}"
    ),
    "in a helper": f"{START}{REGISTERED}def setup(model, optimizer):\n"
    "    return amp.initialize(model, optimizer)\ndef main():\n"
    "    parts = setup(model, optimizer)\n    call(train_step, *parts)\nmain()\n",
    "in a class": f"{START}{CLASS}call(Trainer(model, optimizer))\n",
}


def kept(texts: dict[str, str]) -> Result:
    """Return what becomes of files with ``--scaler module``."""
    sources = [Source.from_bytes(name, text.encode()) for name, text in texts.items()]
    return migrate(sources, Settings(api="torch.cuda.amp", scaler="module"))


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_scaler_is_there_wherever_the_program_initializes(program: str) -> None:
    compile(program, "train.py", "exec")
    result = kept({"train.py": program})

    assert [f for f in result.plan.findings() if f.status is Status.LEFT] == []
    assert "scaler.step(" in (result.outcomes[0].after or "")


def test_two_files_are_left_with_what_to_do() -> None:
    engine = f"import torch\nfrom elsewhere import register\n{IMPORT}{REGISTERED}"
    main = f"import engine\n{START}{MAIN.replace('train_step', 'engine.train_step')}"

    findings = kept({"engine.py": engine, "main.py": main}).plan.findings()

    assert {f.code for f in findings if f.status is Status.LEFT} == {"AMP101", "AMP901"}
    assert any("bring it and amp.initialize into one file" in f.advice for f in findings)


@pytest.mark.parametrize(
    "case", [c for c in cases() if c.name.startswith("refused/")], ids=lambda case: case.name
)
def test_no_refused_program_fails_its_check(case) -> None:  # type: ignore[no-untyped-def]
    own = {name: text for name, text in case.before.items() if name not in case.library}

    assert "AMP910" not in {f.code for f in kept(own).plan.findings()}
