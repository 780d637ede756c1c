"""The events of a training as either side writes them: Apex and native code that do the same get one label."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from enum import Enum

from amp_migrate.check.events.copies import copied
from amp_migrate.check.events.held import by_held
from amp_migrate.check.events.traces import Label
from amp_migrate.facts.below import every
from amp_migrate.facts.constants import is_false, is_none
from amp_migrate.facts.paths import all_given, argument, called_on, path, prefixes, tail
from amp_migrate.flow.cfg.points import Kind as PointKind
from amp_migrate.project import Function, Project
from amp_migrate.project.reach import reachable
from amp_migrate.protocol.code.program import Program
from amp_migrate.training.beliefs import APEX_STATE, PARAMETERS, READS_GRADIENTS
from amp_migrate.training.contexts import scales_loss, scaling_calls
from amp_migrate.training.events import Kind
from amp_migrate.training.gradients.magnitude import unscaled
from amp_migrate.training.named import scale_in, sets_scale
from amp_migrate.training.steps import runs_backward


class Does(Enum):
    """What a label says that happens."""

    BACKWARD = "backward"
    STEP = "step"
    CLEAR = "zero_grad"
    READ = "reads gradients"
    SAVE = "saves the loss scale"
    LOAD = "loads the loss scale"
    FORWARD = "forward"
    CALL = "calls"
    TEST = "if"
    LOOP = "for"
    END = "ends"


_Asked = tuple[Function, ast.Call, frozenset[str]]
_CHANGES_WEIGHTS = frozenset({Kind.STEP, Kind.OTHER_STEP, Kind.WEIGHT_WRITE})
_OPTIONS = frozenset({"create_graph", "grad_tensors", "gradient", "inputs", "retain_graph"})
_SCALER_ALONE = frozenset({"unscale_", "update", "get_scale", "scale"})


class Labels:
    """Reads the labels of one side.

    `known` are the names that the other side's function of a key has too; what only this side has stands for its
    value.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self._project = program.project
        self._objects = program.training.objects
        self._found: dict[_Asked, Label | None] = {}

    def of_call(
        self, function: Function, call: ast.Call, introduced: frozenset[str] = frozenset()
    ) -> Label | None:
        """Return what a call does by itself, None for nothing that both sides have in common.

        `introduced` are names of the function that the other side does not have.
        """
        asked = function, call, introduced
        if asked not in self._found:
            self._found[asked] = by_held(self.program, function, call) or self._of_call(*asked)
        return self._found[asked]

    def _of_call(
        self, function: Function, call: ast.Call, introduced: frozenset[str]
    ) -> Label | None:
        receiver = called_on(call)
        method = call.func.attr if isinstance(call.func, ast.Attribute) else tail(call)
        if method == "backward" and receiver is not None:
            return self._backward(function, call, receiver, introduced)
        if method in READS_GRADIENTS:
            named = [k.value for k in call.keywords if k.arg != PARAMETERS]
            others = [*call.args[1:], *named]
            others = [*map(unscaled, others)] if self.reads_scaled(function, call) else others
            return Label(Does.READ.value, " ".join([method, *map(text_of, others)]))
        if isinstance(function.module.tree.parent(call), ast.Subscript | ast.Attribute):
            if method == "state_dict":
                return None  # one entry is read, and nothing saved
        if receiver is None:
            return self._of_function(function, call)
        if sets_scale(call) is not None or self._is_in_scale(function, call):
            return None  # as update(scale)
        if method in _SCALER_ALONE or method == "step":
            if self._is_scaler(function, receiver, introduced):
                stepped = argument(call, "optimizer", 0) if method == "step" else None
                return None if stepped is None else Label(Does.STEP.value, text_of(stepped))
            stepping = method == "step" and not self._only_reads(function, call)
            return Label(Does.STEP.value, text_of(receiver)) if stepping else None
        if method == "zero_grad":
            return Label(Does.CLEAR.value, text_of(receiver))
        if method in APEX_STATE and (
            self._is_scaler(function, receiver, introduced) or self.is_apex(function, receiver)
        ):
            return _of_state(method)
        return None

    def reads_scaled(self, function: Function, call: ast.Call) -> bool:
        """Tell whether a clip takes gradients that are scaled, and is scaled as they are."""
        events = self.program.training.of(function).get(call, ())
        return any(event.kind is Kind.READ_GRAD and event.scaled for event in events)

    def _only_reads(self, function: Function, call: ast.Call) -> bool:
        """Tell whether a ``step`` of the project's own reads gradients and changes no weights: a clip by another name."""
        project, events = self._project, self.program.training.of
        ran = {r for callee in project.callees(call) for r in reachable(project, callee)}
        found = [events(function).get(call, ())]
        found += (e for r in ran for e in events(r).values())
        kinds = {event.kind for held in found for event in held}
        if Kind.READ_GRAD not in kinds or not kinds.isdisjoint(_CHANGES_WEIGHTS):
            return False
        return not any(_steps_unseen(project, r) for r in ran)

    def _is_in_scale(self, function: Function, call: ast.Call) -> bool:
        """Tell whether a call gives the rest of a state in which another loss scale is set."""
        up = function.module.tree.parent(call)
        return isinstance(up, ast.Dict) and scale_in(up) is not None

    def _of_function(self, function: Function, call: ast.Call) -> Label | None:
        """Return what a function of Apex does that is called by a name of its own."""
        name = self._project.apex(function.module, call.func) or ""
        method = name.rpartition(".")[2]
        return _of_state(method) if method in APEX_STATE else None

    def of_gradient(self, function: Function, node: ast.Attribute) -> Label | None:
        """Return what an attribute ``x.grad`` does; None where it is only asked whether there is one."""
        up = function.module.tree.parent(node)
        if isinstance(up, ast.Compare) and isinstance(up.ops[0], ast.Is | ast.IsNot):
            return None
        kind = {ast.Load: "", ast.Store: " = ", ast.Del: " del"}[type(node.ctx)]
        return Label(Does.READ.value, text_of(node) + kind)

    def _is_scaler(self, function: Function, node: ast.expr, introduced: frozenset[str]) -> bool:
        if self._objects.scaler(function.module, node) is not None:
            return True
        return path(node) is not None and bool(prefixes(text_of(node)) & introduced)

    def is_apex(self, function: Function, node: ast.expr) -> bool:
        """Tell whether an expression is Apex or something of it."""
        name = self._project.external(function.module, node) or ""
        return name.partition(".")[0] == "apex"

    def _backward(
        self, function: Function, call: ast.Call, receiver: ast.expr, introduced: frozenset[str]
    ) -> Label | None:
        loss: ast.expr | None = receiver
        rest, named = list(call.args), call.keywords
        if runs_backward(self._project, function.module, call):
            loss, rest = argument(call, "tensors", 0), rest[1:]
            named = [keyword for keyword in named if keyword.arg != "tensors"]
        if loss is None:
            return None
        text = ast.unparse(_Unscaled(self, function, introduced).visit(copied(loss)))
        if self._project.callees(call):
            rest, named = [], []  # what a function of the project is asked for is its own
        return Label(Does.BACKWARD.value, " ".join([text, *_options(rest, named)]))

    def stands_for(
        self, function: Function, name: ast.Name, introduced: frozenset[str]
    ) -> list[ast.expr]:
        """Return the expressions that a name holds, apart from scaling; nothing if it is a value of its own."""
        found: list[ast.expr] = []
        for bound in self._binders(function, name):
            value = self._unscaled_value(function, bound)
            if value is None and name.id in introduced:
                value = _assigned(function, bound)
            if value is None:
                return []
            found.append(value)
        return found

    def values_of(self, function: Function, name: ast.Name) -> list[ast.expr]:
        """Return what a name may be bound to where it is read, a scaled loss as what it scales."""
        found = []
        for bound in self._binders(function, name):
            value = self._unscaled_value(function, bound) or _assigned(function, bound)
            if value is not None:
                found.append(value)
        return found

    def is_scaled(self, function: Function, backward: ast.Call) -> bool:
        """Tell whether the loss of a backward is multiplied by a scale, or computed from what is."""
        queue: list[ast.AST] = [backward]
        seen: set[ast.AST] = set()
        while queue:
            for part in every(queue.pop()):
                if isinstance(part, ast.Call) and tail(part) == "scale":
                    return True
                if not isinstance(part, ast.Name) or not isinstance(part.ctx, ast.Load):
                    continue
                binders = [b for b in self._binders(function, part) if b not in seen]
                seen.update(binders)
                if any(self._unscaled_value(function, bound) is not None for bound in binders):
                    return True
                queue += filter(None, (_assigned(function, bound) for bound in binders))
        return False

    def _unscaled_value(self, function: Function, bound: ast.AST) -> ast.expr | None:
        """Return the loss that a name is bound to scaled: ``as scaled_loss``, or the result of ``scaler.scale(loss)``."""
        up, value = function.module.tree.parent(bound), _assigned(function, bound)
        entered = up.context_expr if isinstance(up, ast.withitem) else None
        call = value if isinstance(value, ast.Call) else None
        if call is not None and tail(call) == "enter_context":
            entered = argument(call, "cm", 0)
        if isinstance(entered, ast.Call) and self._scales(function, entered):
            return argument(entered, "loss", 0)
        scaled = entered is None and call is not None and tail(call) == "scale"
        return argument(call, "outputs", 0) if call is not None and scaled else None

    def _scales(self, function: Function, call: ast.Call) -> bool:
        named = scaling_calls(self._project)
        return call in named or scales_loss(self._project, function.module, call)

    def _binders(self, function: Function, name: ast.Name) -> list[ast.AST]:
        """Return the nodes that may have bound a name where it is read, in a function around where one does."""
        owner = function.module.scopes.owner(name)
        if owner is not function.scope and isinstance(owner, ast.FunctionDef | ast.Module):
            return list(function.module.scopes.bound(name))
        before = self.program.graph(function).bound_before(name)
        return list(dict.fromkeys(p.node for p in before if p.kind is PointKind.STORE))


