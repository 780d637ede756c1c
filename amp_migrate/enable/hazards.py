"""What works in FP32 and not in 16 bits: said of the networks and functions that run under autocast, or mended there."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from amp_migrate.enable.described.draft import Draft
from amp_migrate.enable.described.trainings import Training
from amp_migrate.facts.paths import tail
from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.training.objects import Objects

LARGEST = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38}
_FILLS = frozenset({"masked_fill", "masked_fill_"})
_INTO = frozenset(
    {
        "addbmm_",
        "addmm_",
        "addmv_",
        "baddbmm_",
        "index_add_",
        "index_copy_",
        "index_put_",
        "masked_scatter_",
        "scatter_",
        "scatter_add_",
    }
)
"""Methods that want values of the type of the tensor into which they write."""
_WHOLE = ("torch.fft.", "torch.linalg.")
_ALONE = frozenset(
    {"torch.cholesky", "torch.det", "torch.inverse", "torch.logdet", "torch.pinverse", "torch.qr"}
    | {"torch.slogdet", "torch.solve", "torch.stft", "torch.svd", "torch.symeig"}
)
_FINE = frozenset({"torch.linalg.norm", "torch.linalg.vector_norm", "torch.linalg.matmul"})
_HALVES = frozenset({"torch.float16", "torch.half", "torch.bfloat16"})


@dataclass(frozen=True, eq=False)
class Hazard:
    """Something that 16 bits break: the rule that speaks of it, where, and what to do."""

    code: str
    module: Module
    node: ast.expr
    message: str
    advice: str = ""


class Hazards:
    """Looks through what runs under autocast once a training is enabled."""

    def __init__(self, project: Project, objects: Objects, dtype: str) -> None:
        self._project = project
        self._objects = objects
        self._dtype = dtype

    def weights(self, training: Training) -> Hazard | None:
        """Return where a network of a training is made 16 bits wide as a whole, which no autocast mends."""
        trained = {group for optimizer in training.optimizers for group in optimizer.trains}
        for method in ("half", "bfloat16", "to"):
            for module, call in self._objects.method_calls.get(method, ()):
                assert isinstance(call.func, ast.Attribute)
                if method == "to" and not any(
                    self._project.external(module, node) in _HALVES
                    for node in (*call.args, *(k.value for k in call.keywords))
                    if isinstance(node, ast.Attribute | ast.Name)
                ):
                    continue
                held = self._objects.groups(module, call.func.value) | self._objects.groups(
                    module, call
                )
                if held & trained:
                    said = "the network has weights in 16 bits here, and AMP keeps them in FP32"
                    how = "leave this out: autocast casts what is safe, then run again"
                    return Hazard("AMP597", module, call, said, how)
        return None

    def mend(self, trainings: Iterable[Training], drafts: dict[Module, Draft]) -> list[Hazard]:
        """Return the hazards of trainings; those that one word mends are mended in drafts."""
        found = []
        for function in self._run(trainings):
            for node in ast.walk(function.scope):
                if isinstance(node, ast.Call):
                    if self._project.function_of(function.module, node) is function:
                        found += list(self._of(function, node, drafts))
        return found

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
        value = ast.unparse(call.args[1])
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
                for node in ast.walk(optimizer.function.scope):
                    if isinstance(node, ast.Name | ast.Attribute):
                        groups = self._objects.groups(optimizer.module, node)
                        if groups & optimizer.trains:
                            classes += self._project.instance_classes(optimizer.module, node)
        for cls in classes:
            for method in cls.methods.values():
                if method in found:
                    continue
                found[method] = None
                for call in ast.walk(method.scope):
                    if isinstance(call, ast.Call):
                        made = self._project.constructed(call)
                        classes += [c for c in made if c not in classes]
        return list(found)
