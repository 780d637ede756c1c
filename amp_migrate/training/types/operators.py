"""What functions, methods and layers of torch make of the types that they are given, with Apex O1 and with autocast."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from amp_migrate.facts.constants import is_false, number
from amp_migrate.facts.paths import argument
from amp_migrate.training.beliefs import MULTIPLYING_LAYERS, RUN_IN_HALF
from amp_migrate.training.types import wide
from amp_migrate.training.types.floats import (
    BARE_WIDE,
    HALF,
    NUMBER,
    ONE_WIDE,
    UNKNOWN,
    WHOLE,
    WIDE,
    Helds,
    always,
    bare,
    copied,
    halved,
    halved_by_native,
    made_wide,
    promoted,
    shaped,
    summed,
    widened,
    widened_by_apex,
    widened_by_native,
)

Join = Callable[[Sequence[Helds]], Helds]
UNLISTED = frozenset(
    {
        "einops.einops.einsum", "einops.einsum", "torch.chain_matmul", "torch.convolution", "torch.corrcoef", "torch.cov",
        "torch.einsum", "torch.functional.chain_matmul", "torch.functional.einsum", "torch.linalg.matmul",
        "torch.linalg.matrix_power", "torch.linalg.multi_dot", "torch.linalg.vecdot", "torch.matrix_power",
        "torch.nn.functional.scaled_dot_product_attention",
    }
)  # fmt: skip
"""What multiplies on no list of O1: in the type of its operands, which must be one. Autocast multiplies in fp16."""

PRODUCTS = frozenset({"addbmm", "addmm", "addmv", "addr", "baddbmm", "bmm", "matmul", "mm", "mv"})
_FUNCTIONAL = "torch.nn.functional"
_APEX_WIDE = frozenset(
    {"ctc_loss", "gelu", "grid_sample", "local_response_norm", "multilabel_soft_margin_loss", "std", "var"}
)  # fmt: skip
_NATIVE_WIDE = frozenset(
    {
        "cdist", "cosine_similarity", "group_norm", "huber_loss", "layer_norm", "linalg_norm", "log1p", "log_softmax",
        "logsumexp", "matrix_norm", "pairwise_distance", "pdist", "rms_norm", "softmax", "square",
        "triplet_margin_with_distance_loss", "vector_norm",
    }
)  # fmt: skip
"""Functions of torch and methods, and those of torch.nn.functional that O1 has on no list."""
_WHOLE = frozenset(
    {
        "all", "any", "argmax", "argmin", "argsort", "bincount", "bool", "byte", "eq", "ge", "gt", "int", "isfinite", "isinf",
        "isnan", "le", "logical_and", "logical_not", "logical_or", "logical_xor", "long", "lt", "multinomial", "ne", "nonzero",
        "one_hot", "randint", "randperm", "searchsorted",
    }
)  # fmt: skip
_NUMBERS = frozenset({"dim", "element_size", "equal", "is_tensor", "item", "ndimension", "numel", "size", "stride", "tolist"})  # fmt: skip
MIXES = frozenset(
    {
        "add", "addcdiv", "addcmul", "atan2", "cat", "concat", "cross", "div", "dot", "hstack", "inner", "lerp", "maximum", "minimum", "mul",
        "multiply", "outer", "stack", "sub", "subtract", "tensordot", "true_divide", "vdot", "vstack", "where",
    }
) | {name.rpartition(".")[2] for name in UNLISTED}  # fmt: skip
"""What gives one type of all that it is given; the others go by what they are given first, or called on."""
MAKES = frozenset({"empty", "eye", "full", "hann_window", "linspace", "logspace", "normal", "ones", "rand", "randn", "zeros"})  # fmt: skip
_UNSEEN = frozenset({"as_tensor", "from_numpy", "load", "tensor", "compile", "vmap"})
_REDUCES = frozenset(
    {"amax", "amin", "dist", "logsumexp", "max", "mean", "median", "min", "norm", "prod", "std", "sum", "var"}
)  # fmt: skip
_ELEMENTWISE = frozenset(
    {
        "abs", "add", "atan2", "ceil", "clamp", "clamp_max", "clamp_min", "clip", "clone", "contiguous", "cos", "cosh", "cpu", "cuda",
        "detach", "div", "elu", "erf", "exp", "expm1", "fill", "floor", "lerp", "log", "log10", "log1p", "log2", "maximum", "minimum",
        "mul", "multiply", "neg", "pow", "reciprocal", "relu", "requires_grad", "round", "rsqrt", "sigmoid", "sin", "softplus", "sqrt",
        "square", "sub", "subtract", "tan", "tanh", "true_divide",
    }
)  # fmt: skip
"""What gives a tensor without dimensions of one that has none."""
_SETS_TYPE = frozenset({"asarray", "double", "to", "type"})

_OTHER_LAYERS = frozenset(
    {
        "Bilinear", "DataParallel", "LSTM", "MultiheadAttention", "PReLU", "RNN", "RNNCell", "Sequential", "Transformer", "TransformerDecoder",
        "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer",
    }
)  # fmt: skip
_WIDE_LAYERS = frozenset({"Embedding", "EmbeddingBag", "GroupNorm", "LayerNorm"})


def of_function(name: str, call: ast.Call) -> Join | None:
    """Return what a function of a library makes of its arguments, by its dotted name; None where that is not known."""
    package, _, last = name.rpartition(".")
    if name in UNLISTED:
        return halved_by_native
    if package == _FUNCTIONAL:
        return _of_functional(last)
    if package in ("torch", "torch.linalg", "torch.functional", "torch.special"):
        if last in MAKES:
            return always(_made(call))
        if last == "tensor" and call.args and is_fraction(call.args[0]):
            return always(BARE_WIDE)
        return None if last in _UNSEEN else _of_torch(last, _reduces(last, call, 1))
    return always(NUMBER) if package in ("math", "random", "time") else None


def _made(call: ast.Call) -> Helds:
    """Return what a call makes, which may say how many numbers that has: ``torch.ones([])`` has one alone."""
    first = call.args[0] if call.args else None
    if isinstance(first, ast.Tuple | ast.List):
        return WIDE if first.elts else BARE_WIDE
    return WIDE if len(call.args) > 1 or isinstance(first, ast.Constant) else ONE_WIDE


def is_fraction(node: ast.expr) -> bool:
    """Tell whether an expression is a number with a fraction that is written out: ``10.0``, ``1 / 8``."""
    fraction = any(
        isinstance(part, ast.Div) or (isinstance(part, ast.Constant) and type(part.value) is float)
        for part in ast.walk(node)
    )
    return fraction and number(node.operand if isinstance(node, ast.UnaryOp) else node) is not None


def _of_functional(name: str) -> Join:
    if name in RUN_IN_HALF:
        return always(UNKNOWN) if name in ("bilinear", "prelu") else halved
    if name == "binary_cross_entropy":  # runs without casts
        return always(ONE_WIDE)
    if name in wide.OF_FUNCTIONAL:
        whole = name.endswith("_loss") or name in ("cross_entropy", "cosine_similarity", "kl_div")
        return always(ONE_WIDE if whole or name.endswith("_logits") else WIDE)
    return _of_torch(name, single=False)


def _of_torch(name: str, single: bool) -> Join:
    if name in PRODUCTS:
        return halved
    if name in _WHOLE or name == "arange":
        return always(WHOLE)
    if name in _NUMBERS:
        return always(NUMBER)
    made = promoted
    if name in wide.OF_TORCH:
        made = summed if name in wide.SUMS | {"pow"} else widened
    elif name in _APEX_WIDE:
        made = widened_by_apex
    elif name in _NATIVE_WIDE:
        made = widened_by_native
    if single:
        return lambda found: bare([made(found)])
    return made if name in _ELEMENTWISE else lambda found: shaped([made(found)])


def of_method(name: str, call: ast.Call) -> Join | None:
    """Return what a method makes of what it is called on, if that is a tensor; None where that does not say."""
    if name in ("half", "bfloat16"):
        return always(HALF)
    if name == "cpu":
        return copied
    if name == "float":
        return made_wide
    if name in _SETS_TYPE:
        return None
    if name.endswith("_"):
        return promoted if name[:-1] in _ELEMENTWISE else lambda found: shaped([promoted(found)])
    return _of_torch(name, _reduces(name, call, 0))


def _reduces(name: str, call: ast.Call, first: int) -> bool:
    """Tell whether a call may leave a tensor without dimensions: it names none to go along."""
    if name not in _REDUCES:
        return False
    keeps = argument(call, "keepdim", len(call.args))
    if keeps is not None and not is_false(keeps):
        return False
    place = first + 1 if name == "norm" else first
    return argument(call, "dim", place) is None and not any(k.arg == "axis" for k in call.keywords)


def of_layer(made: str) -> Join:
    """Return what a module makes of its inputs, by the dotted name of its class."""
    package, _, name = made.rpartition(".")
    if package.startswith("torchvision.models") and "detection" not in made:
        return always(UNKNOWN if "segmentation" in made else HALF)
    if made == "timm.create_model":
        return always(HALF)
    if not package.startswith("torch.nn") or name in _OTHER_LAYERS:
        return always(UNKNOWN)
    if name in MULTIPLYING_LAYERS:
        return halved
    if name.endswith("Loss"):
        return always(ONE_WIDE)
    if name in wide.MODULES | _WIDE_LAYERS:
        return always(WIDE)
    join = widened_by_apex if name == "GELU" else promoted
    return lambda found: shaped([join(found)])


def spans(node: ast.Subscript) -> bool:
    """Tell whether an index goes over some dimensions, or adds one: ``x[:, 0]``, ``x[None]``."""
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return any(isinstance(each, ast.Slice) or _is_blank(each) for each in indices)


def _is_blank(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and (node.value is None or node.value is Ellipsis)
