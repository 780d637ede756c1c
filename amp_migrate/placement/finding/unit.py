"""One AMP unit: the sites, steps, backward passes and forward regions that one training ties together."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from amp_migrate.apex.apart import elements
from amp_migrate.apex.options import Options
from amp_migrate.apex.sites import Kind, Site
from amp_migrate.availability.availability import Availability
from amp_migrate.availability.flags import not_bools, numbers
from amp_migrate.facts.below import every
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.imported import Coming, acts, coming
from amp_migrate.project.once import kept
from amp_migrate.project.programs import beside, programs
from amp_migrate.protocol.code.program import program_of
from amp_migrate.scaler.home import Home
from amp_migrate.training.forwards.forwards import Forwards
from amp_migrate.training.gradients.taken import Taken
from amp_migrate.training.origins.losses import Losses
from amp_migrate.training.region import Part, Region, calls_of, parts_of, run_by
from amp_migrate.training.steps import Backward, Step


@dataclass(eq=False)
class Unit:
    """Everything that has to change together. Built by `amp_migrate.placement.finding.build`.

    `clip_helpers` read gradients that their callers have unscaled. `beside` are backward passes for optimizers that
    Apex does not know, which stay unscaled; those `spent` stand in helpers whose callers clear their gradients.
    `probes` are backward passes for the gradient of an input alone, which nothing scales; `copying` functions run
    theirs on copies of networks. The gradients `scaled_reads` are read by a
    function where they are still scaled, and divided by the loss scale; the limits of `scaled_clips` are multiplied by
    it. The forwards of `outside` run in a library. The losses `inlined` are computed inside a call, in a function: they get
    a statement with casts of their own, as the `regions` have; the gradients `between` are taken between two of these.
    The backward passes `unscaled` add to gradients that are unscaled already. A `plain` unit is a training in FP32. `gone` are the nodes of branches that become one with others,
    `folded` those of the tests between them. `trains` tells whether a statement runs
    a backward or steps.
    """

    project: Project
    sites: list[Site]
    availability: dict[Module, Availability]
    forwards: Forwards
    home: Home
    options: dict[Site, Options]
    steps: list[Step] = field(default_factory=list)
    backwards: list[Backward] = field(default_factory=list)
    beside: list[Backward] = field(default_factory=list)
    spent: set[Backward] = field(default_factory=set)
    probes: list[Backward] = field(default_factory=list)
    outside: list[Backward] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)
    inlined: list[tuple[Function, ast.expr]] = field(default_factory=list)
    between: list[Taken] = field(default_factory=list)
    switches: list[Site] = field(default_factory=list)
    trains: Callable[[Module, ast.AST], bool] = field(init=False)
    clip_helpers: set[Function] = field(default_factory=set)
    copying: set[Function] = field(default_factory=set)
    unscaled: set[Backward] = field(default_factory=set)
    scaled_reads: dict[ast.expr, Function] = field(default_factory=dict)
    scaled_clips: dict[ast.Call, Function] = field(default_factory=dict)
    plain: bool = False
    gone: set[ast.AST] = field(default_factory=set)
    folded: set[ast.AST] = field(default_factory=set)

    @property
    def losses(self) -> Losses:
        """What computes the losses of backward passes."""
        return program_of(self.project).training.losses

    @cached_property
    def near(self) -> list[Module]:
        """The files of the programs that its uses of Apex are in, all without any: nothing runs it from elsewhere."""
        other = self.home.beside.leaving | self._of_others()
        return [module for module in self._connected if module.path not in other]

    def _of_others(self) -> set[str]:
        """Return the files that only programs run which do not initialize what the unit does.

        A file that none imports, and that neither starts anything nor initializes itself, may be imported by its name.
        """
        own = {site.module.path for site in self.of(Kind.INITIALIZE)}
        if not own:
            return set()
        ran = programs(self.project, self._connected)
        started = (f for program, f in ran.items() if not f & own and self._starts(program))
        return set().union(*started) - beside(self.project, *own)

    def _starts(self, program: Module) -> bool:
        """Tell whether a file initializes, or does something else when it is run than to define."""
        return acts(program) or any(
            isinstance(call.func, ast.Attribute)
            and call.func.attr == "initialize"
            and self.project.external(program, call.func) == "apex.amp.initialize"
            for call in program.tree.nodes(ast.Call)
        )

    @cached_property
    def _connected(self) -> list[Module]:
        """The files of the programs that its uses of Apex are in."""
        of = {site.module for site in self.sites} or self.project.modules.values()
        return self.project.connected_with(of)

    def calls(self) -> Iterator[tuple[Module, ast.Call]]:
        """Yield the calls in the files of its programs."""
        return ((module, call) for module in self.near for call in module.tree.nodes(ast.Call))

    def trained(self) -> Iterator[Part]:
        """Yield what runs under casts for a training: the statements of regions, and losses inside calls."""
        yield from parts_of(self.regions)
        yield from self.inlined

    def trained_nodes(self) -> frozenset[ast.AST]:
        """Return all nodes that run under casts for a training, nested functions included."""
        parts = tuple(self.trained())

        def nodes() -> frozenset[ast.AST]:
            return frozenset(node for _, part in parts for node in every(part))

        return kept(self.project, (every, parts), nodes)

    def trained_calls(self) -> Iterator[tuple[Module, ast.Call]]:
        """Yield the calls that run under casts for a training, each with its file."""
        return calls_of(self.trained())

    def trained_below(self) -> frozenset[Function]:
        """Return the functions that those calls run, directly or not."""
        parts = tuple(self.trained())

        def functions() -> frozenset[Function]:
            return frozenset(run_by(self.project, calls_of(parts)))

        return kept(self.project, (run_by, parts), functions)

    def of(self, *kinds: Kind) -> Iterator[Site]:
        """Yield the sites of some kinds, in source order."""
        return (site for site in self.sites if site.kind in kinds)

    def models(self) -> Iterator[tuple[Module, ast.expr]]:
        """Yield the networks that the initializes of the unit name."""
        for site in self.of(Kind.INITIALIZE):
            for node in elements(self.options[site].arguments.get("models")):
                yield site.module, node

    @property
    def modules(self) -> list[Module]:
        """The files that have a site, step or backward of the unit."""
        items: list[Site | Step | Backward] = [*self.sites, *self.steps, *self.backwards]
        return list(dict.fromkeys(item.module for item in items))

    @property
    def functions(self) -> list[Function]:
        """The functions that have a site, step or backward of the unit."""
        items: list[Site | Step | Backward] = [*self.sites, *self.steps, *self.backwards]
        return list(dict.fromkeys(item.function for item in items))

    @property
    def initializing(self) -> set[Function]:
        """The functions that initialize."""
        return {site.function for site in self.of(Kind.INITIALIZE)}

    @property
    def training(self) -> set[Function]:
        """The functions that run a backward pass or a step."""
        return {b.function for b in self.backwards} | {s.function for s in self.steps}

    @cached_property
    def beginning(self) -> Coming:
        """What comes to the initializes of the unit, by calls and imports."""
        return coming(self.project, [(s.function, s.node) for s in self.of(Kind.INITIALIZE)])

    @cached_property
    def not_bools(self) -> frozenset[str]:
        """The options of the program that are strings or numbers, and the switches that may be None."""
        names = {n for m in self.modules for _, n in self.availability[m].optional.names}
        return not_bools(self.project, self._connected) | names

    @cached_property
    def numbers(self) -> dict[str, bool]:
        """The options of the program that are numbers, and whether they always have one."""
        return numbers(self._connected)

    @property
    def scales(self) -> bool:
        """Whether the unit trains, and so needs a GradScaler; else it only runs forward passes."""
        return bool(self.backwards or self.steps)

    def switched(self) -> set[ast.AST]:
        """Return the nodes that set the switches."""
        return {n for s in self.switches for n in self.availability[s.module].optional.nodes}

    def steps_of(self, function: Function) -> list[Step]:
        """Return the optimizer steps of one function, in source order."""
        return [step for step in self.steps if step.function is function]

    def live_steps(self, function: Function | None = None) -> list[Step]:
        """Return the optimizer steps that stay, of one function or of all."""
        steps = self.steps if function is None else self.steps_of(function)
        return [step for step in steps if step.call not in self.gone]

    def live_backwards(self, function: Function | None = None) -> list[Backward]:
        """Return the backward passes that stay, of one function or of all."""
        backwards = self.backwards if function is None else self.backwards_of(function)
        return [backward for backward in backwards if backward.node not in self.gone]

    def backwards_of(self, function: Function) -> list[Backward]:
        """Return the backward passes of one function, in source order."""
        return [backward for backward in self.backwards if backward.function is function]
