"""Compare which operator ran in which dtype, and tell faults from known policy differences."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from amp_migrate.equivalence.runs.records import Census

HALF, FULL = "float16", "float32"
LOWER, HIGHER = (FULL, HALF), (HALF, FULL)

# Functions of Python that Apex does not patch; autocast casts the products inside.
COMPOSITES = frozenset({"einsum", "tensordot", "chain_matmul", "multi_dot"})

# How the operator lists of Apex O1 and of CUDA autocast differ: (Apex's dtype, native's dtype).
POLICY: dict[str, tuple[tuple[str, str], ...]] = {
    **dict.fromkeys(
        (
            "gelu",
            "gelu_backward",
            "std",
            "var",
            "std_mean",
            "var_mean",
            "_adaptive_avg_pool2d",
            "grid_sampler_2d",
            "_ctc_loss",
            "prelu",
            "_prelu_kernel",
            "cross_entropy",
            *COMPOSITES,
        ),
        (LOWER,),
    ),
    **dict.fromkeys(
        (
            "_softmax",
            "_log_softmax",
            "native_layer_norm",
            "native_group_norm",
            "logsumexp",
            "log1p",
            "_cdist_forward",
            "huber_loss",
        ),
        (HIGHER,),
    ),
}
ATTENTION = "_scaled_dot_product"
_PRODUCTS = "mm addmm bmm baddbmm addbmm mv addmv addr convolution convolution_backward"
PRODUCTS = frozenset(_PRODUCTS.split())
# As which of these a layer multiplies rows of more than one dimension, torch decides by their strides.
FOLDED = frozenset({"mm", "addmm", "bmm", "baddbmm"})
# These keep the dtype they are given, so they follow a policy difference further up.
FOLLOWERS = frozenset(
    (
        "native_batch_norm",
        "_native_batch_norm_legit",
        "_batch_norm_with_update",
        "cudnn_batch_norm",
        "avg_pool2d",
        "exp",
        "log",
    )
)

_CAUSES = {
    (frozenset((HALF,)), frozenset((FULL,))): ": a forward, or a part of it, is outside autocast",
    (frozenset((FULL,)), frozenset((HALF,))): ": autocast is on where Apex cast nothing",
    (frozenset((HALF,)), frozenset(("bfloat16",))): ": autocast asks for another type",
}


@dataclass(frozen=True)
class CensusRow:
    """One operator in one phase whose dtypes differ. `kind` is "policy" or "fault"."""

    operator: str
    phase: str
    before: dict[str, int]
    after: dict[str, int]
    kind: str

    def __str__(self) -> str:
        return f"{self.operator} ({self.phase}): {_spelled(self.before)} -> {_spelled(self.after)}"


def compare_census(before: Census, after: Census, opt_level: str) -> tuple[CensusRow, ...]:
    """Return the operators whose dtypes differ.

    Under O2 and O3 Apex casts the model instead of the operators, so there only a matrix product
    or convolution that is no longer fp16 is a fault.
    """
    keys = sorted({(operator, phase) for operator, _, phase in (*before, *after)})
    differing = []
    for operator, phase in keys:
        left, right = (_dtypes(census, operator, phase) for census in (before, after))
        if left != right:
            differing.append((operator, phase, left, right))
    changed = {(operator, phase) for operator, phase, _, _ in differing}
    policy = any(_listed(operator, left, right) for operator, _, left, right in differing)
    composites = sum(
        _moved(left, right)
        for operator, _, left, right in differing
        if operator in COMPOSITES and _listed(operator, left, right)
    )
    rows = []
    for operator, phase, left, right in differing:
        if opt_level in ("O2", "O3"):
            fault = operator in PRODUCTS and _less_half(left, right)
        elif _listed(operator, left, right):
            fault = False
        elif phase == "backward" and operator in PRODUCTS and _less_full(left, right):
            fault = _moved(left, right) > 2 * composites
        elif phase == "backward" and operator in POLICY:
            fault = (operator, "forward") not in changed
        elif (
            policy
            and operator in FOLDED
            and _multiplied(before, phase) == _multiplied(after, phase)
        ):
            fault = False
        else:
            fault = not (policy and operator in FOLLOWERS) and not _attention(operator, changed)
        rows.append(CensusRow(operator, phase, left, right, "fault" if fault else "policy"))
    return tuple(rows)


def in_words(faults: list[CensusRow]) -> str:
    """Name the first operators, and what usually takes them where they are."""
    named = "; ".join(str(row) for row in faults[:3])
    more = f"; and {len(faults) - 3} more" if len(faults) > 3 else ""
    gone = {dtype for row in faults for dtype in Counter(row.before) - Counter(row.after)}
    come = {dtype for row in faults for dtype in Counter(row.after) - Counter(row.before)}
    cause = _CAUSES.get((frozenset(gone), frozenset(come)), "")
    return f"{named}{more}{cause}"


def _attention(operator: str, changed: set[tuple[str, str]]) -> bool:
    """Fused attention in fp16 and its unfused fp32 form are different operators."""
    parts = ("bmm", "_softmax", "mm")
    fused = any(name.startswith(ATTENTION) for name, _ in changed)
    return fused and (operator in parts or operator.startswith(ATTENTION))


def _multiplied(census: Census, phase: str) -> Counter[str]:
    """Return how many products of matrices ran in which dtype, whether rows were folded for them or not."""
    counted: Counter[str] = Counter()
    for operator in FOLDED:
        counted.update(_dtypes(census, operator, phase))
    return counted


def _dtypes(census: Census, operator: str, phase: str) -> dict[str, int]:
    counted: Counter[str] = Counter()
    for (name, dtype, where), number in census.items():
        if (name, where) == (operator, phase):
            counted[dtype] += number
    return dict(counted)


def _listed(operator: str, left: dict[str, int], right: dict[str, int]) -> bool:
    gone, come = Counter(left) - Counter(right), Counter(right) - Counter(left)
    if len(gone) != 1 or len(come) != 1 or gone.total() != come.total():
        return False
    return (next(iter(gone)), next(iter(come))) in POLICY.get(operator, ())


def _moved(left: dict[str, int], right: dict[str, int]) -> int:
    return (Counter(left) - Counter(right)).total()


def _less_full(left: dict[str, int], right: dict[str, int]) -> bool:
    return set(Counter(left) - Counter(right)) == {FULL} and left.keys() | right.keys() <= {
        HALF,
        FULL,
    }


def _less_half(left: dict[str, int], right: dict[str, int]) -> bool:
    return bool(left.get(HALF)) and right.get(HALF, 0) < left[HALF]


def _spelled(dtypes: dict[str, int]) -> str:
    return ", ".join(f"{number} x {dtype}" for dtype, number in sorted(dtypes.items())) or "none"
