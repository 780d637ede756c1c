"""What nobody needs: unused imports and functions, decorators that only time a call."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from random import Random

from generated.refactor.code.identifiers import Edit, Text, Unsure, edited, text
from generated.refactor.code.names import fresh
from generated.refactor.noise.spots import MATTERS, below_imports, block
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_IMPORTS = (
    "import os",
    "import sys",
    "import json",
    "import math",
    "from collections import OrderedDict",
    "import torch.distributed as dist",
    "from torch import optim",
    "from torch.utils import data as torch_data",
    "from torch.optim.lr_scheduler import LambdaLR",
    "from apex import amp as unused_amp",
    "import torch.backends.cudnn as cudnn",
)
_HELPERS = (
    "def {0}(model):\n    return sum(p.numel() for p in model.parameters() if p.requires_grad)",
    "def {0}(optimizer, lr):\n    for group in optimizer.param_groups:\n        group['lr'] = lr",
    "def {0}(model):\n    total = 0.0\n    for p in model.parameters():\n        if p.grad is not None:\n"
    "            total += p.grad.norm().item() ** 2\n    return total ** 0.5",
    "class {0}:\n    def __init__(self):\n        self.sum, self.count = 0.0, 0\n\n"
    "    def update(self, value, n=1):\n        self.sum += value * n\n        self.count += n",
    "def {0}(output, target):\n    return (output.argmax(dim=1) == target).float().mean()",
    "def {0}(loss, optimizer):\n    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()",
    "def {0}(model, data):\n    model.eval()\n    outputs = model(data)\n    model.train()\n    return outputs",
)
_STEMS = ("helper", "count_up", "Meter", "legacy", "measure", "report_all")
_TIMED = (
    "def {0}(function):\n    @functools.wraps(function)\n    def wrapper(*args, **kwargs):\n"
    "        return function(*args, **kwargs)\n\n    return wrapper",
    "def {0}(function):\n    @functools.wraps(function)\n    def wrapper(*args, **kwargs):\n"
    "        start = time.time()\n        try:\n            return function(*args, **kwargs)\n        finally:\n"
    "            logging.getLogger(__name__).debug('%.3f', time.time() - start)\n\n    return wrapper",
    "def {0}(function):\n    @functools.wraps(function)\n    def wrapper(*args, **kwargs):\n"
    "        result = function(*args, **kwargs)\n        return result\n\n    return wrapper",
    "def {0}(function):\n    function.tag = 'kept'\n    return function",
)


def texts(project: Project, rng: Random) -> Iterator[tuple[str, Text]]:
    """Yield the files, at random, those of the training rather first."""
    paths = sorted(
        project.files, key=lambda p: (not MATTERS.search(project.files[p]), rng.random())
    )
    if len(paths) > 1 and rng.random() < 0.3:
        paths.append(paths.pop(0))
    for path in paths:
        try:
            held = text(project.files[path])
        except (Unsure, SyntaxError):
            continue
        if held.tree.body:
            yield path, held


def _unused_import(project: Project, rng: Random) -> Project | None:
    """A module imports what it does not use."""
    for path, held in texts(project, rng):
        taken = {name for scope in held.scopes for name in scope.bound}
        free = [s for s in _IMPORTS if s.split()[-1].partition(".")[0] not in taken | _read(held)]
        if free:
            at = below_imports(held)
            return project.changed(path, edited(held.text, [(at, at, rng.choice(free) + "\n")]))
    return None


def _read(held: Text) -> set[str]:
    return {p.name for p in held.places}


def _unused_helper(project: Project, rng: Random) -> Project | None:
    """A module has a function or class that nobody calls."""
    for path, held in texts(project, rng):
        name = fresh(project, rng, _STEMS)
        helper = rng.choice(_HELPERS).format(name)
        places = [s for s in held.tree.body if isinstance(s, ast.FunctionDef | ast.ClassDef)]
        if not places:
            continue
        node = rng.choice(places)
        line = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        at = held.lines[line - 1]
        while at and held.text[: at - 1].rpartition("\n")[2].startswith("#"):
            at = held.text.rfind("\n", 0, at - 1) + 1
        return project.changed(path, edited(held.text, [(at, at, f"{helper}\n\n\n")]))
    return None


def _decorated(project: Project, rng: Random) -> Project | None:
    """A function or method gets a decorator that passes everything on."""
    for path, held in texts(project, rng):
        functions = [n for n in ast.walk(held.tree) if isinstance(n, ast.FunctionDef)]
        functions = [f for f in functions if not _generator(f) and not _plain(f)]
        if not functions:
            continue
        lead = [f for f in functions if MATTERS.search(held.source(f))]
        function = rng.choice(lead if lead and rng.random() < 2 / 3 else functions)
        name = fresh(project, rng, ("timed", "traced", "logged", "passed_on"))
        helper = rng.choice(_TIMED).format(name)
        at = below_imports(held)
        needs = [f"import {m}\n" for m in ("functools", "logging", "time") if f"{m}." in helper]
        needs = [n for n in needs if n.strip() not in held.text.splitlines()]
        taken = {n for scope in held.scopes for n in scope.bound}
        if any(n.split()[1] in taken for n in needs) or not _free(held, helper):
            continue
        line = held.lines[function.lineno - 1]
        rest = held.text[at:]
        after = "\n" * max(0, 2 - (len(rest) - len(rest.lstrip("\n"))))
        above = "".join(needs) + ("\n\n" if at or needs else "") + f"{helper}\n{after}"
        marked = block(" " * function.col_offset, f"@{name}")
        edits: list[Edit] = [(at, at, above), (line, line, marked)]
        if at == line:
            edits = [(at, at, above + marked)]
        return project.changed(path, edited(held.text, edits))
    return None


def _plain(function: ast.FunctionDef) -> bool:
    """Tell whether something asks for the function itself: its own arguments, or its class."""
    if any(
        isinstance(n, ast.Call) and ast.unparse(n.func) == "super" and n.args
        for n in ast.walk(function)
    ):
        return False
    return function.name.startswith("__") and function.name != "__init__"


def _generator(function: ast.FunctionDef) -> bool:
    return any(isinstance(n, ast.Yield | ast.YieldFrom) for n in ast.walk(function))


def _free(held: Text, helper: str) -> bool:
    """Tell whether the modules that a decorator names mean themselves at the top of the file."""
    module = held.scopes[0]
    words = {m for m in ("functools", "logging", "time") if f"{m}." in helper}
    return all(w not in module.bound or f"import {w}" in held.text.splitlines() for w in words)


REFACTORINGS = (
    Refactoring("an import that nothing uses", "noise", _unused_import),
    Refactoring("a function that nobody calls", "noise", _unused_helper),
    Refactoring("a decorator that passes everything on", "noise", _decorated),
)