def text_of(node: ast.expr) -> str:
    """Return an expression as text, whatever its layout."""
    return path(node) or ast.unparse(node)


def called(node: ast.expr) -> str:
    """Return how a call names what it calls, whatever it hands to calls on the way: ``Run().train``."""
    if isinstance(node, ast.Attribute):
        return f"{called(node.value)}.{node.attr}"
    return f"{called(node.func)}()" if isinstance(node, ast.Call) else text_of(node)


def _steps_unseen(project: Project, function: Function) -> bool:
    """Tell whether a function steps what is not seen, or itself by name alone: the optimizer around which it stands."""
    steps = (call for call in function.calls if tail(call) == "step")
    return any(set(project.callees(step)) <= {function} for step in steps)


def _options(given: Sequence[ast.expr], named: Sequence[ast.keyword]) -> Iterator[str]:
    """Yield what a backward is asked for beside its loss; what engines are given is their own."""
    for value in given:
        if isinstance(value, ast.Call):
            yield ast.unparse(value)
    for keyword in named:
        if keyword.arg in _OPTIONS and not (is_none(keyword.value) or is_false(keyword.value)):
            yield ast.unparse(keyword)


def _of_state(method: str) -> Label:
    return Label((Does.SAVE if method == "state_dict" else Does.LOAD).value)


def _assigned(function: Function, bound: ast.AST) -> ast.expr | None:
    up = function.module.tree.parent(bound)
    if isinstance(up, ast.AnnAssign):
        return up.value
    return up.value if isinstance(up, ast.Assign) and len(up.targets) == 1 else None


class _Unscaled(ast.NodeTransformer):
    """Writes a loss without its scaling."""

    def __init__(self, labels: Labels, function: Function, introduced: frozenset[str]) -> None:
        self._labels = labels
        self._function = function
        self._introduced = introduced
        self._within: tuple[str, ...] = ()

    def visit_Name(self, node: ast.Name) -> ast.AST:
        original = getattr(node, "original", node)
        if node.id in self._within:
            return node
        found = self._labels.stands_for(self._function, original, self._introduced)
        if not found:
            return node
        self._within = (*self._within, node.id)
        texts = sorted({ast.unparse(self.visit(copied(value))) for value in found})
        self._within = self._within[:-1]
        return ast.Name(" or ".join(texts))

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        return self.visit_Name(node.target)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        given = argument(node, "outputs", 0) if len(all_given(node)) == 1 else None
        if tail(node) == "scale" and given is not None and isinstance(node.func, ast.Attribute):
            return given
        return node
