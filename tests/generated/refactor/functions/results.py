"""Ways to hand the results of a helper back to its caller: a tuple, a dict, a named tuple, a data class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import libcst as cst

from generated.refactor.code.blocks import parsed
from generated.refactor.code.names import fresh
from generated.refactor.code.writing import imported
from generated.refactor.project import Project


@dataclass(frozen=True)
class Results:
    """How a helper returns: its last statement, the caller's statements, classes and imports they need.

    `received` holds the call as `{call}`.
    """

    returned: str
    received: str
    classes: tuple[cst.BaseStatement, ...] = ()
    imports: tuple[str, ...] = ()

    def statement(self, call: str) -> str:
        """Return the statements that stand in the place of the code that moved."""
        return self.received.replace("{call}", call)

    def imported(self, module: cst.Module, like: cst.Module) -> cst.Module | None:
        """Return the module with the imports, None where their names are taken in what it was before."""
        found: cst.Module | None = module
        for text in self.imports:
            found = None if found is None else imported(found, text, like)
        return found


def plain(outputs: Sequence[str]) -> Results:
    """Return nothing, the one value, or a tuple."""
    if not outputs:
        return Results("", "{call}\n")
    together = ", ".join(outputs)
    return Results(f"return {together}\n", f"{together} = {{call}}\n")


def drawn_results(
    project: Project, module: cst.Module, outputs: Sequence[str], rng: Random
) -> Results:
    """Draw a way to return some values."""
    if len(outputs) < 2 or rng.random() < 0.4:
        return plain(outputs)
    ways = [_dict, _named_tuple, _data_class, _starred, _indexed]
    return rng.choice(ways)(project, module, outputs, rng)


def _dict(project: Project, module: cst.Module, outputs: Sequence[str], rng: Random) -> Results:
    name = fresh(project, rng, ("results", "outputs", "values"))
    entries = ", ".join(f'"{k}": {k}' for k in outputs)
    reads = "".join(f'{k} = {name}["{k}"]\n' for k in outputs)
    literal = rng.random() < 0.7
    made = f"{{{entries}}}" if literal else f"dict({', '.join(f'{k}={k}' for k in outputs)})"
    return Results(f"return {made}\n", f"{name} = {{call}}\n{reads}")


def _named_tuple(
    project: Project, module: cst.Module, outputs: Sequence[str], rng: Random
) -> Results:
    if any(k.startswith("_") for k in outputs):
        return plain(outputs)
    kind = fresh(project, rng, ("Results", "Outputs", "Outcome"))
    fields = ", ".join(f'"{k}"' for k in outputs)
    classes = parsed(f'{kind} = namedtuple("{kind}", [{fields}])\n', module)
    unpacked = rng.random() < 0.5
    received = (
        f"{', '.join(outputs)} = {{call}}\n" if unpacked else _attributes(project, outputs, rng)
    )
    return Results(
        f"return {kind}({', '.join(outputs)})\n",
        received,
        tuple(classes),
        ("from collections import namedtuple",),
    )


def _data_class(
    project: Project, module: cst.Module, outputs: Sequence[str], rng: Random
) -> Results:
    kind = fresh(project, rng, ("Results", "Outputs", "Outcome"))
    unit = module.default_indent
    fields = "".join(f"{unit}{k}: object\n" for k in outputs)
    classes = parsed(f"@dataclass\nclass {kind}:\n{fields}", module)
    given = ", ".join(f"{k}={k}" if rng.random() < 0.3 else k for k in outputs)
    if "=" in given:
        given = ", ".join(f"{k}={k}" for k in outputs)
    return Results(
        f"return {kind}({given})\n",
        _attributes(project, outputs, rng),
        tuple(classes),
        ("from dataclasses import dataclass",),
    )


def _attributes(project: Project, outputs: Sequence[str], rng: Random) -> str:
    name = fresh(project, rng, ("results", "outputs", "outcome"))
    return f"{name} = {{call}}\n" + "".join(f"{k} = {name}.{k}\n" for k in outputs)


def _starred(project: Project, module: cst.Module, outputs: Sequence[str], rng: Random) -> Results:
    name = fresh(project, rng, ("rest", "others", "more"))
    later = ", ".join(outputs[1:]) + ("," if len(outputs) == 2 else "")
    return Results(
        f"return {', '.join(outputs)}\n",
        f"{outputs[0]}, *{name} = {{call}}\n{later} = {name}\n",
    )


def _indexed(project: Project, module: cst.Module, outputs: Sequence[str], rng: Random) -> Results:
    name = fresh(project, rng, ("results", "outputs", "values"))
    reads = "".join(f"{k} = {name}[{at}]\n" for at, k in enumerate(outputs))
    return Results(f"return {', '.join(outputs)}\n", f"{name} = {{call}}\n{reads}")
