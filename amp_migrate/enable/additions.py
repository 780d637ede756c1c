"""What a training gets beside AMP itself: the state of its GradScaler in checkpoints, words about hazards, an option."""

from __future__ import annotations

from collections.abc import Iterator

from amp_migrate.enable.described.checkpoints import Checkpoints
from amp_migrate.enable.described.draft import Draft
from amp_migrate.enable.described.parser import Parser
from amp_migrate.enable.described.trainings import Training, Trainings
from amp_migrate.enable.hazards.hazard import Hazard
from amp_migrate.enable.hazards.operations import Hazards
from amp_migrate.enable.hazards.parallel import Parallel
from amp_migrate.plan.model import Finding, Status
from amp_migrate.project import Module


class Additions:
    """Writes into drafts what the planner need not know of."""

    def __init__(self, trainings: Trainings, dtype: str) -> None:
        objects = trainings.program.training.objects
        self._hazards = Hazards(trainings.project, objects, dtype)
        self.parallel = Parallel(trainings.project, objects)
        self._checkpoints = Checkpoints(trainings.optimizers, objects)
        self._scaled = dtype == "float16"

    def forbids(self, training: Training) -> Hazard | None:
        """Return what keeps a training from having AMP of this type."""
        halved = self._hazards.weights(training)
        return halved if halved or self._scaled else self.parallel.unseen(training)

    def inside(self, now: list[Training]) -> list[tuple[str, str]]:
        """Return the methods that need autocast inside, by file and name."""
        return [] if self._scaled else [place for _, place in self.parallel.forwards(now)]

    def threads(self, now: list[Training], planned: list[Finding]) -> list[Finding]:
        """Return what is said about threads of the program, given what is planned."""
        cast = [(f.path, f.span.line) for f in planned if f.code in ("AMP502", "AMP503")]
        return [hazard.finding() for hazard in self.parallel.threads(now, cast)]

    def write(self, now: list[Training], drafts: dict[Module, Draft]) -> list[Finding]:
        """Write for some trainings; return what is said about it."""
        found = []
        for hazard in self._hazards.mend(now, drafts):
            status = Status.ROUTINE if hazard.code == "AMP510" else Status.NOTE
            found.append(hazard.finding(status))
        found += [hazard.finding() for hazard in self._hazards.schedulers(now)]
        if not self._scaled:
            found += [hazard.finding() for hazard, _ in self.parallel.forwards(now)]
        for training in now if self._scaled else ():
            for held, said in self._checkpoints.write(training, drafts):
                place = held.module.path, held.module.tree.span(held.node)
                found.append(Finding(*place, "AMP508", Status.ROUTINE, said))
        return found


def option(parser: Parser, name: str) -> Finding:
    """Return what is said about an option that a command line gets."""
    on, off = parser.spelt(name)
    said = f"the command line gets {on} and {off}; AMP is on by default"
    span = parser.module.tree.span(parser.node)
    return Finding(parser.module.path, span, "AMP509", Status.ROUTINE, said)


def others(trainings: Trainings) -> Iterator[Finding]:
    """Yield what is said about trainings with AMP, and backward passes of which no optimizer is known."""
    for training in trainings.every:
        if training.native:
            first = training.optimizers[0]
            said = f"the training of `{first.spoken}` has native AMP already"
            span = first.module.tree.span(first.call)
            yield Finding(first.module.path, span, "AMP594", Status.NOTE, said)
    for module, call in trainings.lost:
        status = Status.LEFT if trainings.steps else Status.NOTE
        said = "it is not known which optimizer steps on the gradients of this backward pass"
        advice = "make the optimizer in the files given, by a class of torch.optim, then run again"
        yield Finding(module.path, module.tree.span(call), "AMP590", status, said, advice)
