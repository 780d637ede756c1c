"""The switch of AMP: an option of the program where it has a command line, else nothing."""

from __future__ import annotations

from amp_migrate.enable.described.draft import Draft
from amp_migrate.enable.described.parser import NAMES, Parser
from amp_migrate.enable.described.parsers import Parsers
from amp_migrate.plan.cannot import Unwritable
from amp_migrate.project import Module, Project
from amp_migrate.training.optimizers import Optimizer


class Flags:
    """Chooses the condition of AMP for each optimizer, and writes the options that conditions read.

    `name` is the option that the user wants, None for the first usual one that is free; with `always` there is none.
    """

    def __init__(self, project: Project, name: str | None, always: bool) -> None:
        self._name = name.lstrip("-").replace("-", "_") if name else None
        self._always = always
        self._parsers = Parsers(project)
        self._chosen: dict[tuple[Module, object], tuple[Parser, str]] = {}

    def condition(self, optimizer: Optimizer) -> str:
        """Return the text of the condition where an optimizer is made, empty for always. Raises `Unwritable`."""
        if self._always:
            return ""
        found = self._parsers.reach(optimizer.function, optimizer.statement)
        if found is None:
            if self._name:
                raise Unwritable(
                    optimizer.module,
                    optimizer.call,
                    f"no option of the command line can be read where `{optimizer.spoken}` is made",
                    "pass the options to that place, or use --always, then run again",
                )
            return ""
        spelt, parsers = found
        names = [self._name] if self._name else NAMES
        free = [name for name in names if not any(name in parser.options for parser in parsers)]
        if not free:
            raise Unwritable(
                optimizer.module,
                optimizer.call,
                f"the program has an option or attribute {' and '.join(names)} already",
                "choose another name with --flag NAME, or use --always, then run again",
            )
        for parser in parsers:
            self._chosen[parser.module, parser.node] = parser, free[0]
        return spelt.format(free[0])

    def write(self, drafts: dict[Module, Draft]) -> list[tuple[Parser, str]]:
        """Write the options that conditions read into drafts; return the parsers with the names of the options."""
        for parser, name in self._chosen.values():
            parser.add(drafts.setdefault(parser.module, Draft(parser.module.tree)), name)
        return list(self._chosen.values())
