"""Runners of a library that runs the model, and calls hooks of the project that do the backward and the step."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile

from amp_migrate.facts.constants import string
from amp_migrate.facts.paths import all_given, path, tail
from amp_migrate.plan.cannot import Cannot
from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.project.once import once
from amp_migrate.project.relatives import family
from amp_migrate.scaler.frameworks import MMCV
from amp_migrate.training.contexts import enters_autocast
from amp_migrate.values.values import Values


@dataclass(frozen=True, eq=False, slots=True)
class Made:
    """``runner = build_runner(...)``: where a runner is made, and what it is called."""

    function: Function
    statement: ast.Assign
    name: str


class Runners:
    """Knows how the methods that the library calls reach the runner, which then carries the scaler.

    `carried` holds where runners are made, each with the expression that reaches the scaler there; None where Apex
    is never on.
    """

    def __init__(self, project: Project, inits: Iterable[Function]) -> None:
        self._project = project
        self.library = MMCV
        made = [self.reached(function) for function in inits]
        self._apart = bool(made) and not any(made)
        self.used = False
        self.carried: list[tuple[Made, str | None]] = []

    def through(self, function: Function) -> str | None:
        """Return how a method reaches the runner: `runner` in a hook, `self` in a runner; else None."""
        return self.reached(function) if self._apart else None

    def reached(self, function: Function) -> str | None:
        """Return the same of a method wherever the initializes of the unit stand."""
        names = function.parameters.names
        if function.cls is None or function.is_static or function.is_class or not names:
            return None
        if self._is_runner(function.cls):
            return names[0]
        if not self._is_hook(function.cls):
            return None
        if function.name in self.library.events and len(names) == 2:
            return names[1]
        return self.library.given if self.library.given in names else None

    def computes(self, function: Function) -> bool:
        """Tell whether a hook takes its loss from what the library got from the model: ``runner.outputs["loss"]``."""
        if self.through(function) is None or function.cls is None:
            return False
        return any(
            isinstance(node, ast.Attribute) and node.attr == self.library.outputs
            for cls in family(function.cls)
            for method in cls.methods.values()
            for node in method.all_nodes
        )

    def made(self) -> Iterator[Made]:
        """Yield where runners are made, tests apart. Raises `Cannot` where one has no name."""
        for module, call in _making(self._project):
            yield self._named(module, call)

    def given(self, values: Values, groups: set[Hashable]) -> bool:
        """Tell whether a runner is made with one of some objects, as the optimizer."""
        return any(
            isinstance(node, ast.Name | ast.Attribute) and values.groups(module, node) & groups
            for module, call in _making(self._project)
            for node in ast.walk(call)
        )

    def makers(self) -> set[Function]:
        """Return the functions that make runners."""
        return {self._project.function_of(module, call) for module, call in _making(self._project)}

    def calls(self) -> Iterator[tuple[Module, ast.Call]]:
        """Yield the calls that make runners, each with its file."""
        for module in self.programs():
            for node in module.tree.nodes(ast.Call):
                if self._makes(module, node):
                    yield module, node

    def programs(self) -> Iterator[Module]:
        """Yield the files that are no tests of their own; none where nothing speaks of the library."""
        modules = self._project.modules.values()
        if not any(self.library.name in module.tree.text for module in modules):
            return
        folders = [module.path.split("/")[:-1] for module in modules]
        # Where the project lies says nothing about its files.
        shared = len(
            list(takewhile(lambda names: len(set(names)) == 1, zip(*folders, strict=False)))
        )
        for module in modules:
            if not _is_test(module.path.split("/")[shared:]):
                yield module

    def _named(self, module: Module, call: ast.Call) -> Made:
        statement = module.tree.parent(call)
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            name = path(statement.targets[0])
            if name is not None:
                return Made(self._project.function_of(module, call), statement, name)
        raise Cannot(
            "AMP901",
            module,
            call,
            f"the {self.library.name} runner that is made here has to carry the GradScaler, and has no name",
            "assign the runner to a variable, then run again",
        )

    def _processors(self, made: Made) -> Iterator[Function]:
        """Yield the functions of the project that a runner is given to run the model with."""
        call = made.statement.value
        given = all_given(call) if isinstance(call, ast.Call) else []
        for node in given:
            meaning = self._project.resolve(made.function.module, node)
            if isinstance(meaning, Function):
                yield meaning

    def _makes(self, module: Module, call: ast.Call) -> bool:
        if any(map(self._is_runner, self._project.constructed(call))):
            return True
        if "unner" not in tail(call):
            return False
        name = self._project.external(module, call.func) or ""
        last = name.rpartition(".")[2]
        made = last in self.library.makers or last.endswith(self.library.runner)
        return made and name.startswith(self.library.package)

    def _is_runner(self, cls: Class) -> bool:
        return any(
            self._derives(c, self.library.runner) or self._is_registered(c) for c in family(cls)
        )

    def _is_hook(self, cls: Class) -> bool:
        """Tell whether a class is a hook, or what one of the project's own classes makes a hook of."""
        return any(self._derives(each, self.library.hook) for each in (cls, *cls.subclasses()))

    def _derives(self, cls: Class, kind: str) -> bool:
        package = self.library.package
        return any(b.startswith(package) and b.endswith(kind) for b in cls.externals())

    def _is_registered(self, cls: Class) -> bool:
        registry = f"{self.library.package}.{self.library.registry}"
        heads = [d.func if isinstance(d, ast.Call) else d for d in cls.node.decorator_list]
        return any(self._project.external(cls.module, head) == registry for head in heads)

    def has_own_optimizer(self, made: Made) -> bool:
        """Tell whether the function that makes a runner makes the optimizer for it too."""
        own = {
            name
            for node in made.function.own_nodes
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            for name in map(path, node.targets)
        }
        value, module = made.statement.value, made.function.module
        given = [*_optimizers(value)]
        names = (node for node in ast.walk(value) if isinstance(node, ast.Name))
        given += [n for n in names if self._project.values.is_optimizer(module, n)]
        return any(path(node) in own for node in given)

    def refuse_other_forwards(self) -> None:
        """What runs a network but by its forward() would run in fp32. Raises `Cannot`."""
        for made in self.made():
            for function in self._processors(made):
                model = (function.parameters.names or ("model",))[0]
                if not _calls(function, model) and not _casts(self._project, function):
                    raise Cannot(
                        "AMP904",
                        *function.at(function.node or made.statement),
                        f"{self.library.name} calls {function.qualname}(), which does not call the model itself: it is not known where "
                        "autocast belongs",
                        "put its forward passes and losses under `with torch.cuda.amp.autocast():`, then run again",
                    )
        for module in self.programs():
            for cls in module.classes.values():
                method = cls.methods.get(self.library.batch)
                if method is None or not _is_run(method) or _casts(self._project, method):
                    continue
                if not _runs_forward(method, self.library.batch):
                    raise Cannot(
                        "AMP904",
                        module,
                        method.node or cls.node,
                        f"{self.library.name} calls {method.qualname}(), which does not run forward(): it is not known where autocast belongs",
                        "put its forward passes and losses under `with torch.cuda.amp.autocast():`, then run again",
                    )


