"""Where the programs begin that an optimizer takes part in, and what of a project they run."""

from __future__ import annotations

import pytest

from amp_migrate.facts.tree import Tree
from amp_migrate.project import build
from amp_migrate.protocol.certain.memory import CertainMemory
from amp_migrate.protocol.code.program import Program, program_of
from amp_migrate.protocol.code.programs import Programs
from amp_migrate.protocol.gradients import GradientMachine
from amp_migrate.protocol.run.blind import Search

_LIBRARY = """
HOOKS = []
def train(model, optimizer, scaler, batches):
    for batch in batches:
        scaler.scale(model(batch).mean()).backward()
        for hook in HOOKS:
            hook(model)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
"""
_SCRIPT = """
import torch
from library import HOOKS, train
def clip_by_{name}(model):
    for p in model.parameters():
        p.grad.clamp_(-1, 1)
HOOKS.append(clip_by_{name})
def main():
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, optimizer, torch.cuda.amp.GradScaler(), [torch.ones(2, 3)])
main()
"""
_MAKER = """
import torch
def optimizer_of(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)
"""


def _program(**files: str) -> Program:
    trees = {f"{name}.py": Tree(f"{name}.py", text) for name, text in files.items()}
    return program_of(build(trees, ["."])).of_gradients


def _scripts(*names: str) -> dict[str, str]:
    return {name: _SCRIPT.replace("{name}", name) for name in names}


def _made_in(program: Program, path: str) -> int:
    objects = program.training.objects
    found = [o.number for o in objects.optimizers]
    return next(n for n in found if {m.path for m in objects.made_in(n)} == {path})


@pytest.mark.parametrize("name", ["first", "second"])
def test_a_program_runs_the_files_that_it_imports(name: str) -> None:
    program = _program(library=_LIBRARY, **_scripts("first", "second"))
    number = _made_in(program, f"{name}.py")
    span = Programs(program).of_optimizers([number])
    assert span.files == {f"{name}.py", "library.py"}
    assert {function.module.path for function, _ in span.entries} <= span.files


@pytest.mark.parametrize("name", ["first", "second"])
def test_a_hook_of_another_program_does_not_run(name: str) -> None:
    """Both hooks are in one list of the library, each where its own script runs."""
    program = _program(library=_LIBRARY, **_scripts("first", "second"))
    number = _made_in(program, f"{name}.py")
    span = Programs(program).of_optimizers([number])
    machine = GradientMachine(number, frozenset({0}), alone=True)
    run = Search(program, CertainMemory(program)).anyhow(machine, span)
    met = {breach.key.function.name for breach in run.breached()}
    assert met == {f"clip_by_{name}"}


def test_what_a_shared_function_makes_belongs_to_the_program_that_calls_it() -> None:
    making = {
        name: text.replace("import torch\n", "import torch\nimport maker\n", 1).replace(
            "torch.optim.SGD(model.parameters(), lr=0.1)", "maker.optimizer_of(model)"
        )
        for name, text in _scripts("first", "second").items()
    }
    program = _program(library=_LIBRARY, maker=_MAKER, **making)
    number = _made_in(program, "first.py")
    assert Programs(program).of_optimizers([number]).files == {
        "first.py",
        "library.py",
        "maker.py",
    }


def test_an_optimizer_that_nothing_in_sight_makes_runs_in_every_file() -> None:
    program = _program(library=_LIBRARY, **_scripts("first"))
    lost = _program(library=_LIBRARY)
    assert Programs(program).of_optimizers([_made_in(program, "first.py")]).files is not None
    assert [
        Programs(lost).of_optimizers([o.number]).files for o in lost.training.objects.optimizers
    ] == [None]
