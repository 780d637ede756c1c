"""What works in FP32 and not in 16 bits: said of the networks and functions that run under autocast, or mended there."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from amp_migrate.enable.described.draft import Draft
from amp_migrate.enable.described.trainings import Training
from amp_migrate.enable.hazards.hazard import Hazard
from amp_migrate.enable.hazards.products import Products, calls_of
from amp_migrate.facts.paths import all_given, tail
from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.project.order import loop_of
from amp_migrate.project.reach import reachable, run_around
from amp_migrate.training.objects import Objects
from amp_migrate.training.reads.refusing import Refusing

LARGEST = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38}
_FILLS = frozenset({"masked_fill", "masked_fill_"})
_INTO = frozenset(
    {
        "addbmm_", "addmm_", "addmv_", "baddbmm_", "index_add_", "index_copy_", "index_put_", "masked_scatter_",
        "scatter_", "scatter_add_",
    }
)  # fmt: skip
"""Methods that want values of the type of the tensor into which they write."""
_WHOLE = ("torch.fft.", "torch.linalg.")
_ALONE = frozenset(
    {"torch.cholesky", "torch.det", "torch.inverse", "torch.logdet", "torch.pinverse", "torch.qr"}
    | {"torch.slogdet", "torch.solve", "torch.stft", "torch.svd", "torch.symeig"}
)
_FINE = frozenset({"torch.linalg.norm", "torch.linalg.vector_norm", "torch.linalg.matmul"})
_ATOMS = ast.Name | ast.Attribute | ast.Call | ast.Subscript
_TYPES = dict.fromkeys(("torch.float16", "torch.half", "torch.bfloat16"), 16)
_TYPES |= dict.fromkeys(("torch.float64", "torch.double"), 64)
_METHODS = {"half": 16, "bfloat16": 16, "double": 64}


def _place(function: Function) -> tuple[str, int]:
    return function.module.path, getattr(function.node, "lineno", 0)


class Hazards:
    """Looks through what runs under autocast once a training is enabled."""

    def __init__(self, project: Project, objects: Objects, dtype: str) -> None:
        self._project = project
        self._objects = objects
        self._dtype = dtype
        self._refusing = Refusing(project, objects)

    def weights(self, training: Training) -> Hazard | None:
        """Return where a network of a training is made 16 or 64 bits wide as a whole, which no autocast mends."""
        trained = {group for optimizer in training.optimizers for group in optimizer.trains}
        for method in (*_METHODS, "to"):
            for module, call in self._objects.method_calls.get(method, ()):
                assert isinstance(call.func, ast.Attribute)
                width = _METHODS.get(method) or self._given(module, call)
                held = self._objects.groups(module, call.func.value) | self._objects.groups(
                    module, call
                )
                if width and held & trained:
                    said = f"the network has weights in {width} bits here, and AMP is for those in FP32"
                    how = "leave this out: autocast casts what is safe, then run again"
                    return Hazard("AMP597", module, call, said, how)
        return None

    def _given(self, module: Module, call: ast.Call) -> int | None:
        """Return how many bits the type that `to` is given has, None for FP32 or no type."""
        given = all_given(call)
        names = (
            self._project.external(module, node)
            for node in given
            if isinstance(node, ast.Attribute | ast.Name)
        )
        return next((_TYPES[name] for name in names if name in _TYPES), None)

    def mend(self, trainings: Iterable[Training], drafts: dict[Module, Draft]) -> list[Hazard]:
        """Return the hazards of trainings; those that one word mends are mended in drafts."""
        found = []
        every = list(trainings)
        trained = {g for t in every for optimizer in t.optimizers for g in optimizer.trains}
        run = self._run(every)
        beside = list(dict.fromkeys([*run, *(f for t in every for f in self._run_with(t))]))
        for function in run:
            for call in calls_of(self._project, function):
                found += list(self._of(function, call, drafts))
        for function in beside:
            for call in calls_of(self._project, function):
                found += list(self._entropy(function, call, trained, drafts))
        products = Products(self._project, self._dtype, drafts)
        return [*found, *products.of_features(run), *products.of_sparse(beside)]

    def schedulers(self, trainings: Iterable[Training]) -> Iterator[Hazard]:
        """Yield the schedulers that step in a loop in which their optimizer does."""
        if self._dtype != "float16":
            return
        steps = self._objects.method_calls.get("step", ())
        trained = {g for t in trainings for optimizer in t.optimizers for g in optimizer.groups}
        stepping = [
            loop_of(module.tree, call)
            for module, call in steps
            if isinstance(call.func, ast.Attribute)
            and self._objects.groups(module, call.func.value) & trained
        ]
        for module, call in steps:
            assert isinstance(call.func, ast.Attribute)
            made = self._project.values.made_by(module, call.func.value)
            if any(".lr_scheduler." in name for name in made):
                if loop_of(module.tree, call) in stepping and loop_of(module.tree, call):
                    said = (
                        "torch may warn here that the scheduler steps before the optimizer: the GradScaler skips "
                        "the first steps until it has found its scale"
                    )
                    yield Hazard("AMP513", module, call, said, "this is harmless")

    def _run_with(self, training: Training) -> list[Function]:
        """Return the functions that the programs run in which a training runs a backward."""
        found = run_around(self._project, *(b.function for b in training.backwards))
        return sorted(found, key=_place)

    def _entropy(
        self, function: Function, call: ast.Call, trained: set[int], drafts: dict[Module, Draft]
    ) -> Iterator[Hazard]:
        """Give binary cross entropy its probabilities in FP32: it takes no others beside targets in FP32."""
        module = function.module
        name = self._project.external(module, call.func)
        if not call.args or not self._refusing.runs(function, call, name):
            return
        given = call.args[0]
        text = module.tree.segment(given)
        inner = [node for node in ast.walk(given) if isinstance(node, ast.Call)]
        if any(self._objects.groups(module, node.func) & trained for node in inner):
            return  # the network stands in the call itself, and is taken out of it
        if text.endswith(".float()") or not isinstance(given, _ATOMS):
            return
        end = module.tree.span(given)[2:]
        drafts.setdefault(module, Draft(module.tree)).put(end, end, ".float()")
        said = (
            "binary cross entropy gets its probabilities in FP32, whatever type the network gives"
        )
        yield Hazard("AMP510", module, call, said)

    def _of(
        self, function: Function, call: ast.Call, drafts: dict[Module, Draft]
    ) -> Iterator[Hazard]:
        module = function.module
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        name = self._project.external(module, call.func) or ""
        if method in _FILLS and len(call.args) > 1 and self._too_large(call.args[1]):
            yield self._fill(module, call, drafts)
        elif method in _INTO and name == "":
            said = f"`{method}` raises where its tensor is FP32 and the values come out of autocast"
            yield Hazard("AMP511", module, call, said, "give it values with `.to(tensor.dtype)`")
        elif (name.startswith(_WHOLE) or name in _ALONE) and name not in _FINE:
            said = f"`{name}` does not take {self._dtype} on every device"
            how = "call it on `x.float()` under `torch.autocast(..., enabled=False)`"
            yield Hazard("AMP511", module, call, said, how)
        elif name == "torch.autograd.grad" and self._dtype == "float16":
            said = (
                "gradients that are taken here are not scaled, and small ones become zero in fp16"
            )
            how = "scale the outputs by `scaler.scale` and divide the gradients, or use --dtype bfloat16"
            yield Hazard("AMP511", module, call, said, how)
        elif any(k.arg == "out" for k in call.keywords) and name.startswith("torch."):
            said = f"`{tail(call)}(out=...)` raises where autocast gives its inputs another type than `out` has"
            yield Hazard("AMP511", module, call, said, "leave out `out=` and copy the result")

    def _fill(self, module: Module, call: ast.Call, drafts: dict[Module, Draft]) -> Hazard:
        assert isinstance(call.func, ast.Attribute)
        held = call.func.value
        value = module.tree.segment(call.args[1])
        alone = isinstance(module.tree.parent(call), ast.Expr)
        if call.func.attr == "masked_fill_" and alone:
            said = f"{value} is out of the range of {self._dtype}, and this raises under autocast"
            how = "fill with `torch.finfo(tensor.dtype).min`"
            return Hazard("AMP511", module, call, said, how)
        end = module.tree.span(held)[2:]
        drafts.setdefault(module, Draft(module.tree)).put(end, end, ".float()")
        said = f"{value} is out of the range of {self._dtype}: what it fills stays FP32"
        return Hazard("AMP510", module, call, said)

    def _too_large(self, node: ast.expr) -> bool:
        try:
            value = ast.literal_eval(node)
        except ValueError:
            return False
        return isinstance(value, int | float) and LARGEST[self._dtype] < abs(value) < float("inf")

    def _run(self, trainings: Iterable[Training]) -> list[Function]:
        """Return the methods of the networks of trainings, and the functions that run their backward passes."""
        classes: list[Class] = []
        found: dict[Function, None] = {}
        for training in trainings:
            found.update(dict.fromkeys(backward.function for backward in training.backwards))
            for optimizer in training.optimizers:
                for node in optimizer.function.all_nodes:
                    if isinstance(node, ast.Name | ast.Attribute):
                        groups = self._objects.groups(optimizer.module, node)
                        if groups & optimizer.trains:
                            classes += self._project.instance_classes(optimizer.module, node)
        for cls in classes:
            for method in cls.methods.values():
                if method in found:
                    continue
                found[method] = None
                for call in method.all_calls:
                    made = self._project.constructed(call)
                    classes += [c for c in made if c not in classes]
        helpers = {f for function in found for f in reachable(self._project, function)}
        found.update(dict.fromkeys(sorted(helpers - set(found), key=_place)))
        return list(found)
