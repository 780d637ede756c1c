"""A generated program: its files, how it is run, and its corrected twin."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, replace

from generated.choices.features import draw
from generated.choices.sets import CLASSES, Features
from generated.written import classes, functions
from generated.written.build import data_lines, model_lines
from generated.written.formats import encoded
from generated.written.functions import Part
from generated.written.names import names
from generated.written.setup import import_lines, is_local
from generated.written.text import Lines

_FILES = {
    "one": dict.fromkeys(("entry", "model", "data", "engine", "utils"), "train"),
    "two": {
        "entry": "main",
        "model": "main",
        "data": "main",
        "engine": "engine",
        "utils": "engine",
    },
    "many": {
        "entry": "main",
        "model": "models",
        "data": "datasets",
        "engine": "engine",
        "utils": "utils",
    },
    "package": {
        "entry": "main",
        "model": "vision/models",
        "data": "vision/datasets",
        "engine": "vision/engine",
        "utils": "vision/utils",
    },
}
_MODULES = {
    "argparse": "import argparse",
    "copy": "import copy",
    "torch": "import torch",
    "nn": "import torch.nn as nn",
    "F": "import torch.nn.functional as F",
}


@dataclass(frozen=True, slots=True)
class Program:
    """A project of one or more files; `runs` are the arguments of its runs, one after the other.

    `twin` holds the files without the known mistake, where there is one. `overflow` is the backward
    whose gradients become infinite, 0 for none. `casts`: whether it may be compared with casts;
    `scales`: whether loss scales end alike, as they do where a step has one backward.
    """

    features: Features
    files: dict[str, bytes]
    twin: dict[str, bytes]
    entry: str
    runs: tuple[tuple[str, ...], ...]
    overflow: int
    casts: bool
    scales: bool


def generate(seed: int) -> Program:
    """Return the program of a seed."""
    return build(draw(seed))


def build(f: Features) -> Program:
    """Return the program that has these features."""
    entry = f"{_FILES[f['files']]['entry']}.py"
    twin = {} if f["mistake"] == "none" else _texts({**f, "mistake": "none"})
    overflow = 0 if f["overflow"] == "none" else int(f["overflow"])
    return Program(f, _texts(f), twin, entry, _runs(f), overflow, _casts(f), _scales(f))


def _scales(f: Features) -> bool:
    read_early = f["logging"] == "scale"  # Apex has changed it by then, GradScaler has not
    once = f["accumulation"] == "none" and f["losses"] in ("one", "sum", "sum_in_call")
    return once and not read_early


def _casts(f: Features) -> bool:
    on = f["flag_run"] == "on" or not _flagged(f)
    levels = {"args": f["level_run"], "formatted": f["level_run"]}
    return on and levels.get(f["level"], f["level"]) not in ("O0", "O2")


def _flagged(f: Features) -> bool:
    by_flag = f["guard"] in ("flag", "renamed_flag", "parameter") or f["level"] == "conditional"
    return by_flag or f["other_arguments"] == "enabled"


def _runs(f: Features) -> tuple[tuple[str, ...], ...]:
    arguments: list[str] = []
    if _flagged(f) and f["flag_run"] == "on":
        arguments.append("--" + names(f).switch.rpartition(".")[2])
    if f["level"] == "args":
        arguments += ["--opt_level", f["level_run"]]
    if f["level"] == "formatted":
        arguments += ["--level", f["level_run"][1]]
    if f["scale_argument"] in ("args", "args_number"):
        arguments += ["--loss_scale", "dynamic" if f["scale_argument"] == "args" else "128.0"]
    if f["resume"] == "no":
        return (tuple(arguments),)
    return tuple(arguments), (*arguments, "--resume", "checkpoint.pt")


def _texts(f: Features) -> dict[str, bytes]:
    n = names(f)
    layouts = {"module": functions.module, "main": functions.main_only, "nested": functions.nested}
    make = classes.trainer if f["layout"] in CLASSES else layouts.get(f["layout"], functions.split)
    parts = [
        Part("make_batches make_samples", data_lines(f), "data"),
        Part("make_discriminator make_generator Classifier", model_lines(f), "model"),
        *make(f, n),
    ]
    files: dict[str, list[Part]] = {}
    for part in _with_used_options(parts):
        files.setdefault(_FILES[f["files"]][part.kind], []).append(part)
    homes = {
        name: file for file, held in files.items() for part in held for name in part.name.split()
    }
    rng = random.Random(str(sorted(f.items())))
    result = {
        f"{file}.py": encoded(f, "\n".join(_file(f, file, held, homes)) + "\n", rng)
        for file, held in files.items()
    }
    if f["files"] == "package":
        result["vision/__init__.py"] = b""
    return result


def _with_used_options(parts: list[Part]) -> list[Part]:
    """Leave out the command-line options that nothing reads."""
    text = "\n".join(line for part in parts for line in part.lines)
    used = set(re.findall(r"\bargs\.(\w+)", text))

    def kept(line: str) -> bool:
        option = re.search(r'add_argument\("--(\w+)"', line)
        return option is None or option[1] in used

    return [replace(part, lines=[line for line in part.lines if kept(line)]) for part in parts]


def _file(f: Features, file: str, parts: list[Part], homes: dict[str, str]) -> Lines:
    bodies = [line for part in parts for line in part.lines]
    lines: Lines = []
    for part in parts:
        lines += ["", "", *part.lines]
    entry = any(part.kind == "entry" for part in parts)
    if entry and f["layout"] != "module":
        lines += ["", "", 'if __name__ == "__main__":', "    main()"]
    return _spelt(f, [*_header(f, file, bodies, homes), *lines])


def _spelt(f: Features, lines: Lines) -> Lines:
    """Give the settings their name, or keep them in a mapping."""
    if f["settings"] == "opt":
        return [re.sub(r"\bargs\b", "opt", line) for line in lines]
    if f["settings"] == "mapping":
        lines = [re.sub(r"\bargs\.(\w+)", r'args["\1"]', line) for line in lines]
        return [line.replace("parser.parse_args()", "vars(parser.parse_args())") for line in lines]
    return lines


def _header(f: Features, file: str, bodies: Lines, homes: dict[str, str]) -> Lines:
    text = "\n".join(bodies)
    plain = [line for name, line in _MODULES.items() if re.search(rf"(?<![\w.]){name}\.", text)]
    if re.search(r"(?<!\.)\bDataLoader\(", text):
        plain.append("from torch.utils.data import DataLoader")
    own = []
    for name, home in homes.items():
        if home != file and re.search(rf"\b{name}\b", text):
            own.append(f"from {_module(file, home)} import {name}")
    apex = []
    uses = re.search(r"(?<![\w.])(apex\.amp|apex_amp|amp|APEX_AVAILABLE)\b(?!_)", _code(text))
    passed = f["layout"] == "amp_argument" and not any("main()" in line for line in bodies)
    if uses and not is_local(f) and not passed:
        apex = import_lines(f)
    return [*plain, *own, *apex] if f["branch_order"] == "amp_first" else [*plain, *apex, *own]


def _code(text: str) -> str:
    """Return a text without its strings and comments."""
    return re.sub(r'"[^"\n]*"|#.*', "", text)


def _module(file: str, home: str) -> str:
    name = home.replace("/", ".")
    return f".{name.rpartition('.')[2]}" if file.startswith("vision/") else name
