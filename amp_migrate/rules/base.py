"""What a rule is, and what rules are given to decide with."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.autocast.bce import Bce
from amp_migrate.autocast.casts import Casts, Told
from amp_migrate.autocast.evaluated.evaluation import evaluations
from amp_migrate.autocast.given.networks import Networks
from amp_migrate.autocast.given.patched import Patched
from amp_migrate.autocast.inlines import Inline
from amp_migrate.availability.availability import Availability
from amp_migrate.dual.branches import Branches
from amp_migrate.placement.backwards.scaled import ScaleLoss
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.making.creation import Creation
from amp_migrate.placement.steps.shared import Shared
from amp_migrate.placement.unscaling.unscale import Unscale
from amp_migrate.plan.model import Decision, Edit, Finding, Place, Status
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.programs import beside
from amp_migrate.scaler.spelling import Spelling
from amp_migrate.settings import Settings
from amp_migrate.training.region import Region
from amp_migrate.training.types.compiled import is_compiled


class Safety(enum.Enum):
    """What a rule does to the training."""

    FAITHFUL = "faithful"
    CHANGES = "changes behaviour"
    REPORT = "report only"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as `explain`, the reports and the documentation show it; `doc` is its full text.

    Rules decide in the order of `order`, then of their codes: edits at one place are applied in that order.
    """

    code: str
    title: str
    safety: Safety
    doc: str = ""
    order: int = 50

    @property
    def family(self) -> str:
        """The hundred it belongs to, as "AMP1"."""
        return self.code[:4]


@dataclass(slots=True)
class Context:
    """One unit with everything that was found out about it, as the rules see it."""

    unit: Unit
    settings: Settings
    spelling: Spelling
    scaled: dict[Site, ScaleLoss]
    branches: Branches
    casts: Casts
    creations: dict[Site, Creation] = field(default_factory=dict)
    misplaced: list[Site] = field(default_factory=list)
    unscales: list[Unscale] = field(default_factory=list)
    shared: Shared = field(default_factory=Shared)
    inlines: list[Inline] = field(default_factory=list)
    entropies: list[Bce] = field(default_factory=list)
    hoisted_losses: dict[ScaleLoss, str] = field(default_factory=dict)
    _evaluations: list[Region] | None = None
    _networks: Networks | None = None
    _patched: Patched | None = None

    def evaluations(self) -> list[Region]:
        """Return the evaluation forwards of the unit that no training region holds, but for code that is compiled: O1 cast none there."""
        if self._evaluations is None:
            project, found = self.unit.project, evaluations(self.unit)
            self._evaluations = [r for r in found if not is_compiled(project, r.function)]
        return list(self._evaluations)

    @property
    def networks(self) -> Networks:
        """Which networks regions run that Apex was not given."""
        if self._networks is None:
            self._networks = Networks(self.unit)
        return self._networks

    def patched(self, region: Region) -> Patched | None:
        """Return what tells when Apex cast a region of networks that it was not given; None for one of others, or where it cannot say so."""
        if not self.networks.only_others(region):
            return None
        if self._patched is None:
            self._patched = Patched(self.unit, self.casts.creations)
        told = self._patched.told(region.function, region.first, training=False)
        return self._patched if told is not None else None

    def told(self, region: Region) -> Told | None:
        """Return `enabled=` of an evaluation and what it asks; None where its function can see neither flag nor scaler."""
        casts = self.patched(region) or self.casts
        return casts.told(region.function, region.first, training=False)

    def enabled(self, region: Region) -> str | None:
        """Return the text of `enabled=` of an evaluation; empty where casts are always on, None where nothing can be said."""
        told = self.told(region)
        return None if told is None else told.text

    def is_gone(self, node: ast.AST) -> bool:
        """Tell whether a node lies in a branch that disappears."""
        return node in self.unit.gone

    def loss_text(self, block: ScaleLoss) -> str:
        """Return the loss of a scale_loss block, by its new name where its computation moved before it."""
        return self.hoisted_losses.get(block) or block.site.module.tree.segment(block.loss)

    def hoisted(self, loss: ast.expr) -> str | None:
        """Return the new name of a loss that is computed in a statement of its own under autocast."""
        if self.casts.never:
            return None
        return next((inline.name for inline in self.inlines if inline.node is loss), None)

    def scaler(self, function: Function, node: ast.AST) -> str:
        """Return the expression that reaches the GradScaler at a place."""
        return self.unit.home.access(function, node)


@dataclass(slots=True)
class FileContext:
    """One file after its units were decided: the sites that no unit took, for rules that need no unit.

    `keeps_guards`: a unit of the project was left, and what serves it in this file stays.
    `untrained`: nothing in the project initializes Apex; whoever imports it may have done so.
    `held`: the places of the project that are left, each with the place of what keeps it.
    """

    project: Project
    module: Module
    settings: Settings
    spelling: Spelling
    sites: list[Site]
    availability: Availability
    taken: set[object]
    keeps_guards: bool = False
    untrained: bool = False
    held: Mapping[Place, Place] = field(default_factory=dict)

    def cause_of(self, *sites: Site) -> Place | None:
        """Return what keeps some places: their own cause, or the first in the file, or in those that run with it, that is none of them."""
        places = [site.place for site in sites]
        own = [self.held[place] for place in places if place in self.held]
        near = [cause for place, cause in self.held.items() if place.path == self.module.path]
        files = beside(self.project, self.module.path) if self.held else ()
        ran = [cause for place, cause in self.held.items() if place.path in files]
        return next((c for c in (*own, *near, *ran) if c not in places), None)

    def of(self, *kinds: Kind) -> Iterator[Site]:
        """Yield the sites of some kinds, in source order."""
        return (site for site in self.sites if site.kind in kinds)

    def others(self) -> list[Module]:
        """Return the other files of the project."""
        return [m for m in self.project.modules.values() if m is not self.module]


def decision(
    rule: Rule,
    status: Status,
    module: Module,
    node: ast.AST,
    message: str,
    edits: Iterable[Edit] = (),
    advice: str = "",
    named: tuple[Place, ...] = (),
) -> Decision:
    """Make the decision of a rule about a place, with edits in the same file; `named` are places that its text names."""
    span = module.tree.span(node)
    finding = Finding(module.path, span, rule.code, status, message, advice, named=named)
    return Decision(finding, [(module.path, edit) for edit in edits])
