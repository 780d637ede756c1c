"""Networks that run in threads: torch's own threads know that autocast is on and not its type, others know nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from amp_migrate.autocast.slicing.threads import started
from amp_migrate.enable.described.trainings import Training
from amp_migrate.enable.hazards.hazard import Hazard
from amp_migrate.facts.below import behind_docstring
from amp_migrate.facts.tree import FunctionNode, Tree
from amp_migrate.plan.model import AddImport, Edit, Wrap
from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.project.reach import reachable
from amp_migrate.rewrite import rewrite
from amp_migrate.rules.torch_import import binds_torch
from amp_migrate.scaler.spelling import Spelling
from amp_migrate.training.forwards.forwards import Forwards
from amp_migrate.training.objects import Objects

_DATA_PARALLEL = frozenset({"torch.nn.DataParallel", "torch.nn.parallel.DataParallel"})
_ADVICE = "if {}() runs a network, enter `torch.autocast` in it, too"
Place = tuple[str, str]


class Parallel:
    """Finds what runs the networks of trainings in threads."""

    def __init__(self, project: Project, objects: Objects) -> None:
        self._project = project
        self._objects = objects

    def replicated(self, training: Training) -> list[tuple[Module, ast.Call, list[Class]]]:
        """Return the DataParallel of the networks of a training, with the classes that the project has of them."""
        trained = {group for optimizer in training.optimizers for group in optimizer.trains}
        return [
            (module, call, self._project.instance_classes(module, call.args[0]))
            for module, call in self._project.nodes(ast.Call)
            if call.args and self._project.external(module, call.func) in _DATA_PARALLEL
            if self._objects.groups(module, call.args[0]) & trained
        ]

    def unseen(self, training: Training) -> Hazard | None:
        """Return a DataParallel whose network has no class here, into whose `forward` autocast could go."""
        for module, call, classes in self.replicated(training):
            if not classes or not all(_forward(cls) for cls in classes):
                said = "DataParallel runs the network in threads, where autocast casts to float16, whatever it was asked"
                how = "use DistributedDataParallel or --dtype float16, or put autocast inside the network's forward()"
                return Hazard("AMP512", module, call, said, how)
        return None

    def forwards(self, trainings: Iterable[Training]) -> list[tuple[Hazard, Place]]:
        """Return the methods `forward` that need autocast inside, each by its file and name, with what is said."""
        found: dict[Place, Hazard] = {}
        for training in trainings:
            for module, call, classes in self.replicated(training):
                for cls in classes:
                    said = f"autocast stands inside {cls.qualname}.forward() too: the threads of DataParallel know no bfloat16"
                    place = cls.module.path, f"{cls.qualname}.forward"
                    found.setdefault(place, Hazard("AMP512", module, call, said))
        return [(hazard, place) for place, hazard in found.items()]

    def threads(
        self, trainings: Iterable[Training], cast: Iterable[tuple[str, int]]
    ) -> Iterator[Hazard]:
        """Yield what is said about threads that may run a network, given the places (file, line) that got autocast."""
        trains = {backward.function for t in trainings for backward in t.backwards}
        places = set(cast)
        forwards = Forwards(self._project, [])
        for module in self._project.modules.values():
            for call, function in started(self._project, module):
                within = reachable(self._project, function)
                if function.node is None or trains.intersection(within):
                    continue  # autocast stands in what a thread trains
                lines = range(function.node.lineno, (function.node.end_lineno or 0) + 1)
                if any(path == function.module.path and n in lines for path, n in places):
                    said = f"autocast stands inside {function.qualname}(): a thread runs it, which knows nothing of others"
                    yield Hazard("AMP512", module, call, said)
                elif any(_may_run(forwards, each) for each in within):
                    said = f"a thread runs {function.qualname}(), and knows nothing of the autocast around its start"
                    yield Hazard("AMP512", module, call, said, _ADVICE.format(function.qualname))


def _may_run(forwards: Forwards, function: Function) -> bool:
    """Tell whether a function may run a network: by a call that is known to, or of what it is given."""
    body = function.node.body if function.node is not None else []
    given = function.parameters.names
    calls = [n for s in body for n in ast.walk(s) if isinstance(n, ast.Call)]
    named = (call.func.id for call in calls if isinstance(call.func, ast.Name))
    return any(forwards.may_run(function.module, s) for s in body) or any(n in given for n in named)


def _forward(cls: Class) -> bool:
    return cls.method("forward") is not None


def inside(
    texts: Mapping[str, str], old: Mapping[str, Tree], places: Iterable[Place], spelling: Spelling
) -> dict[str, str]:
    """Return texts in which some methods run under autocast where their callers do."""
    found = dict(texts)
    header = f"with {spelling.autocast('torch.is_autocast_enabled()')}:"
    for path, name in places:
        tree = Tree(path, found.get(path, old[path].text))
        node = next(n for n in tree.nodes(ast.FunctionDef) if _name(tree, n) == name)
        body = behind_docstring(node)
        edits: list[Edit] = [Wrap(tree.span(body[0]), tree.span(body[-1]), header)]
        if not binds_torch(tree):
            edits.append(AddImport("import torch"))
        found[path] = rewrite(tree.text, edits)
    return found


def _name(tree: Tree, node: FunctionNode) -> str:
    """Return the qualified name of a method."""
    parts = [node.name]
    up = tree.parent(node)
    while isinstance(up, ast.ClassDef):
        parts.append(up.name)
        up = tree.parent(up)
    return ".".join(reversed(parts))
