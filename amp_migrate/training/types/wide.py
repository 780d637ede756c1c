"""What O1 and autocast both compute in fp32, whatever floating type it is given."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import all_given
from amp_migrate.project import Module, Project
from amp_migrate.training.beliefs import SHAPES
from amp_migrate.training.bindings import returned
from amp_migrate.training.forwards.known_losses import is_loss_class

SUMS = frozenset({"sum", "cumsum", "prod", "cumprod"})
OF_TORCH = SUMS | {
    "acos", "asin", "cosh", "dist", "erfinv", "exp", "expm1", "log", "log10", "log2", "norm", "pow", "reciprocal", "renorm",
    "rsqrt", "sinh", "tan",
}  # fmt: skip
"""Functions of torch that are methods of tensors as well."""
OF_FUNCTIONAL = frozenset(
    {
        "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cosine_similarity", "cross_entropy", "group_norm",
        "gumbel_softmax", "hinge_embedding_loss", "interpolate", "kl_div", "l1_loss", "layer_norm", "log_softmax",
        "margin_ranking_loss", "mse_loss", "multi_margin_loss", "multilabel_margin_loss", "nll_loss", "normalize",
        "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin", "softplus", "triplet_margin_loss",
        "upsample",
    }
)  # fmt: skip
"""O1 cast those of torch.nn.functional alone, not torch.softmax or x.softmax()."""
MODULES = frozenset(
    {"CosineSimilarity", "LogSoftmax", "Softmax", "Softmin", "Softplus", "Upsample"}
    | {"UpsamplingBilinear2d", "UpsamplingNearest2d"}
)
"""Modules of torch.nn that call one of these and have no weights, but for losses."""
_FUNCTIONAL = "torch.nn.functional"
_FIRST = frozenset({"anchor", "input", "input1", "logits", "x1"})
_TENSORS = _FIRST | {"exponent", "input2", "other", "target", "x2"}

_NUMBERS = frozenset({"bool", "float", "int", "isinstance", "len", "str"})
_OF_NUMBERS = frozenset({"math", "pandas", "sklearn", "statistics"})
_METHODS = frozenset(
    {
        "all", "any", "argmax", "argmin", "argsort", "bincount", "bool", "byte", "dim", "eq", "equal", "ge", "gt", "int",
        "isfinite", "isinf", "isnan", "le", "logical_and", "logical_not", "logical_or", "logical_xor", "long", "lt", "ne",
        "nonzero", "numel", "one_hot", "size",
    }
)  # fmt: skip
_KEEPING = SHAPES | {"abs", "clone", "max", "mean", "min"}
_WIDENING = frozenset({"double", "float"})
_GRADIENTS = frozenset({"grad"})
_ATTRIBUTES = frozenset({"device", "dtype", "ndim", "shape"})
_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor)


def computed(project: Project, module: Module, node: ast.AST) -> list[ast.expr]:
    """Return what a power, a sum or another of these functions is given, if a node is one; nothing for any other node."""
    if isinstance(node, ast.BinOp):
        return [node.left] if isinstance(node.op, ast.Pow) else []
    if not isinstance(node, ast.Call):
        return []
    package, _, name = (project.external(module, node.func) or "").rpartition(".")
    if package == _FUNCTIONAL:
        return _first(node) if name in OF_FUNCTIONAL else []
    if package:
        return tensors(node) if package == "torch" and name in OF_TORCH else []
    if isinstance(node.func, ast.Attribute) and node.func.attr in OF_TORCH:
        return [] if project.callees(node) else [node.func.value]
    return []


def _first(call: ast.Call) -> list[ast.expr]:
    """Return the tensor that a function of torch.nn.functional is given first, which may be by name."""
    return call.args[:1] or [k.value for k in call.keywords if k.arg in _FIRST]


def tensors(call: ast.Call) -> list[ast.expr]:
    """Return what one of these functions or modules is given but for settings by name, as the ``size=`` of an output."""
    return [*call.args, *(k.value for k in call.keywords if k.arg in _TENSORS)]


def is_sum(node: ast.AST) -> bool:
    """Tell whether a node calls what adds or multiplies up, by its name."""
    func = node.func if isinstance(node, ast.Call) else None
    return isinstance(func, ast.Attribute) and func.attr in SUMS


def makes_one(project: Project, module: Module, call: ast.Call) -> bool:
    """Tell whether a call makes a module of torch.nn that runs one of these."""
    return is_one(project.external(module, call.func) or "")


def is_one(made: str) -> bool:
    """Tell whether what has a dotted name is a module of torch.nn that runs one of these."""
    package, _, name = made.rpartition(".")
    return package.startswith("torch.nn") and name in MODULES


def is_wide(project: Project, module: Module, node: ast.AST) -> bool:
    """Tell whether an expression gives no fp16, whatever it is given: fp32, whole numbers, truth values, or no tensor."""
    if isinstance(node, ast.Compare):
        return True
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not)
    if isinstance(node, ast.BinOp) and isinstance(node.op, _BITS):
        return True
    if isinstance(node, ast.BinOp):
        return _is_fp32(project, module, node)
    if isinstance(node, ast.Attribute):
        return node.attr in _ATTRIBUTES
    return isinstance(node, ast.Call) and _gives_wide(project, module, node)


def _is_fp32(project: Project, module: Module, node: ast.expr) -> bool:
    """Tell whether an expression gives an fp32 tensor for certain, or a container of these: ``output.float() + shift``."""
    if computed(project, module, node):
        return True
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.MatMult):
            return False
        return any(_is_fp32(project, module, side) for side in (node.left, node.right))
    parts = _contained(module, node)
    if parts is not None:
        return bool(parts) and all(_is_fp32(project, module, part) for part in parts)
    if not isinstance(node, ast.Call) or project.callees(node):
        return False
    func = node.func
    if isinstance(func, ast.Attribute) and project.external(module, func) is None:
        if func.attr in _KEEPING:
            return _is_fp32(project, module, func.value)
        if func.attr in _WIDENING:
            return True
    return _is_made_wide(project, module, func)


def _contained(module: Module, node: ast.expr) -> list[ast.expr] | None:
    """Return what a container holds that an expression makes; None where it makes none."""
    if isinstance(node, ast.Tuple | ast.List):
        return node.elts
    if isinstance(node, ast.Dict):
        return node.values
    if isinstance(node, ast.Call) and module.scopes.builtin(node.func) == "dict":
        return all_given(node)
    return None


def _is_made_wide(project: Project, module: Module, func: ast.expr) -> bool:
    """Tell whether what is called is a loss of torch, or a module that runs one of these functions."""
    made = project.values.made_by(module, func)
    return bool(made) and all(is_one(n) or is_loss_class(n) for n in made)


def _gives_wide(project: Project, module: Module, call: ast.Call) -> bool:
    func = call.func
    if isinstance(func, ast.Name) and module.scopes.builtin(func) in _NUMBERS:
        return True
    if computed(project, module, call):
        return True
    if callees := project.callees(call) or project.methods(module, func, "forward"):
        values = [(f.module, value) for f in callees for value in returned(f)]
        return bool(values) and all(_is_fp32(project, *value) for value in values)
    name = project.external(module, func)
    if name is not None:
        return name.partition(".")[0] in _OF_NUMBERS or (
            name.startswith("torch.") and name.rpartition(".")[2] in _METHODS | _GRADIENTS
        )
    if isinstance(func, ast.Attribute) and func.attr in _METHODS:
        return True
    return _is_made_wide(project, module, func)