def _optimizers(made: ast.expr) -> Iterator[ast.expr]:
    """Yield what a runner is given as its optimizer: by that name, or behind the network and the batch processor."""
    for node in ast.walk(made):
        if isinstance(node, ast.keyword) and node.arg == "optimizer":
            yield node.value
        elif isinstance(node, ast.Dict):
            yield from (
                v for k, v in zip(node.keys, node.values, strict=True) if string(k) == "optimizer"
            )
        elif isinstance(node, ast.Call):
            yield from node.args[2:3]


def _is_run(method: Function) -> bool:
    """Tell whether runners can call a method for a batch: they give it the batch and the optimizer, and no more."""
    parameters = method.parameters
    required = [name for name in parameters.positional if name not in parameters.defaults]
    return len(required) <= 3


def _runs_forward(method: Function, batch: str) -> bool:
    """Tell whether a method calls its own object, its `forward` or the same method of its base."""
    own = method.parameters.names[0] if method.parameters.names else "self"
    return _calls(method, own) or any(
        isinstance(node, ast.Attribute) and node.attr == batch for node in method.own_nodes
    )


def _calls(function: Function, model: str) -> bool:
    """Tell whether a function calls a network, or its forward()."""
    calls = (node.func for node in function.calls)
    return any(path(func) in (model, f"{model}.forward") for func in calls)


def _casts(project: Project, function: Function) -> bool:
    """Tell whether a function has an autocast of its own, as the finding of a hidden forward asks for."""
    return any(
        isinstance(node, ast.With) and enters_autocast(project, function.module, node)
        for node in function.own_nodes
    )


def _is_test(path: list[str]) -> bool:
    """Tell whether a file, by its folders and name within the project, is a test."""
    *folders, name = path
    return bool({"test", "tests"} & set(folders)) or name.startswith("test_")


@once
def _making(project: Project) -> list[tuple[Module, ast.Call]]:
    """Return the calls that make runners."""
    return list(Runners(project, ()).calls())
